"""What each way to end a run is called, and what it exits with."""

import traceback
from dataclasses import dataclass

import click

from poolembed.cli.log import Log
from poolembed.errors import EXIT_BUG, EXIT_INTERRUPTED, EXIT_TERMINATED, PoolembedError, UnfinishedError


class Terminated(BaseException):
    """SIGTERM arrived; raised in the main thread so that everything opened is closed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """How a run ended that did not end well.

    Attributes:
        event: `error`, `stopped` or `bug`.
        message: what happened.
        exit_code: what the command exits with.
        hint: what to do about it.
        traceback: where it happened, for bugs.
    """

    event: str
    message: str
    exit_code: int
    hint: str | None = None
    traceback: str | None = None

    @classmethod
    def of(cls, error: BaseException) -> "Failure":
        """Return what an exception stands for; whatever is not expected is a bug."""
        if isinstance(error, PoolembedError):
            event = "stopped" if isinstance(error, UnfinishedError) else "error"
            return cls(event=event, message=error.message, hint=error.hint, exit_code=error.exit_code)
        if isinstance(error, KeyboardInterrupt | Terminated):
            interrupted = isinstance(error, KeyboardInterrupt)
            word = "interrupted" if interrupted else "terminated"
            return cls(
                event="stopped",
                message=f"{word}; no half-written output was left",
                exit_code=EXIT_INTERRUPTED if interrupted else EXIT_TERMINATED,
            )
        return cls(
            event="bug",
            message="this is a bug in poolembed: please report the lines above",
            exit_code=EXIT_BUG,
            traceback="".join(traceback.format_exception(error)),
        )

    def tell(self, log: Log) -> None:
        """Write it to the log."""
        if log.as_json:
            fields = {"exit_code": self.exit_code, "hint": self.hint, "traceback": self.traceback}
            log.line("error", self.event, self.message, **fields)
            return
        if self.traceback is not None:
            click.echo(self.traceback, err=True, nl=False)
        hint = f"\n  {self.hint}" if self.hint else ""
        log.line("error", self.event, f"{'error: ' if self.event == 'error' else ''}{self.message}{hint}")
