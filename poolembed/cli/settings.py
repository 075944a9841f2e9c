"""A TOML file of options: `--config FILE`. Options and environment variables win over it."""

import difflib
import json
import tomllib
from pathlib import Path
from typing import Any

import click

from poolembed.errors import ConfigError


def load_settings(ctx: click.Context, param: click.Parameter, path: str | None) -> str | None:
    """Take the defaults of a command's options from a TOML file.

    Keys are option names with `-` or `_` (`batch-tokens = 4096`, `columns = ["id", "title"]`); a table with
    the command's name holds what is for that command alone.

    Args:
        ctx: the command that runs; its defaults are set.
        param: the `--config` option.
        path: the file; None leaves every default.

    Returns:
        `path`, which click hands on.

    Raises:
        ConfigError: the file cannot be read, has keys that are no options, or values of another type.
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
    options = {
        spelling.removeprefix("--"): option
        for option in ctx.command.params
        if isinstance(option, click.Option)
        for spelling in (*option.opts, *option.secondary_opts)
        if spelling.startswith("--")
    }
    settings, problems = {}, []
    for key, value in _of_command(ctx, content, path).items():
        spelling = key.replace("_", "-")
        option = options.get(spelling)
        if option is None:
            near = difflib.get_close_matches(spelling, options, n=1)
            problems.append(f"unknown key {key!r}" + (f", did you mean {near[0]!r}?" if near else ""))
        elif wanted := _misfit(option, value):
            problems.append(f"{key} must be {wanted}, got {json.dumps(value, default=str)}")
        else:
            settings[option.name or ""] = not value if f"--{spelling}" in option.secondary_opts else value
    if problems:
        hint = f"see `poolembed {ctx.command.name} --help` for the names of options"
        raise ConfigError("; ".join(f"{path}: {problem}" for problem in problems), hint)
    return settings


def _of_command(ctx: click.Context, content: dict[str, Any], path: str) -> dict[str, Any]:
    """Return what is for this command: the top of the file, and over it the command's own table."""
    group = ctx.parent.command if ctx.parent else None
    commands = group.commands if isinstance(group, click.Group) else {}
    own = content.get(ctx.command.name or "", {})
    if not isinstance(own, dict):
        raise ConfigError(f"{path}: {ctx.command.name!r} must be a table", f"write [{ctx.command.name}]")
    return {key: value for key, value in content.items() if key not in commands} | own


def _misfit(option: click.Option, value: object) -> str | None:
    """Return what the value should be where click would take something else for it."""
    if option.is_flag:
        return None if isinstance(value, bool) else "true or false"
    if option.type.name == "token ids":
        fits = isinstance(value, list) and all(type(item) is int for item in value)
        return None if fits else "a list of token ids"
    if option.multiple or option.type.name == "names":
        fits = isinstance(value, list) and all(isinstance(item, str) for item in value)
        return None if fits else "a list of strings"
    return "one value" if isinstance(value, list | dict) else None
