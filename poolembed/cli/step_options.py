"""Options for models that judge the steps of a solution."""

from collections.abc import Sequence

import click

from poolembed.cli.option import option
from poolembed.config import TOK_POOLING_TYPES


class TokenIds(click.ParamType):  # type: ignore[type-arg] # generic only since click 8.5
    """Numbers of tokens between commas, as a tuple; a configuration file gives them as a list."""

    name = "token ids"

    def convert(
        self, value: str | Sequence[int], param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        """Split `value` at the commas, unless it is a list; `param` and `ctx` name the option in an error."""
        if not isinstance(value, str):
            return tuple(value)
        try:
            return tuple(int(number) for number in value.split(","))
        except ValueError:
            self.fail(f"{value!r} is no list of token ids such as 648,387", param, ctx)


STEP_OPTIONS = (
    option(
        "--tok-pooling-type",
        type=click.Choice(TOK_POOLING_TYPES),
        help="Which tokens have an output: all, or those that end a step; the model decides by default.",
    ),
    option("--step-tag-id", type=int, metavar="ID", help="Token that ends a step (token pooling STEP)."),
    option(
        "--returned-token-ids",
        type=TokenIds(),
        metavar="ID,ID",
        help="Tokens by whose probabilities a language model judges a step (token pooling STEP).",
    ),
)
