"""The options for what is read, and for rows that are not as they should be: fields of `InputConfig`."""

import click

from poolembed.cli.option import Names, as_character, option
from poolembed.config import (
    INPUT_FORMATS,
    ON_BAD_TEXT,
    ON_DUPLICATE_ID,
    ON_EMPTY,
    ON_ERROR,
    ON_NULL,
)

PATHS = click.argument("paths", metavar="INPUT...", nargs=-1, required=True)
PATHS_UNLESS_JOINED = click.argument("paths", metavar="[INPUT...]", nargs=-1)

INPUT_OPTIONS = (
    option(
        "--columns",
        type=Names(),
        metavar="A,B",
        help="Input columns to keep, in this order; all by default.",
    ),
    option(
        "--input-format",
        type=click.Choice(INPUT_FORMATS),
        help="What the inputs hold; by their names and first bytes by default.",
    ),
    option(
        "--delimiter",
        metavar="C",
        callback=as_character,
        help="What stands between the cells of CSV and TSV.",
    ),
    option(
        "--id-field", metavar="NAME", help="Column that names each row; `id` by default, if there is one."
    ),
    option("--limit", type=int, metavar="N", help="Read at most N rows."),
    option(
        "--on-error",
        type=click.Choice(ON_ERROR),
        default="fail",
        help="What a row that cannot be used does: stop the run, or go to OUT.rejects.jsonl.",
    ),
    option(
        "--on-null",
        type=click.Choice(ON_NULL),
        help="The same for rows without a text, or give them null results; as --on-error by default.",
    ),
    option(
        "--on-empty",
        type=click.Choice(ON_EMPTY),
        default="embed",
        help="The same for texts of nothing but white space, or compute them like any other.",
    ),
    option(
        "--on-bad-text",
        type=click.Choice(ON_BAD_TEXT),
        help="The same for lone surrogates and bytes that are not UTF-8, or put U+FFFD for them; by default "
        "for surrogates alone.",
    ),
    option(
        "--on-duplicate-id",
        type=click.Choice(ON_DUPLICATE_ID),
        default="keep",
        help="Rows whose id stood before: keep them, stop the run, or reject all but the first.",
    ),
)
