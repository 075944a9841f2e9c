"""`reward`: a text to its rewards."""

from typing import TYPE_CHECKING

from poolembed.config import JobConfig, RewardConfig
from poolembed.pipeline.commands.command import TEXT, Command, params_of, prompt_of, task_of

if TYPE_CHECKING:
    from poolembed.model import Operation
    from poolembed.runner import ModelSpec, PoolingRunner


def _check(spec: "ModelSpec", job: JobConfig) -> None:
    from poolembed.model.reward import check_reward

    check_reward(spec, task_of(job, RewardConfig), params_of(job))
    prompt_of(spec, job)


def _operation(runner: "PoolingRunner", job: JobConfig) -> "Operation":
    from poolembed.model.reward import Reward

    return Reward.of(runner, prompt_of(runner.spec, job), task_of(job, RewardConfig), params_of(job))


COMMAND = Command(roles=(TEXT,), check=_check, operation=_operation)
