"""The options that commands share, grouped by the record of `poolembed.config` they fill.

An option's name is the name of a field, and its environment variable is `POOLEMBED_` with that name.
"""

from collections.abc import Callable, Sequence
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


class KeyValue(click.ParamType):  # type: ignore[type-arg] # generic only since click 8.5
    """`KEY=VALUE`, as a pair of strings."""

    name = "key=value"

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        """Split `value` at its first equals sign; `param` and `ctx` name the option in an error."""
        key, sign, content = value.partition("=")
        if not sign or not key:
            self.fail(f"{value!r} is not KEY=VALUE", param, ctx)
        return key, content


class Count(click.ParamType):  # type: ignore[type-arg] # generic only since click 8.5
    """A whole number, or `auto`, which is None."""

    name = "count"

    def convert(
        self, value: str | int, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | None:
        """Read `value`; `param` and `ctx` name the option in an error."""
        if value == "auto":
            return None
        try:
            return int(value)
        except ValueError:
            self.fail(f"{value!r} is neither a number nor auto", param, ctx)


class Names(click.ParamType):  # type: ignore[type-arg] # generic only since click 8.5
    """Names between commas, as a tuple; a configuration file gives them as a list."""

    name = "names"

    def convert(
        self, value: str | Sequence[str], param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        """Split `value` at the commas; a list is taken as it is. `param` and `ctx` are click's."""
        if not isinstance(value, str):
            return tuple(value)
        return tuple(name.strip() for name in value.split(",") if name.strip())


def option(*spellings: str, **settings: Any) -> Decorator:  # noqa: ANN401 - click's own settings
    """A click option with the environment variable `POOLEMBED_<NAME>`."""
    name = next(s for s in spellings if s.startswith("--")).partition("/")[0].removeprefix("--")
    settings.setdefault("envvar", f"POOLEMBED_{name.upper().replace('-', '_')}")
    settings.setdefault("show_default", True)
    return click.option(*spellings, **settings)


MODEL = option("--model", "-m", default=DEFAULT_MODEL, metavar="MODEL", help="Model folder or hub name.")

# What changes how a model is understood, also without running it.
DECLARATION_OPTIONS = (
    option("--revision", metavar="REV", help="Branch, tag or commit of a hub model."),
    option(
        "--max-length", type=int, metavar="N", help="Most tokens of a row; the model's own limit by default."
    ),
    option(
        "--set",
        "overrides",
        type=KeyValue(),
        multiple=True,
        metavar="KEY=VALUE",
        help="Replace a setting of the model (see `poolembed inspect`) or a key of its config.json.",
    ),
    option("--trust-remote-code", is_flag=True, help="Run Python code that comes with the model."),
)

INPUT_OPTIONS = (
    click.argument("paths", metavar="INPUT...", nargs=-1, required=True),
    option(
        "--columns",
        type=Names(),
        metavar="A,B",
        help="Input columns to keep, in this order; all by default.",
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

_QUERY_FIELD = option(
    "--query-field", metavar="NAME", help="Column with the query; else by a known pair of names, see above."
)

PAIR_COLUMN_OPTIONS = (
    _QUERY_FIELD,
    option("--document-field", metavar="NAME", help="Column with the document; else by that pair of names."),
)
"""For commands that read a query and a document in each row."""

LIST_COLUMN_OPTIONS = (
    _QUERY_FIELD,
    option(
        "--documents-field", metavar="NAME", help="Column with the documents; else by that pair of names."
    ),
)
"""For commands that read a query and a list of documents in each row."""

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
    MODEL,
    *DECLARATION_OPTIONS,
    option("--device", default="auto", metavar="DEVICE", help="auto, cpu, cuda, cuda:N or mps."),
    option("--dtype", type=click.Choice(DTYPES), default="auto", help="Precision of the transformer."),
)

PROMPT_OPTIONS = (
    option("--prompt", metavar="TEXT", help="Text put before every row."),
    option("--prompt-name", metavar="NAME", help="A prompt that the model declares, by name."),
)

POOLER_OPTIONS = (
    option(
        "--pooling",
        "pooling_type",
        metavar="NAME",
        help="CLS, LAST, MEAN, MAX, MEAN_SQRT_LEN, WEIGHTED_MEAN, or several joined by +.",
    ),
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
    option(
        "--workers",
        type=Count(),
        default=RUN_DEFAULTS.workers,
        metavar="N",
        help="Processes that share the cores of a CPU, or auto: the faster of one and one a core.",
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

_BEGINNING = (*INPUT_OPTIONS, *MODEL_OPTIONS)
_END = (*OUTPUT_OPTIONS, *RUN_OPTIONS, *CONSOLE_OPTIONS)

SHARED_OPTIONS = (*_BEGINNING, *_END)
"""What every command takes."""

POOLING_OPTIONS = (*_BEGINNING, *PROMPT_OPTIONS, *POOLER_OPTIONS, *_END)
"""The same, with what commands take that give what a pooler makes of one prompted text."""


def with_options(options: Sequence[Decorator]) -> Decorator:
    """Return a decorator that gives a command `options`, in that order."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for add in reversed(options):
            command = add(command)
        return command

    return decorate


def job_from(command: str, options: dict[str, Any], task: type[TaskConfig] = TaskConfig) -> JobConfig:
    """Return a job, with the values of options in the records that hold them, checked.

    Args:
        command: the command's name.
        options: values by name, as click hands them over.
        task: the record of what the command alone must know.

    Returns:
        The job, checked.

    Raises:
        ConfigError: the values contradict each other; lists every problem.
    """
    job = JobConfig(
        command=command,
        task=fill(task, options),
        input=fill(InputConfig, options),
        model=fill(ModelConfig, options),
        pooler=fill(PoolerConfig, options),
        output=fill(OutputConfig, options),
        run=fill(RunConfig, options),
    )
    job.check()
    return job


def fill(record: type[C], options: dict[str, Any]) -> C:
    """Return a `record` made of those `options` that are its fields."""
    names = {field.name for field in fields(record)}  # type: ignore[arg-type]
    return record(**{name: value for name, value in options.items() if name in names})
