"""What a person sees: progress, notes, the summary. The only place that prints.

Standard output carries results (the summary as JSON, when asked for); everything else goes to standard
error: a bar where that is a terminal, and otherwise a plain line now and then.
"""

import json
import sys
import time
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Self

import click
from tqdm import tqdm

from poolembed.cli.log import Log

# Least seconds between two plain lines of progress in a log.
LOG_INTERVAL_S = 30.0


class Console:
    """Progress and summary of one run.

    Args:
        log: where lines go.
        quiet: print nothing but errors.
        as_json: print the summary as JSON on standard output.
        log_interval_s: least seconds between two lines of progress where there is no terminal.
    """

    def __init__(
        self, log: Log, *, quiet: bool, as_json: bool, log_interval_s: float = LOG_INTERVAL_S
    ) -> None:
        self._log = log
        self._quiet = quiet
        self._as_json = as_json
        self._log_interval_s = log_interval_s
        self._bar: tqdm[Any] | None = None
        self._num_rows = self._rows_done = self._tokens_done = 0
        self._started = self._reported = time.monotonic()
        self._closing = ExitStack()

    def __enter__(self) -> Self:
        self._closing.enter_context(self._log.others())
        # The seconds before the first row; `start` replaces it.
        self._show(bar_format="{desc}", desc="reading the input, loading the model ...")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close_bar()
        self._closing.close()

    def note(self, message: str) -> None:
        """Tell something worth knowing, once."""
        if not self._quiet:
            self._log.line("warning", "note", message)

    def start(self, num_rows: int) -> None:
        """Begin to count rows."""
        self._num_rows = num_rows
        self._started = self._reported = time.monotonic()
        self._close_bar()
        self._show(total=num_rows, unit=" rows")

    def advance(self, num_rows: int, num_tokens: int) -> None:
        """Count rows that are computed.

        Args:
            num_rows: rows since the last call.
            num_tokens: their tokens.
        """
        self._rows_done += num_rows
        self._tokens_done += num_tokens
        now = time.monotonic()
        rate = self._tokens_done / max(now - self._started, 1e-9)
        if self._bar is not None:
            self._bar.set_postfix_str(f"{rate:,.0f} tokens/s", refresh=False)
            self._bar.update(num_rows)
        elif not self._quiet and now - self._reported >= self._log_interval_s:
            self._reported = now
            left = (self._num_rows - self._rows_done) * (now - self._started) / max(self._rows_done, 1)
            self._log.line(
                "info",
                "progress",
                f"{self._rows_done:,} of {self._num_rows:,} rows, {rate:,.0f} tokens/s, "
                f"about {_duration(left)} left",
                rows_done=self._rows_done,
                rows_total=self._num_rows,
                tokens_per_s=round(rate, 3),
                eta_s=round(left, 1),
            )

    def summary(self, summary: Any) -> None:  # noqa: ANN401 - the pipeline's record, not imported here
        """Print how a run ended."""
        self._close_bar()
        if self._as_json:
            click.echo(json.dumps(summary.to_json(), ensure_ascii=False))
        if self._quiet:
            return
        if self._log.as_json:
            self._log.line("info", "summary", summary.lines()[0], **summary.to_json())
        else:
            for line in summary.lines():
                click.echo(line, err=True)

    def _show(self, **bar: Any) -> None:  # noqa: ANN401 - tqdm's own settings
        if not (self._quiet or self._log.as_json) and sys.stderr.isatty():
            self._bar = tqdm(file=sys.stderr, dynamic_ncols=True, leave=False, **bar)

    def _close_bar(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h {minutes:02d}m" if hours else f"{minutes}m {rest:02d}s"
