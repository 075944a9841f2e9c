"""`classify`: a text to its class."""

from typing import TYPE_CHECKING

from poolembed.config import ClassifyConfig, JobConfig
from poolembed.pipeline.commands.command import TEXT, Command, params_of, prompt_of, task_of

if TYPE_CHECKING:
    from poolembed.model import Operation
    from poolembed.runner import ModelSpec, PoolingRunner


def _check(spec: "ModelSpec", job: JobConfig) -> None:
    from poolembed.model.classify import check_classify

    check_classify(spec, task_of(job, ClassifyConfig), params_of(job))
    prompt_of(spec, job)


def _operation(runner: "PoolingRunner", job: JobConfig) -> "Operation":
    from poolembed.model.classify import Classify

    return Classify.of(runner, prompt_of(runner.spec, job), task_of(job, ClassifyConfig), params_of(job))


COMMAND = Command(roles=(TEXT,), check=_check, operation=_operation)
