"""Those who watch a run: the console, a status file, a metrics file. All are told the same."""

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from poolembed.cli.console import Console
from poolembed.cli.failures import Failure
from poolembed.cli.figures import Figures, Phase, status_text
from poolembed.cli.metrics import metrics_text
from poolembed.errors import OutputError

# Least seconds between two states of a file.
INTERVAL_S = 1.0


class Board(Protocol):
    """A file that shows how far a run is."""

    def claim(self) -> None:
        """Refuse, with an OutputError, to replace a file that is something else."""

    def show(self, figures: Figures) -> None:
        """Replace the file; an OutputError where that fails."""


@dataclass(frozen=True, slots=True)
class StatusFile(Board):
    """`--status FILE`."""

    path: Path

    def claim(self) -> None:
        """Refuse, with an OutputError, to replace what is no status file, such as a mistyped input."""
        _claim(self.path, '{\n "phase": ', "--status")

    def show(self, figures: Figures) -> None:
        """Replace the file by one with these figures."""
        _replace(self.path, status_text(figures))


@dataclass(frozen=True, slots=True)
class MetricsFile(Board):
    """`--metrics FILE`."""

    path: Path

    def claim(self) -> None:
        """Refuse, with an OutputError, to replace what is no metrics file."""
        _claim(self.path, "# HELP poolembed_", "--metrics")

    def show(self, figures: Figures) -> None:
        """Replace the file by one with these figures, and the last success that it knows of."""
        _replace(self.path, metrics_text(figures, _content(self.path)))


class Watch:
    """The `Progress` of a run from the command line.

    A file that cannot be written at the beginning ends the run; later that is told once, because a night's
    work must not fail for the file that reports on it.

    Args:
        console: what the person sees.
        figures: what is counted.
        boards: the files that show it.
        interval_s: least seconds between two states of a file.
        clock: seconds that never run backwards.
    """

    def __init__(
        self,
        console: Console,
        figures: Figures,
        boards: Sequence[Board],
        *,
        interval_s: float = INTERVAL_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._console = console
        self._figures = figures
        self._boards = list(boards)
        self._interval_s = interval_s
        self._clock = clock
        self._shown = clock()
        self._closing = ExitStack()

    def __enter__(self) -> Self:
        for board in self._boards:
            board.claim()
            board.show(self._figures)
        self._closing.enter_context(self._console)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None and self._figures.exit_code is None:  # after the end only words can fail
            failure = Failure.of(error)
            phase: Phase = "stopped" if failure.event == "stopped" else "failed"
            self._figures.fail(phase, failure.message, failure.exit_code)
            self._show()
        self._closing.close()

    def note(self, message: str) -> None:
        """Tell something worth knowing, once."""
        self._console.note(message)

    def start(self, num_rows: int) -> None:
        """Begin to count rows."""
        self._figures.start(num_rows)
        self._console.start(num_rows)
        self._show()

    def advance(self, num_rows: int, num_tokens: int, *, num_rejected: int = 0, num_reused: int = 0) -> None:
        """Count rows that are done.

        Args:
            num_rows: rows since the last call.
            num_tokens: their tokens.
            num_rejected: those of the rows that were refused.
            num_reused: those whose results were there already.
        """
        self._figures.advance(num_rows, num_tokens, num_rejected, num_reused)
        self._console.advance(num_rows, num_tokens)
        if self._clock() - self._shown >= self._interval_s:
            self._show()

    def summary(self, summary: Any) -> None:  # noqa: ANN401 - the pipeline's record, not imported here
        """Tell how a run ended."""
        self._figures.finish(summary.outputs)
        self._show()
        self._console.summary(summary)

    def _show(self) -> None:
        self._shown = self._clock()
        for board in list(self._boards):
            try:
                board.show(self._figures)
            except OutputError as error:
                self._boards.remove(board)
                self._console.note(f"{error.message}; it stays as it is")


def _claim(path: Path, beginning: str, option: str) -> None:
    content = _content(path)
    if content and not content.startswith(beginning):
        raise OutputError(f"{path}: is there and was not written by {option}", f"choose another {option}")


def _content(path: Path) -> str:
    try:
        return path.read_text("utf-8", errors="replace")
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise OutputError(f"{path}: cannot be read: {error.strerror}") from error


def _replace(path: Path, text: str) -> None:
    # Late, so that bad options do not wait for pyarrow.
    from poolembed.io import replace_text

    replace_text(path, text)
