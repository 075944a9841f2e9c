"""A run ends after a batch when it is asked to, and after a chunk when time is up."""

from datetime import datetime

import pytest

from poolembed.errors import EXIT_INTERRUPTED, EXIT_TERMINATED, UnfinishedError
from poolembed.pipeline.stop import Deadline, StopRequest


class Clock:
    """A clock that is set by hand."""

    def __init__(self, moment):
        self.now = moment.timestamp()

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock(datetime(2026, 3, 28, 23, 0))


@pytest.mark.parametrize(
    ("text", "seconds"), [("45s", 45), ("1h30m", 5400), ("23:01", 60), ("06:00", 25_200)]
)
def test_a_deadline_passes_at_its_moment_and_not_before(clock, text, seconds):
    deadline = Deadline(text, clock)
    start = clock.now
    for offset, passed in ((0, False), (seconds - 0.001, False), (seconds, True), (seconds + 9e6, True)):
        clock.now = start + offset
        assert deadline.passed() == passed


def test_no_deadline_never_passes(clock):
    deadline = Deadline(None, clock)
    clock.now += 1e9
    assert not deadline.passed()


def test_a_run_over_its_deadline_says_what_is_left(clock):
    deadline = Deadline("45s", clock)
    deadline.check(1200, 5000)
    clock.now += 45
    with pytest.raises(UnfinishedError) as caught:
        deadline.check(1200, 5000)
    assert caught.value.exit_code == 75
    assert str(caught.value) == (
        "the deadline (45s) has passed: 1,200 of 5,000 rows are left (the same command goes on with them)"
    )


def test_a_run_that_is_done_has_no_deadline(clock):
    deadline = Deadline("45s", clock)
    clock.now += 100
    deadline.check(0, 5000)


@pytest.mark.parametrize(
    ("code", "word"), [(EXIT_INTERRUPTED, "interrupted"), (EXIT_TERMINATED, "terminated")]
)
def test_the_first_request_is_heeded_and_the_second_ends_at_once(code, word):
    stop = StopRequest()
    with stop.heeded():
        stop.check(3, 4)
        assert stop.ask(code)
        assert not stop.ask(code)
        with pytest.raises(UnfinishedError, match=f"^{word}: 3 of 4 rows are left") as caught:
            stop.check(3, 4)
    assert caught.value.exit_code == code


def test_nobody_looks_at_a_request_before_the_first_row_and_after_the_last():
    stop = StopRequest()
    assert not stop.ask(EXIT_TERMINATED)
    later = StopRequest()
    with later.heeded():
        pass
    assert not later.ask(EXIT_TERMINATED)
