"""`poolembed sparse`."""

from poolembed.cli.command import task_command
from poolembed.cli.option import option
from poolembed.cli.options import TEXT_OPTIONS
from poolembed.config import SparseConfig

SPARSE_OPTIONS = (
    option("--top-k", type=int, metavar="K", help="Keep the K heaviest tokens of a row; all by default."),
)

HELP = """Turn each row's text into a list of tokens with weights (SPLADE models, and BGE-M3).

The output (corpus.jsonl gives corpus.sparse.parquet) has the input's columns and `sparse`, a list of
{token, weight}: heaviest first, tokens as the model's vocabulary writes them, none with weight 0. The
relevance of two texts is the sum of the products of the weights that they share.

\b
Examples:
  poolembed sparse corpus.jsonl --model my-splade
  poolembed sparse corpus.jsonl --model my-splade --top-k 64 -o terms.parquet
"""

sparse = task_command(
    "sparse",
    SparseConfig,
    (*TEXT_OPTIONS, *SPARSE_OPTIONS),
    short_help="Turn each row's text into weights of tokens.",
    help_text=HELP,
)
