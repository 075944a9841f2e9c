"""`sparse`: a text to weights of tokens."""

from typing import TYPE_CHECKING

from poolembed.config import JobConfig, SparseConfig
from poolembed.pipeline.commands.command import TEXT, Command, params_of, prompt_of, task_of

if TYPE_CHECKING:
    from poolembed.model import Operation
    from poolembed.runner import ModelSpec, PoolingRunner


def _check(spec: "ModelSpec", job: JobConfig) -> None:
    from poolembed.model.sparse import check_sparse

    check_sparse(spec, task_of(job, SparseConfig), params_of(job))
    prompt_of(spec, job)


def _operation(runner: "PoolingRunner", job: JobConfig) -> "Operation":
    from poolembed.model.sparse import Sparse

    return Sparse.of(runner, prompt_of(runner.spec, job), task_of(job, SparseConfig), params_of(job))


COMMAND = Command(roles=(TEXT,), check=_check, operation=_operation)
