"""The options that commands share, grouped by the record of `poolembed.config` they fill.

An option's name is the name of a field, and its environment variable is `POOLEMBED_` with that name.
"""

from collections.abc import Callable
from dataclasses import fields
from typing import Any, TypeVar

import click

from poolembed.cli.settings import load_settings
from poolembed.config import (
    DEFAULT_MODEL,
    DTYPES,
    ON_ERROR,
    ON_LONG,
    InputConfig,
    JobConfig,
    ModelConfig,
    OutputConfig,
    PoolerConfig,
    RunConfig,
    TaskConfig,
)

C = TypeVar("C")
Decorator = Callable[[Any], Any]

RUN_DEFAULTS = RunConfig()


def option(*spellings: str, **settings: Any) -> Decorator:  # noqa: ANN401 - click's own settings
    """A click option with the environment variable `POOLEMBED_<NAME>`."""
    name = next(s for s in spellings if s.startswith("--")).partition("/")[0].removeprefix("--")
    settings.setdefault("envvar", f"POOLEMBED_{name.upper().replace('-', '_')}")
    settings.setdefault("show_default", True)
    return click.option(*spellings, **settings)


INPUT_OPTIONS = (
    click.argument("paths", metavar="INPUT...", nargs=-1, required=True),
    option(
        "--columns",
        metavar="A,B",
        help="Input columns to keep, in this order; all by default. `` keeps none.",
    ),
    option("--limit", type=int, metavar="N", help="Read at most N rows."),
    option(
        "--on-error",
        type=click.Choice(ON_ERROR),
        default="fail",
        help="What a row that cannot be used does: stop the run, or go to OUT.rejects.jsonl.",
    ),
)

TEXT_OPTIONS = (
    option(
        "--text-field", metavar="NAME", help="Column with the text; else `text`, else the only string column."
    ),
    option(
        "--template",
        metavar="TEXT",
        help=r"Make the text of several columns, such as '{title}\n{text}'.",
    ),
)
"""For commands that read one text a row."""

LONG_TEXT_OPTIONS = (
    option(
        "--on-long",
        type=click.Choice(ON_LONG),
        default="truncate",
        help="Texts with more tokens than --max-length: cut them, refuse the row, or compute windows of "
        "tokens and average them.",
    ),
    option(
        "--overlap-tokens",
        type=int,
        default=0,
        metavar="N",
        help="Tokens of text that a window repeats from the one before.",
    ),
)
"""For commands that give one result a text."""

DIMENSION_OPTIONS = (
    option("--dimensions", type=int, metavar="N", help="Keep the first N dimensions (matryoshka models)."),
)
"""For commands that write vectors."""

MODEL_OPTIONS = (
    option("--model", "-m", default=DEFAULT_MODEL, metavar="MODEL", help="Model folder or hub name."),
    option("--revision", metavar="REV", help="Branch, tag or commit of a hub model."),
    option("--device", default="auto", metavar="DEVICE", help="auto, cpu, cuda, cuda:N or mps."),
    option("--dtype", type=click.Choice(DTYPES), default="auto", help="Precision of the transformer."),
    option(
        "--max-length", type=int, metavar="N", help="Most tokens of a row; the model's own limit by default."
    ),
    option("--prompt", metavar="TEXT", help="Text put before every row."),
    option("--prompt-name", metavar="NAME", help="A prompt that the model declares, by name."),
    option("--trust-remote-code", is_flag=True, help="Run Python code that comes with the model."),
)

POOLER_OPTIONS = (
    option(
        "--activation/--no-activation",
        "use_activation",
        default=None,
        help="Apply the model's output activation, such as normalisation; the model decides by default.",
    ),
)

OUTPUT_OPTIONS = (
    option("--output", "-o", metavar="OUT", help="Output file, or a directory (ending in /) for parts."),
    option("--overwrite", is_flag=True, help="Replace an existing output."),
)

RUN_OPTIONS = (
    option(
        "--batch-tokens", type=int, metavar="N", help="Most tokens computed at once; by device by default."
    ),
    option(
        "--chunk-rows",
        type=int,
        default=RUN_DEFAULTS.chunk_rows,
        metavar="N",
        help="Rows held and sorted by length together.",
    ),
    option(
        "--chunk-bytes",
        type=int,
        default=RUN_DEFAULTS.chunk_bytes,
        metavar="N",
        help="Most bytes of text of a chunk.",
    ),
)

CONSOLE_OPTIONS = (
    option("--quiet", "-q", is_flag=True, help="Print nothing but errors."),
    option("--json", "as_json", is_flag=True, help="Print the summary as JSON on standard output."),
    option(
        "--config",
        type=click.Path(dir_okay=False),
        callback=load_settings,
        is_eager=True,
        expose_value=False,
        metavar="FILE",
        help="TOML file of options.",
    ),
)

SHARED_OPTIONS = (
    *INPUT_OPTIONS,
    *MODEL_OPTIONS,
    *POOLER_OPTIONS,
    *OUTPUT_OPTIONS,
    *RUN_OPTIONS,
    *CONSOLE_OPTIONS,
)


def shared_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command every option of `SHARED_OPTIONS`, in that order."""
    for decorate in reversed(SHARED_OPTIONS):
        command = decorate(command)
    return command


def job_from(command: str, options: dict[str, Any], task: type[TaskConfig] = TaskConfig) -> JobConfig:
    """Return a job, with the values of options in the records that hold them, checked.

    Args:
        command: the command's name.
        options: values by name, as click hands them over.
        task: the record of what the command alone must know.

    Raises:
        ConfigError: the values contradict each other; lists every problem.
    """
    columns = options["columns"]
    if columns is not None:
        options = options | {"columns": tuple(name.strip() for name in columns.split(",") if name.strip())}
    job = JobConfig(
        command=command,
        task=_fill(task, options),
        input=_fill(InputConfig, options),
        model=_fill(ModelConfig, options),
        pooler=_fill(PoolerConfig, options),
        output=_fill(OutputConfig, options),
        run=_fill(RunConfig, options),
    )
    job.check()
    return job


def _fill(record: type[C], options: dict[str, Any]) -> C:
    names = {field.name for field in fields(record)}  # type: ignore[arg-type]
    return record(**{name: value for name, value in options.items() if name in names})
