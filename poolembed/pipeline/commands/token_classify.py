"""`token-classify`: a text to its entities."""

from typing import TYPE_CHECKING

from poolembed.config import EntityConfig, JobConfig
from poolembed.pipeline.commands.command import TEXT, Command, task_of

if TYPE_CHECKING:
    from poolembed.model import Operation
    from poolembed.runner import ModelSpec, PoolingRunner


def _check(spec: "ModelSpec", job: JobConfig) -> None:
    del job
    from poolembed.model.entities import check_entities

    check_entities(spec)


def _operation(runner: "PoolingRunner", job: JobConfig) -> "Operation":
    from poolembed.model.entities import make_entities

    return make_entities(runner, task_of(job, EntityConfig))


COMMAND = Command(roles=(TEXT,), check=_check, operation=_operation)
