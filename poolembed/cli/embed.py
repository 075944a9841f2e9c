"""`poolembed embed`."""

import click

from poolembed.cli.command import task_command
from poolembed.cli.option import option
from poolembed.cli.options import DIMENSION_OPTIONS, LONG_TEXT_OPTIONS, TEXT_OPTIONS
from poolembed.config import OUTPUT_DTYPES, EmbedConfig

EMBED_OPTIONS = (
    option(
        "--output-dtype",
        type=click.Choice(OUTPUT_DTYPES),
        default="float32",
        help="Type of the written vectors. int8 and uint8 are steps between the bounds of each dimension, "
        "which the first 1024 rows decide; binary and ubinary are signs, 8 dimensions a byte.",
    ),
    option(
        "--ranges-from",
        metavar="FILE",
        help="Take the bounds of int8 or uint8 from an earlier output, so that both can be compared.",
    ),
)

HELP = """Turn each row's text into a vector, and write the rows with their vectors to Parquet.

INPUT is one or more files (.jsonl, .jsonl.gz, .parquet), directories or globs, or `-` for JSONL on
standard input. The output stands next to the input (corpus.jsonl gives corpus.embed.parquet) and has the
input's columns, `embedding`, `num_tokens` and `truncated`.

With `--on-long windows` the vector of a long text is the mean of the vectors of its windows, weighted by
their tokens of text, and normalised again where the model normalises; `num_windows` tells how many. With
`--on-long window-rows` every window is a row with the columns of its text, and `window`, counted from 0,
`start` and `end`, the characters that it stands for; `num_tokens` is that of the window.

\b
Examples:
  poolembed embed corpus.jsonl
  poolembed embed corpus.jsonl -o vectors.parquet --columns id --overwrite
"""

embed = task_command(
    "embed",
    EmbedConfig,
    (*TEXT_OPTIONS, *LONG_TEXT_OPTIONS, *DIMENSION_OPTIONS, *EMBED_OPTIONS),
    short_help="Turn each row's text into a vector.",
    help_text=HELP,
)
