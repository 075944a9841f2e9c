"""Lines on standard error: words for a person, or one JSON object a line for a program."""

import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Literal, get_args

import click
from tqdm import tqdm

LogFormat = Literal["text", "json"]
LOG_FORMATS: tuple[LogFormat, ...] = get_args(LogFormat)
META_KEY = "poolembed.log_format"
"""Where click's context keeps the format, so that failures of every kind are told in it."""


class Log:
    """Writes lines to standard error.

    Args:
        log_format: `text`, or `json` for objects with `ts`, `level`, `event`, `message` and `fields`.
    """

    def __init__(self, log_format: LogFormat) -> None:
        self.as_json = log_format == "json"

    def line(self, level: str, event: str, message: str, **fields: Any) -> None:  # noqa: ANN401
        """Write one line.

        Args:
            level: `info`, `warning` or `error`.
            event: stable name of what happened, for programs.
            message: the same in words.
            fields: figures and names of it; only programs see them.
        """
        text = _object(level, event, message, fields) if self.as_json else f"poolembed: {message}"
        tqdm.write(text, file=sys.stderr)  # above the bar, if there is one

    @contextmanager
    def others(self) -> Iterator[None]:
        """Write what libraries log, and in JSON also what they warn of, in the same format meanwhile."""
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(_Json() if self.as_json else logging.Formatter("poolembed: %(message)s"))
        handler.setLevel(logging.WARNING)
        root = logging.getLogger()
        root.addHandler(handler)
        if self.as_json:
            logging.captureWarnings(capture=True)
        try:
            yield
        finally:
            if self.as_json:
                logging.captureWarnings(capture=False)
            root.removeHandler(handler)


def log_of(ctx: click.Context) -> Log:
    """Return the log of the command that `ctx` belongs to; that for persons until its options are known."""
    return Log(ctx.meta.get(META_KEY, "text"))


def keep_format(ctx: click.Context, param: click.Parameter, value: LogFormat) -> LogFormat:
    """Keep `value`, that of the option `param` (`--log-format`), in the context `ctx`, and return it."""
    del param
    ctx.meta[META_KEY] = value
    return value


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return _object(
            record.levelname.lower(), "library", record.getMessage().strip(), {"logger": record.name}
        )


def _object(level: str, event: str, message: str, fields: dict[str, Any]) -> str:
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    content = {"ts": now, "level": level, "event": event, "message": message, "fields": fields}
    return json.dumps(content, ensure_ascii=False)
