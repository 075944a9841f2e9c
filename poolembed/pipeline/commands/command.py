"""What there is to say of a command, and what several of them share."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from poolembed.config import JobConfig, TaskConfig
from poolembed.io import TextRole

if TYPE_CHECKING:
    from poolembed.model import Operation
    from poolembed.model.prompted import Prompted
    from poolembed.pipeline.row_texts import RowTexts
    from poolembed.runner import ModelSpec, PoolingParams, PoolingRunner

C = TypeVar("C", bound=TaskConfig)

TEXT = TextRole(name="text", candidates=("text",), only_string_column=True)


def as_it_is(
    operation: "Operation", job: JobConfig, rows: "RowTexts", known: Mapping[str, str]
) -> "Operation":
    """Return `operation`; most of them need none of `job`, `rows` and `known` before the first result."""
    del job, rows, known
    return operation


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One command on rows.

    Attributes:
        roles: the text columns it reads.
        check: refuses, with a ConfigError, a job that the model cannot do; before weights are loaded.
        operation: makes what is done with the texts, from the loaded model and a checked job.
        prepare: finishes an operation that must see some rows before the first result, or the settings of
            the run that is gone on with.
        max_chunk_rows: most rows of a chunk, whatever the job says, where results are large.
    """

    roles: tuple[TextRole, ...]
    check: "Callable[[ModelSpec, JobConfig], object]"
    operation: "Callable[[PoolingRunner, JobConfig], Operation]"
    prepare: "Callable[[Operation, JobConfig, RowTexts, Mapping[str, str]], Operation]" = as_it_is
    max_chunk_rows: int | None = None


def text_command(
    operation: "Callable[[], type[Prompted[C]]]",
    config: type[C],
    *,
    prepare: "Callable[[Operation, JobConfig, RowTexts, Mapping[str, str]], Operation]" = as_it_is,
    max_chunk_rows: int | None = None,
) -> Command:
    """Return a command on one prompted text a row.

    Args:
        operation: imports and returns what is done with the texts.
        config: the record of what the command alone must know.
        prepare: see `Command`.
        max_chunk_rows: see `Command`.
    """

    def check(spec: "ModelSpec", job: JobConfig) -> None:
        operation().check(spec, task_of(job, config), params_of(job))
        prompt_of(spec, job)

    def make(runner: "PoolingRunner", job: JobConfig) -> "Operation":
        return operation().of(runner, prompt_of(runner.spec, job), task_of(job, config), params_of(job))

    return Command(roles=(TEXT,), check=check, operation=make, prepare=prepare, max_chunk_rows=max_chunk_rows)


def task_of(job: JobConfig, kind: type[C]) -> C:
    """Return what the command of `job` alone must know, or the defaults of `kind` where nothing was said."""
    return job.task if isinstance(job.task, kind) else kind()


def params_of(job: JobConfig) -> "PoolingParams":
    """Return what the user asks of the pooler for every row; the rest is in the model's configuration."""
    from poolembed.runner import PoolingParams

    return PoolingParams(use_activation=job.pooler.use_activation)


def prompt_of(spec: "ModelSpec", job: JobConfig) -> str:
    """Return the text that `job` puts before every text, out of the prompts of `spec` where it names one.

    Raises:
        ConfigError: the model declares no prompt of that name.
    """
    from poolembed.runner import named_prompt

    return named_prompt(spec, job.model.prompt_name) if job.model.prompt is None else job.model.prompt
