"""Items come in order from a thread that works ahead by so much and no more, and ends with its consumer."""

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolembed.pipeline.prefetch import prefetch

NAME = "poolembed-prefetch"

# Long enough for a thread on a busy machine; nothing waits this long when all is well.
PATIENCE_S = 30.0


def workers():
    return [thread for thread in threading.enumerate() if thread.name == NAME]


class Counted:
    """Counts from 0, and tells how far it was asked to go."""

    def __init__(self, limit=None):
        self.limit = limit
        self.made = 0
        self.thread = None
        self.closed_in = None
        self.asked = threading.Semaphore(0)

    def __iter__(self):
        return self

    def __next__(self):
        self.thread = threading.current_thread()
        if self.made == self.limit:
            raise StopIteration
        self.made += 1
        self.asked.release()
        return self.made - 1

    def close(self):
        self.closed_in = threading.current_thread()

    def wait_until_asked(self, times):
        for _ in range(times):
            assert self.asked.acquire(timeout=PATIENCE_S)


@given(st.lists(st.integers()), st.integers(1, 4))
def test_items_come_in_order(items, depth):
    assert list(prefetch(iter(items), depth)) == items
    assert workers() == []


def test_none_and_exceptions_are_items_like_others():
    items = [None, ValueError("not raised"), StopIteration]
    assert list(prefetch(iter(items))) == items


@pytest.mark.parametrize("depth", [1, 3])
def test_the_thread_works_ahead_by_so_much_and_no_more(depth):
    source = Counted()
    ahead = prefetch(source, depth)
    assert next(ahead) == 0
    # One that was taken, `depth` that wait, one that waits for room.
    source.wait_until_asked(depth + 2)
    assert not source.asked.acquire(timeout=0.3)
    assert next(ahead) == 1
    source.wait_until_asked(1)
    ahead.close()
    assert source.made == depth + 3


def test_nothing_is_done_before_the_first_item_is_asked_for():
    source = Counted()
    prefetch(source).close()
    assert source.made == 0


class BrokenError(Exception):
    pass


def failing_after(count):
    yield from range(count)
    raise BrokenError(f"after {count}")


@pytest.mark.parametrize("count", [0, 1, 5])
def test_an_exception_comes_where_its_item_would_have(count):
    ahead = prefetch(failing_after(count))
    for expected in range(count):
        assert next(ahead) == expected
    with pytest.raises(BrokenError, match=f"after {count}") as caught:
        next(ahead)
    assert caught.traceback[-1].name == "failing_after"
    assert workers() == []


class Interrupted:
    def __iter__(self):
        return self

    def __next__(self):
        raise KeyboardInterrupt


def test_what_is_no_ordinary_exception_is_not_lost_in_the_thread():
    with pytest.raises(KeyboardInterrupt):
        next(prefetch(Interrupted()))


def test_closing_early_stops_the_thread_and_closes_its_source_there():
    source = Counted()
    ahead = prefetch(source)
    next(ahead)
    ahead.close()
    assert workers() == []
    assert source.closed_in is source.thread is not threading.current_thread()
    assert source.made <= 3


def test_an_exception_of_the_consumer_stops_the_thread():
    source = Counted()

    def consume():
        for _ in prefetch(source):
            raise BrokenError

    with pytest.raises(BrokenError):
        consume()
    assert workers() == []


def test_the_source_is_closed_when_it_is_used_up():
    source = Counted(limit=2)
    assert list(prefetch(source)) == [0, 1]
    assert source.closed_in is source.thread
