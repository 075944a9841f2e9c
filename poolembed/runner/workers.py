"""Threads that compute batches side by side, each with its own share of the cores.

They share one model. While a product runs, torch lets other threads of Python go on, so that on a CPU two
workers of one thread are faster than one of two: nothing waits for the slower half of every small step. On a
GPU one worker prepares the next batch while another waits for the results of the last.
"""

from collections.abc import Callable, Generator, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

import torch

from poolembed.runner.packing import IntArray

# More of them would wait for Python, which one thread at a time may run.
MOST_WORKERS = 8

GPU_WORKERS = 2


@dataclass(frozen=True, slots=True)
class Workers:
    """How many batches are computed at once, and with how many threads each.

    Attributes:
        number: of workers; one computes in the thread that calls, with the threads that it has.
        num_threads: threads of torch of each of several.
    """

    number: int = 1
    num_threads: int = 1

    def run(self, compute: Callable[[IntArray], None], batches: Iterable[IntArray]) -> Generator[IntArray]:
        """Compute batches; each is taken from `batches` shortly before its turn.

        Args:
            compute: computes the rows of a batch; with several workers in several threads at once.
            batches: the row numbers of each batch.

        Yields:
            The row numbers of each batch that is done, as they are done.

        Raises:
            Exception: whatever `compute` raises first; batches in hand are finished, no other begins.
        """
        if self.number == 1:
            for rows in batches:
                compute(rows)
                yield rows
            return
        executor = ThreadPoolExecutor(
            self.number, "poolembed-worker", torch.set_num_threads, (self.num_threads,)
        )
        running: dict[Future[None], IntArray] = {}
        try:
            for rows in batches:
                running[executor.submit(compute, rows)] = rows
                # One more for each worker is at hand, so that none waits for the next.
                if len(running) >= 2 * self.number:
                    yield from _done(running)
            while running:
                yield from _done(running)
        finally:
            executor.shutdown(cancel_futures=True)
            # A number that is set in one thread is also that of threads yet to come.
            torch.set_num_threads(torch.get_num_threads())


ALONE = Workers()


def candidates(wanted: int | None, device: torch.device) -> tuple[Workers, ...]:
    """Return the workers among which a trial decides: all threads in one, first, or spread over several.

    Args:
        wanted: how many the user asked for; None leaves it open.
        device: where the model runs.
    """
    num_threads = torch.get_num_threads()
    if wanted is not None:
        return (Workers(wanted, max(1, num_threads // wanted)),)
    if device.type != "cpu":
        return (Workers(GPU_WORKERS if device.type == "cuda" else 1, num_threads),)
    number = min(num_threads, MOST_WORKERS)
    alone = Workers(1, num_threads)
    return (alone,) if number == 1 else (alone, Workers(number, num_threads // number))


def _done(running: dict[Future[None], IntArray]) -> Generator[IntArray]:
    """Wait for some batch; forget what is done and yield its rows."""
    for future in wait(running, return_when=FIRST_COMPLETED).done:
        rows = running.pop(future)
        future.result()
        yield rows
