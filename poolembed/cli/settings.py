"""A TOML file of options: `--config FILE`. Options and environment variables win over it."""

import difflib
import tomllib
from pathlib import Path
from typing import Any

import click

from poolembed.errors import ConfigError


def load_settings(ctx: click.Context, param: click.Parameter, path: str | None) -> str | None:
    """Take the defaults of a command's options from a TOML file.

    Keys are option names with `-` or `_` (`batch-tokens = 4096`); a table with the command's name holds
    what is for that command alone.

    Args:
        ctx: the command that runs; its defaults are set.
        param: the `--config` option.
        path: the file; None leaves every default.

    Returns:
        `path`, which click hands on.

    Raises:
        ConfigError: the file cannot be read, or has keys that are no options.
    """
    if path is not None:
        ctx.default_map = _settings_of(ctx, _read(path), path)
    return path


def _read(path: str) -> dict[str, Any]:
    try:
        return tomllib.loads(Path(path).read_text("utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not a TOML file: {error}") from error


def _settings_of(ctx: click.Context, content: dict[str, Any], path: str) -> dict[str, Any]:
    command = ctx.command.name or ""
    names = {
        spelling.removeprefix("--"): option.name or ""
        for option in ctx.command.params
        if isinstance(option, click.Option)
        for spelling in (*option.opts, *option.secondary_opts)
        if spelling.startswith("--")
    }
    others = _sibling_commands(ctx)
    flat = {key: value for key, value in content.items() if key != command and key not in others}
    flat |= content.get(command, {})
    settings, problems = {}, []
    for key, value in flat.items():
        spelling = key.replace("_", "-")
        if spelling not in names:
            near = difflib.get_close_matches(spelling, names, n=1)
            problems.append(f"{path}: unknown key {key!r}" + (f", did you mean {near[0]!r}?" if near else ""))
            continue
        settings[names[spelling]] = not value if spelling.startswith("no-") else value
    if problems:
        raise ConfigError("; ".join(problems), f"see `poolembed {command} --help` for the names of options")
    return settings


def _sibling_commands(ctx: click.Context) -> frozenset[str]:
    group = ctx.parent.command if ctx.parent else None
    return frozenset(group.commands) if isinstance(group, click.Group) else frozenset()
