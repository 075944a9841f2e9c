"""`score`: a query and a document to a number."""

from typing import TYPE_CHECKING

from poolembed.config import JobConfig, PairConfig
from poolembed.io import TextRole
from poolembed.pipeline.commands.command import Command, task_of

if TYPE_CHECKING:
    from poolembed.model import Operation
    from poolembed.runner import ModelSpec, PoolingRunner

QUERY = TextRole(
    name="query",
    candidates=("query", "query", "question", "sentence1", "text_1", "text1"),
    only_string_column=False,
)
DOCUMENT = TextRole(
    name="document",
    candidates=("document", "passage", "answer", "sentence2", "text_2", "text2"),
    only_string_column=False,
)


def _check(spec: "ModelSpec", job: JobConfig) -> None:
    from poolembed.model.score_check import check_score

    check_score(spec, task_of(job, PairConfig), job.pooler)


def _operation(runner: "PoolingRunner", job: JobConfig) -> "Operation":
    from poolembed.model.score import make_score

    return make_score(runner, task_of(job, PairConfig))


COMMAND = Command(roles=(QUERY, DOCUMENT), check=_check, operation=_operation)
