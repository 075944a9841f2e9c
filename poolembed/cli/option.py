"""How one option is made, and what values of options look like."""

from collections.abc import Callable, Sequence
from typing import Any

import click

Decorator = Callable[[Any], Any]


class KeyValue(click.ParamType):  # type: ignore[type-arg] # generic only since click 8.5
    """`KEY=VALUE`, as a pair of strings."""

    name = "key=value"

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        """Split `value` at its first equals sign; `param` and `ctx` name the option in an error."""
        key, sign, content = value.partition("=")
        if not sign or not key:
            self.fail(f"{value!r} is not KEY=VALUE", param, ctx)
        return key, content


class Count(click.ParamType):  # type: ignore[type-arg] # generic only since click 8.5
    """A whole number, or `auto`, which is None."""

    name = "count"

    def convert(
        self, value: str | int, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | None:
        """Read `value`; `param` and `ctx` name the option in an error."""
        if value == "auto":
            return None
        try:
            return int(value)
        except ValueError:
            self.fail(f"{value!r} is neither a number nor auto", param, ctx)


class Names(click.ParamType):  # type: ignore[type-arg] # generic only since click 8.5
    """Names between commas, as a tuple; a configuration file gives them as a list."""

    name = "names"

    def convert(
        self, value: str | Sequence[str], param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        """Split `value` at the commas; a list is taken as it is. `param` and `ctx` are click's."""
        if not isinstance(value, str):
            return tuple(value)
        return tuple(name.strip() for name in value.split(",") if name.strip())


def option(*spellings: str, **settings: Any) -> Decorator:  # noqa: ANN401 - click's own settings
    """A click option with the environment variable `POOLEMBED_<NAME>`."""
    name = next(s for s in spellings if s.startswith("--")).partition("/")[0].removeprefix("--")
    settings.setdefault("envvar", f"POOLEMBED_{name.upper().replace('-', '_')}")
    settings.setdefault("show_default", True)
    return click.option(*spellings, **settings)


def as_character(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    r"""Return the character that a user types as `\t`; other values as they are.

    Args:
        ctx: click's.
        param: click's.
        value: as it was typed.
    """
    return "\t" if value == r"\t" else value
