"""What ends a run before its last row: somebody asks for it, or time is up."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime

from poolembed.config import parse_deadline
from poolembed.errors import EXIT_INTERRUPTED, EXIT_TERMINATED, UnfinishedError

_ASKED = {EXIT_INTERRUPTED: "interrupted", EXIT_TERMINATED: "terminated"}


class StopRequest:
    """A wish that a run end, which may be set at any moment, also by a signal handler.

    A run heeds it from its first row on, after each batch; before that nobody looks, and whoever sets it
    must end the run otherwise.
    """

    def __init__(self) -> None:
        self._exit_code: int | None = None
        self._is_heeded = False

    def ask(self, exit_code: int) -> bool:
        """Ask the run to end.

        Args:
            exit_code: `EXIT_INTERRUPTED` or `EXIT_TERMINATED`.

        Returns:
            Whether the run will see to it; False before its first row, and when it was asked before.
        """
        is_first = self._exit_code is None
        self._exit_code = exit_code
        return is_first and self._is_heeded

    @contextmanager
    def heeded(self) -> Iterator[None]:
        """Promise to call `check` often for as long as this lasts."""
        self._is_heeded = True
        try:
            yield
        finally:
            self._is_heeded = False

    def check(self, num_left: int, num_rows: int) -> None:
        """End the run if that was asked for.

        Args:
            num_left: rows that are not done.
            num_rows: all rows of the run.

        Raises:
            UnfinishedError: it was; with the exit code of the request.
        """
        if self._exit_code is not None:
            raise unfinished(_ASKED[self._exit_code], num_left, num_rows, self._exit_code)


class Deadline:
    """The moment at which a run stops with what is done.

    Args:
        text: `HH:MM`, the next such time; or a duration from now on (`2h30m`); None never passes.
        clock: seconds since the epoch.
    """

    def __init__(self, text: str | None, clock: Callable[[], float] = time.time) -> None:
        self._text = text
        self._clock = clock
        # By way of local time without a zone, so that 06:00 is that of the clock on the wall.
        now = datetime.fromtimestamp(clock())
        self._moment = None if text is None else parse_deadline(text, now).timestamp()

    def passed(self) -> bool:
        """Return whether time is up."""
        return self._moment is not None and self._clock() >= self._moment

    def check(self, num_left: int, num_rows: int) -> None:
        """End the run if time is up and something is left to do.

        Args:
            num_left: rows that are not done.
            num_rows: all rows of the run.

        Raises:
            UnfinishedError: time is up.
        """
        if num_left and self.passed():
            raise unfinished(f"the deadline ({self._text}) has passed", num_left, num_rows)


def unfinished(
    why: str, num_left: int, num_rows: int, exit_code: int = UnfinishedError.exit_code
) -> UnfinishedError:
    """Return the error that ends a run with what is done.

    Args:
        why: what ended it.
        num_left: rows that are not done.
        num_rows: all rows of the run.
        exit_code: what the command exits with.
    """
    return UnfinishedError(
        f"{why}: {num_left:,} of {num_rows:,} rows are left", "the same command goes on with them", exit_code
    )
