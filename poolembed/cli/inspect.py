"""`poolembed inspect`."""

import json
import textwrap
from typing import Any

import click

from poolembed.cli.options import DECLARATION_OPTIONS, POOLER_OPTIONS, fill, with_options
from poolembed.cli.step_options import STEP_OPTIONS
from poolembed.config import DEFAULT_MODEL, ModelConfig, PoolerConfig
from poolembed.errors import ConfigError

VALUE_WIDTH = 60


@click.command(short_help="Show what a model declares, and who says so.")
@click.argument("model", default=DEFAULT_MODEL, metavar="[MODEL]")
@with_options((*DECLARATION_OPTIONS, *POOLER_OPTIONS, *STEP_OPTIONS))
@click.option("--json", "as_json", is_flag=True, help="Print the settings as JSON.")
def inspect(as_json: bool, **options: Any) -> None:  # noqa: ANN401 - click's values
    """Show every setting of a model, its value, and the file or rule it comes from.

    MODEL is a folder or a hub name; no weights are loaded. What --set and the other options change is shown
    with the source `user`.

    \b
    Examples:
      poolembed inspect
      poolembed inspect sentence-transformers/all-MiniLM-L6-v2 --json
    """
    model = fill(ModelConfig, options)
    if problems := model.check():
        raise ConfigError("; ".join(problems))
    from poolembed.pipeline import report_model

    report = report_model(model, fill(PoolerConfig, options))
    if as_json:
        click.echo(json.dumps(report.to_json(), ensure_ascii=False, indent=1))
        return
    click.echo(f"{report.name} ({report.origin}: {report.path})\n")
    for line in _table(report.rows):
        click.echo(line)
    for warning in report.warnings:
        click.echo(f"\npoolembed: {warning}", err=True)


def _table(rows: tuple[tuple[str, Any, str], ...]) -> list[str]:
    """Return the rows as lines: setting, value on as many lines as it needs, source."""
    name_width = max(len(name) for name, _, _ in rows)
    lines = []
    for name, value, source in rows:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        first, *rest = textwrap.wrap(text, VALUE_WIDTH) or [""]
        lines.append(f"{name:<{name_width}}  {first:<{VALUE_WIDTH}}  {source}".rstrip())
        lines += [f"{'':<{name_width}}  {line}" for line in rest]
    return lines
