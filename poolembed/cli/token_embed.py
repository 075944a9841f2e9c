"""`poolembed token-embed`."""

import click

from poolembed.cli.command import task_command
from poolembed.cli.option import option
from poolembed.cli.options import DIMENSION_OPTIONS, TEXT_OPTIONS
from poolembed.config import ROLES, TokenEmbedConfig

TOKEN_EMBED_OPTIONS = (
    option(
        "--role",
        type=click.Choice(ROLES),
        help="Late-interaction models (ColBERT): whether the texts are queries or documents, which are "
        "marked, filled and thinned out differently; document by default.",
    ),
    option("--tokens", is_flag=True, help="Write the token of each vector as `tokens`."),
    option(
        "--offsets",
        is_flag=True,
        help="Write the characters that each vector stands for as `offsets`; 0 to 0 for special tokens.",
    ),
    option(
        "--chunk-tokens",
        type=int,
        metavar="N",
        help="Late chunking: average the vectors of each N consecutive tokens, special ones included.",
    ),
)

HELP = """Turn each row's text into a list of vectors, one for each token.

The output (corpus.jsonl gives corpus.token-embed.parquet) has the input's columns and `embeddings`, a list
of vectors of one length. Models of late interaction (ColBERT, and the multi-vector head of BGE-M3) give
what is compared by MaxSim; other embedding models give the tokens that their own pooling would average,
each with the model's activation.

Results are large: chunks have at most 512 rows.

\b
Examples:
  poolembed token-embed corpus.jsonl --tokens --offsets
  poolembed token-embed questions.jsonl --model my-colbert --role query
"""

token_embed = task_command(
    "token-embed",
    TokenEmbedConfig,
    (*TEXT_OPTIONS, *DIMENSION_OPTIONS, *TOKEN_EMBED_OPTIONS),
    short_help="Turn each row's text into a vector a token.",
    help_text=HELP,
)
