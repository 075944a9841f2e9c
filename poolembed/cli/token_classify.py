"""`poolembed token-classify`."""

import click

from poolembed.cli.command import task_command
from poolembed.cli.option import option
from poolembed.cli.options import SHARED_OPTIONS, TEXT_OPTIONS
from poolembed.config import AGGREGATIONS, EntityConfig

ENTITY_OPTIONS = (
    option(
        "--aggregation",
        type=click.Choice(AGGREGATIONS),
        default="simple",
        help="How the classes of tokens become entities, see above.",
    ),
    option(
        "--overlap-tokens",
        type=int,
        metavar="N",
        help="Tokens of text that a window of a long text shares with the one before; a quarter by default.",
    ),
)

HELP = """Find entities (names, places, numbers) in each row's text, by a model with classes for tokens.

The output (mails.jsonl gives mails.token-classify.parquet) has the input's columns and `entities`, a list
of {label, score, start, end, text}: `start` and `end` count characters of the row's text.

\b
  none       every token by itself, with the model's label (B-PER)
  simple     neighbours of one label are one entity (PER); its score is the mean of theirs
  first      the same over whole words, which take the class of their first token,
  average    of the mean of their tokens,
  max        or of their surest token

Texts of any length are read whole: a long one in windows that overlap, each token where it has most text
around it.

\b
Examples:
  poolembed token-classify mails.jsonl --model my-entity-model
  poolembed token-classify mails.jsonl --model my-entity-model --aggregation first --text-field body
"""

token_classify = task_command(
    "token-classify",
    EntityConfig,
    (*TEXT_OPTIONS, *ENTITY_OPTIONS),
    short_help="Find entities in each row's text.",
    help_text=HELP,
    shared=SHARED_OPTIONS,
)
