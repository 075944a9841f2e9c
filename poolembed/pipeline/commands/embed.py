"""`embed`: a text to a vector."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from poolembed.config import EmbedConfig, JobConfig
from poolembed.pipeline.commands.command import TEXT, Command, params_of, prompt_of, task_of

if TYPE_CHECKING:
    from poolembed.model import Operation
    from poolembed.pipeline.row_texts import RowTexts
    from poolembed.runner import ModelSpec, PoolingRunner


def _check(spec: "ModelSpec", job: JobConfig) -> None:
    from poolembed.model.embed import check_embed

    check_embed(spec, task_of(job, EmbedConfig), params_of(job))
    prompt_of(spec, job)


def _operation(runner: "PoolingRunner", job: JobConfig) -> "Operation":
    from poolembed.model.embed import Embed

    return Embed.of(runner, prompt_of(runner.spec, job), task_of(job, EmbedConfig), params_of(job))


def _prepare(
    operation: "Operation", job: JobConfig, rows: "RowTexts", known: Mapping[str, str]
) -> "Operation":
    from poolembed.model.embed import Embed
    from poolembed.pipeline.ranges import with_ranges

    assert isinstance(operation, Embed)
    return with_ranges(operation, task_of(job, EmbedConfig), rows, known)


COMMAND = Command(roles=(TEXT,), check=_check, operation=_operation, prepare=_prepare)
