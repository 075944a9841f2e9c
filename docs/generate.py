"""Write docs/cli.md from the commands' `--help`; with `--check`, only tell whether it is up to date."""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from poolembed.cli import cli

TARGET = Path(__file__).parent / "cli.md"
WIDTH = 100

HEADER = """\
# Command line

<!-- Written by docs/generate.py from the commands' help; `make docs` writes it anew. -->
"""


def main() -> int:
    """Write or check; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when the file is stale")
    text = reference()
    if not parser.parse_args().check:
        TARGET.write_text(text, "utf-8")
        return 0
    if TARGET.is_file() and TARGET.read_text("utf-8") == text:
        return 0
    click.echo(f"{TARGET.name} differs from what --help says; `make docs` writes it anew", err=True)
    return 1


def reference() -> str:
    """Return the reference of every command as Markdown."""
    return "\n".join([HEADER, *pages("poolembed", cli, None)])


def pages(name: str, command: click.Command, parent: click.Context | None) -> Iterator[str]:
    """Yield the help of a command, then that of its subcommands in alphabetical order.

    Args:
        name: what the user types for the command, without its parents.
        command: the command or group.
        parent: the context of the group that the command belongs to.
    """
    settings = command.context_settings | {"terminal_width": WIDTH, "max_content_width": WIDTH}
    with click.Context(command, parent, name, **settings) as context:
        help_text = "\n".join(line.rstrip() for line in command.get_help(context).splitlines())
        yield f"## {context.command_path}\n\n```text\n{help_text}\n```\n"
        for inner in sorted(getattr(command, "commands", {})):
            yield from pages(inner, command.commands[inner], context)


if __name__ == "__main__":
    sys.exit(main())
