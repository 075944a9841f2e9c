"""The options that commands share, grouped by the record of `poolembed.config` they fill.

An option's name is the name of a field, and its environment variable is `POOLEMBED_` with that name.
"""

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any, TypeVar

import click

from poolembed.cli.input_options import INPUT_OPTIONS, PATHS, PATHS_UNLESS_JOINED
from poolembed.cli.log import LOG_FORMATS, keep_format
from poolembed.cli.option import Count, Decorator, KeyValue, option
from poolembed.cli.settings import load_settings
from poolembed.config import (
    DEFAULT_MODEL,
    DTYPES,
    MODEL_IMPLS,
    ON_LONG,
    OUTPUT_FORMATS,
    InputConfig,
    JobConfig,
    LimitConfig,
    ModelConfig,
    OutputConfig,
    PoolerConfig,
    RunConfig,
    TaskConfig,
)

C = TypeVar("C")
RUN_DEFAULTS = RunConfig()


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
        help="Texts with more tokens than --max-length: cut them, refuse the row, compute windows of tokens "
        "and average them, or write a row for each window.",
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
    option(
        "--dtype",
        type=click.Choice(DTYPES),
        default="auto",
        help="Precision of the transformer; int8 is for the CPU.",
    ),
    option(
        "--model-impl",
        type=click.Choice(MODEL_IMPLS),
        default="auto",
        help="Layers of poolembed where it has them for the model, or always those of transformers.",
    ),
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
    option(
        "--output", "-o", metavar="OUT", help="Output file, or a directory (ending in /) for parts, or a URL."
    ),
    option("--overwrite", is_flag=True, help="Replace an existing output."),
    option(
        "--staging",
        metavar="DIR",
        help="Where outputs behind URLs are made; ~/.cache/poolembed/outputs by default.",
    ),
    option(
        "--format",
        type=click.Choice(OUTPUT_FORMATS),
        help="Format of the output; by default what the name says (.parquet, .arrow, .feather, .jsonl, "
        ".jsonl.gz, .npy, .trec), and Parquet for parts.",
    ),
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
        help="Batches computed at once, each with its share of the cores; auto tries what is faster.",
    ),
)

LIMIT_OPTIONS = (
    option(
        "--max-rejects",
        metavar="N|P%",
        help="Fail when more rows than this are rejected (needs --on-error skip).",
    ),
    option(
        "--max-truncated",
        metavar="N|P%",
        help="Fail when more rows than this lose text to the maximum length.",
    ),
    option(
        "--deadline",
        metavar="HH:MM|DURATION",
        help="Stop at this time, or after so long (90m, 2h30m), with what is done; exit code 75.",
    ),
)

CONSOLE_OPTIONS = (
    option("--quiet", "-q", is_flag=True, help="Print nothing but errors."),
    option(
        "--status",
        metavar="FILE",
        help="Keep FILE up to date with how far the run is, as JSON, at most once a second.",
    ),
    option(
        "--metrics",
        metavar="FILE",
        help="Keep FILE up to date with the run's metrics, in the text format of Prometheus.",
    ),
    option(
        "--log-format",
        type=click.Choice(LOG_FORMATS),
        default="text",
        callback=keep_format,
        is_eager=True,
        help="What stands on standard error: words and a bar, or a JSON object a line.",
    ),
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

_BEGINNING = (PATHS, *INPUT_OPTIONS, *MODEL_OPTIONS)
_END = (*OUTPUT_OPTIONS, *RUN_OPTIONS, *LIMIT_OPTIONS, *CONSOLE_OPTIONS)

SHARED_OPTIONS = (*_BEGINNING, *_END)
"""What every command takes."""

JOINABLE_OPTIONS = (PATHS_UNLESS_JOINED, *INPUT_OPTIONS, *MODEL_OPTIONS, *_END)
"""The same, for commands whose input may be a join."""

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
        limits=fill(LimitConfig, options),
    )
    job.check()
    return job


def fill(record: type[C], options: dict[str, Any]) -> C:
    """Return a `record` made of those `options` that are its fields."""
    names = {field.name for field in fields(record)}  # type: ignore[arg-type]
    return record(**{name: value for name, value in options.items() if name in names})
