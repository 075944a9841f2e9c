"""`rerank`: a query and its documents to a ranking."""

from typing import TYPE_CHECKING

from poolembed.config import JobConfig, RerankConfig
from poolembed.io import TextRole
from poolembed.pipeline.commands.command import Command, task_of

if TYPE_CHECKING:
    from poolembed.model import Operation
    from poolembed.runner import ModelSpec, PoolingRunner

QUERY = TextRole(name="query", candidates=("query", "query", "question"), only_string_column=False)
DOCUMENTS = TextRole(
    name="documents",
    candidates=("documents", "passages", "documents"),
    only_string_column=False,
    is_list=True,
)

# A row is as large as its list of documents.
MAX_CHUNK_ROWS = 512


def _check(spec: "ModelSpec", job: JobConfig) -> None:
    from poolembed.model.score_check import check_score

    check_score(spec, task_of(job, RerankConfig), job.pooler)


def _operation(runner: "PoolingRunner", job: JobConfig) -> "Operation":
    from poolembed.model.rerank import Rerank
    from poolembed.model.score import make_score

    config = task_of(job, RerankConfig)
    return Rerank(make_score(runner, config), config)


COMMAND = Command(roles=(QUERY, DOCUMENTS), check=_check, operation=_operation, max_chunk_rows=MAX_CHUNK_ROWS)
