"""`embed`: a text to a vector."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from poolembed.config import EmbedConfig, JobConfig
from poolembed.pipeline.commands.command import task_of, text_command

if TYPE_CHECKING:
    from poolembed.model import Operation
    from poolembed.model.embed import Embed
    from poolembed.pipeline.row_texts import RowTexts


def _operation() -> "type[Embed]":
    from poolembed.model.embed import Embed

    return Embed


def _prepare(
    operation: "Operation", job: JobConfig, rows: "RowTexts", known: Mapping[str, str]
) -> "Operation":
    from poolembed.model.embed import Embed
    from poolembed.pipeline.ranges import with_ranges

    assert isinstance(operation, Embed)
    return with_ranges(operation, task_of(job, EmbedConfig), rows, known)


COMMAND = text_command(_operation, EmbedConfig, prepare=_prepare)
