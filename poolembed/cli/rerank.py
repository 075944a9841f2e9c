"""`poolembed rerank`."""

from poolembed.cli.command import task_command
from poolembed.cli.join_options import JOIN_OPTIONS
from poolembed.cli.option import option
from poolembed.cli.options import (
    DIMENSION_OPTIONS,
    JOINABLE_OPTIONS,
    LIST_COLUMN_OPTIONS,
)
from poolembed.cli.score import PAIR_OPTIONS, RAW_OPTIONS
from poolembed.config import RerankConfig

RERANK_OPTIONS = (
    option("--top-k", type=int, metavar="K", help="Give the K best documents of a row; all by default."),
    option("--texts", is_flag=True, help="Give the texts of the documents as well."),
    option(
        "--run-tag",
        metavar="NAME",
        help="Name of the run in a TREC run (-o RUN.trec), one word; `poolembed` by default.",
    ),
)

HELP = """Rank the documents of each row's query, and write the rows with their rankings to Parquet.

Each row has a query and a list of documents, strings or objects with `text` and perhaps `id`, in columns
query and documents, query and passages, or question and documents. Models score as in `poolembed score`.

The output (searches.jsonl gives searches.rerank.parquet) has the input's columns and `ranking`, a list of
{index, id, score}, best first: `index` is the document's place in the row's list, from 0, and `id` its id,
or the place again. Documents with equal scores keep their order. With -o FILE.trec (or .run) the output
is a TREC run instead, with the ids of queries from column query_id, qid or id.

Queries and documents may also stand in files of their own, each row with an id (query_id, qid, document_id,
doc_id, id, _id and the like) and a text, joined by --candidates. That is a table of pairs of ids, or of a
query's id and a list of documents' (JSON Lines, Parquet); or lines of text (.tsv, .txt, .run, .trec, .qrels):
pairs, judgements as BEIR and TREC write them, or a TREC run. The output then has a row, with `query_id` and
the other columns of --queries, for each query that a candidate names. Candidates that name nothing stop the
run or go to the rejects. The ids of all pairs and the texts of the documents they name are held in memory;
of --documents no more, however many they are.

\b
Examples:
  poolembed rerank searches.jsonl
  poolembed rerank searches.jsonl --model my-reranker --top-k 10 --texts --columns query
  poolembed rerank --queries queries.jsonl --documents corpus.jsonl --candidates bm25.trec -o best.trec
"""

rerank = task_command(
    "rerank",
    RerankConfig,
    (
        *LIST_COLUMN_OPTIONS,
        *JOIN_OPTIONS,
        *RERANK_OPTIONS,
        *PAIR_OPTIONS,
        *RAW_OPTIONS,
        *DIMENSION_OPTIONS,
    ),
    short_help="Rank the documents of each row's query.",
    help_text=HELP,
    shared=JOINABLE_OPTIONS,
)
