"""`poolembed rerank`."""

from poolembed.cli.command import task_command
from poolembed.cli.option import option
from poolembed.cli.options import DIMENSION_OPTIONS, LIST_COLUMN_OPTIONS, SHARED_OPTIONS
from poolembed.cli.score import PAIR_OPTIONS, RAW_OPTIONS
from poolembed.config import RerankConfig

RERANK_OPTIONS = (
    option("--top-k", type=int, metavar="K", help="Give the K best documents of a row; all by default."),
    option("--texts", is_flag=True, help="Give the texts of the documents as well."),
)

HELP = """Rank the documents of each row's query, and write the rows with their rankings to Parquet.

Each row has a query and a list of documents, strings or objects with `text` and perhaps `id`, in columns
query and documents, query and passages, or question and documents. Models score as in `poolembed score`.

The output (searches.jsonl gives searches.rerank.parquet) has the input's columns and `ranking`, a list of
{index, id, score}, best first: `index` is the document's place in the row's list, from 0, and `id` its id,
or the place again. Documents with equal scores keep their order.

\b
Examples:
  poolembed rerank searches.jsonl
  poolembed rerank searches.jsonl --model my-reranker --top-k 10 --texts --columns query
"""

rerank = task_command(
    "rerank",
    RerankConfig,
    (*LIST_COLUMN_OPTIONS, *RERANK_OPTIONS, *PAIR_OPTIONS, *RAW_OPTIONS, *DIMENSION_OPTIONS),
    short_help="Rank the documents of each row's query.",
    help_text=HELP,
    shared=SHARED_OPTIONS,
)
