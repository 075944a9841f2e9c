"""What Ctrl-C and SIGTERM do: once, end the run after the batch at hand; twice, end it at once."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn, Protocol

from poolembed.cli.failures import Terminated
from poolembed.errors import EXIT_INTERRUPTED, EXIT_TERMINATED


class Stoppable(Protocol):
    """A run that can be asked to end."""

    def ask(self, exit_code: int) -> bool:
        """Ask it to end with an exit code; returns whether it will."""


def terminate(signum: int, frame: FrameType | None) -> NoReturn:
    """End the command at once, but with everything closed; `signum` and `frame` are Python's."""
    raise Terminated


@contextmanager
def asking(run: Stoppable) -> Iterator[None]:
    """Hand the first signal to `run`; where it will not see to it, and from the second on, end at once."""

    def interrupt(signum: int, frame: FrameType | None) -> None:
        if not run.ask(EXIT_INTERRUPTED):
            raise KeyboardInterrupt

    def end(signum: int, frame: FrameType | None) -> None:
        if not run.ask(EXIT_TERMINATED):
            raise Terminated

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    # A shell makes what it runs in the background ignore Ctrl-C, and that stays so.
    if before[signal.SIGINT] is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, interrupt)
    signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
