"""How far a run is, in figures, and these as a status file and as Prometheus metrics."""

import json
import os
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

Phase = Literal["loading", "running", "writing", "done", "failed", "stopped"]


@dataclass(slots=True, kw_only=True)
class Figures:
    """How far a run is.

    Attributes:
        command: what is run.
        target: the output as the user named it, or the input where they did not.
        clock: seconds since the epoch.
        phase: `loading` until the first row, `writing` once every row is computed.
        started: when the run began, by `clock`.
        running: when its first row came; None before.
        num_rows: rows of the input; None before they are counted.
        num_done: rows that are done, rejected and reused ones included.
        num_rejected: rows that were refused.
        num_reused: rows whose results were there already.
        num_tokens: tokens computed.
        outputs: the files written, at the end.
        error: what ended the run, in words.
        exit_code: what the command exits with; None while it runs.
    """

    command: str
    target: str
    clock: Callable[[], float] = time.time
    phase: Phase = "loading"
    started: float = field(init=False)
    running: float | None = None
    num_rows: int | None = None
    num_done: int = 0
    num_rejected: int = 0
    num_reused: int = 0
    num_tokens: int = 0
    outputs: tuple[str, ...] = ()
    error: str | None = None
    exit_code: int | None = None

    def __post_init__(self) -> None:
        self.started = self.clock()

    def start(self, num_rows: int) -> None:
        """Take the number of rows, `num_rows`; the first will come now."""
        self.phase, self.num_rows, self.running = "running", num_rows, self.clock()

    def advance(self, num_rows: int, num_tokens: int, num_rejected: int, num_reused: int) -> None:
        """Take what was done since the last call; see `pipeline.Progress.advance`.

        Args:
            num_rows: rows that are done.
            num_tokens: tokens computed for them.
            num_rejected: of the rows, those that were refused.
            num_reused: of the rows, those whose results were there already.
        """
        self.num_done += num_rows
        self.num_tokens += num_tokens
        self.num_rejected += num_rejected
        self.num_reused += num_reused
        if self.num_done == self.num_rows:
            self.phase = "writing"

    def finish(self, outputs: tuple[str, ...]) -> None:
        """Take the end of a run that went well, and the `outputs` it wrote."""
        self.phase, self.exit_code, self.outputs = "done", 0, outputs

    def fail(self, phase: Phase, error: str, exit_code: int) -> None:
        """Take the end of a run that did not.

        Args:
            phase: `failed` or `stopped`.
            error: what ended it.
            exit_code: what the command exits with.
        """
        self.phase, self.error, self.exit_code = phase, error, exit_code

    @property
    def duration_s(self) -> float:
        """Seconds since the run began."""
        return max(0.0, self.clock() - self.started)

    def per_s(self, count: int) -> float:
        """Return `count` by the seconds since the first row; 0 before that."""
        seconds = 0.0 if self.running is None else self.clock() - self.running
        return count / seconds if seconds > 0 else 0.0

    @property
    def eta_s(self) -> float | None:
        """Seconds until the last row, at the rate so far; None while there is none."""
        rate = self.per_s(self.num_done - self.num_reused)
        if self.num_rows is None or rate == 0 or self.exit_code is not None:
            return None
        return (self.num_rows - self.num_done) / rate


def status_text(figures: Figures) -> str:
    """Return `figures` as the content of the status file, one JSON object."""
    content: dict[str, Any] = {
        "phase": figures.phase,
        "command": figures.command,
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "started": _moment(figures.started),
        "updated": _moment(figures.clock()),
        "rows_total": figures.num_rows,
        "rows_done": figures.num_done,
        "rows_rejected": figures.num_rejected,
        "rows_reused": figures.num_reused,
        "tokens": figures.num_tokens,
        "rows_per_s": round(figures.per_s(figures.num_done - figures.num_reused), 3),
        "tokens_per_s": round(figures.per_s(figures.num_tokens), 3),
        "eta_s": None if figures.eta_s is None else round(figures.eta_s, 1),
        "outputs": figures.outputs,
        "error": figures.error,
        "exit_code": figures.exit_code,
    }
    return json.dumps(content, ensure_ascii=False, indent=1) + "\n"


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
