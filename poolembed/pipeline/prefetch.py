"""An iterator that works ahead in a thread of its own."""

import queue
import threading
from collections.abc import Generator, Iterator
from typing import TypeVar

T = TypeVar("T")


class _Failure:
    def __init__(self, error: BaseException) -> None:
        self.error = error


class _End:
    pass


def prefetch(items: Iterator[T], depth: int = 1) -> Generator[T, None, None]:
    """Compute items ahead of their use, in order.

    An exception of `items` is raised where its item would have come. When the consumer stops early
    (closes this generator), the thread stops before its next item.

    Args:
        items: what to run through; used in the thread alone, and closed there if it is a generator.
        depth: items that may wait; one more may be in the making.

    Yields:
        The items, in their order.
    """
    ready: queue.Queue[T | _Failure | _End] = queue.Queue(maxsize=depth)
    stopped = threading.Event()

    def work() -> None:
        try:
            for item in items:
                _put(ready, item, stopped)
                if stopped.is_set():
                    break
            else:
                _put(ready, _End(), stopped)
        except BaseException as error:  # noqa: BLE001 - handed over whole and raised in the consumer
            _put(ready, _Failure(error), stopped)
        finally:
            close = getattr(items, "close", None)
            if close is not None:
                close()

    worker = threading.Thread(target=work, name="poolembed-prefetch", daemon=True)
    worker.start()
    try:
        while not isinstance(got := ready.get(), _End):
            if isinstance(got, _Failure):
                raise got.error
            yield got
    finally:
        stopped.set()
        worker.join()


def _put(ready: "queue.Queue[T]", item: T, stopped: threading.Event) -> None:
    """Wait for room, but not for a consumer that has gone."""
    while not stopped.is_set():
        try:
            ready.put(item, timeout=0.1)
        except queue.Full:
            continue
        return
