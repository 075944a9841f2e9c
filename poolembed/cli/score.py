"""`poolembed score`."""

from poolembed.cli.command import task_command
from poolembed.cli.option import option
from poolembed.cli.options import DIMENSION_OPTIONS, PAIR_COLUMN_OPTIONS, SHARED_OPTIONS
from poolembed.config import PairConfig

PAIR_OPTIONS = (
    option(
        "--max-query-tokens", type=int, metavar="N", help="Most tokens of a query alone (cross-encoders)."
    ),
    option(
        "--max-document-tokens",
        type=int,
        metavar="N",
        help="Most tokens of a document alone (cross-encoders).",
    ),
    option("--instruction", metavar="TEXT", help="What is asked of a reranker whose prompt has room for it."),
    option(
        "--query-prompt-name",
        metavar="NAME",
        help="Prompt of the model put before queries (bi-encoders); `query` where it has one.",
    ),
    option(
        "--document-prompt-name",
        metavar="NAME",
        help="Prompt of the model put before documents (bi-encoders); `document` where it has one.",
    ),
)

RAW_OPTIONS = (
    option(
        "--raw",
        "use_activation",
        flag_value=False,
        default=None,
        help="Give the model's output before its activation (cross-encoders).",
    ),
)

HELP = """Score each row's pair of texts, and write the rows with their scores to Parquet.

Cross-encoders read both texts together. Embedding models give the similarity that they declare, the
cosine by default; late-interaction models give MaxSim. Higher is closer with all of them.

The pair stands in the first of these columns that are both there: query and document, query and passage,
question and answer, sentence1 and sentence2, text_1 and text_2, text1 and text2. The output
(pairs.parquet gives pairs.score.parquet) has the input's columns, `score`, `num_tokens` and `truncated`.

\b
Examples:
  poolembed score pairs.parquet
  poolembed score faq.jsonl --query-field title --document-field body -o scores.parquet
"""

score = task_command(
    "score",
    PairConfig,
    (*PAIR_COLUMN_OPTIONS, *PAIR_OPTIONS, *RAW_OPTIONS, *DIMENSION_OPTIONS),
    short_help="Score each row's pair of texts.",
    help_text=HELP,
    shared=SHARED_OPTIONS,
)
