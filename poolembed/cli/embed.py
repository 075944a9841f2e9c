"""`poolembed embed`."""

from typing import Any

import click

from poolembed.cli.console import Console
from poolembed.cli.options import job_from, shared_options


@click.command(short_help="Turn each row's text into a vector.")
@shared_options
def embed(quiet: bool, as_json: bool, **options: Any) -> None:  # noqa: ANN401 - click's values
    """Turn each row's text into a vector, and write the rows with their vectors to Parquet.

    INPUT is one or more files (.jsonl, .jsonl.gz, .parquet), directories or globs, or `-` for JSONL on
    standard input. The output stands next to the input (corpus.jsonl gives corpus.embed.parquet) and has
    the input's columns, `embedding`, `num_tokens` and `truncated`.

    \b
    Examples:
      poolembed embed corpus.jsonl
      poolembed embed corpus.jsonl -o vectors.parquet --columns id --overwrite
    """
    job = job_from("embed", options)
    with Console(quiet=quiet, as_json=as_json) as console:
        # Late, so that help and bad options do not wait for torch.
        from poolembed.pipeline import run_job

        console.summary(run_job(job, console))
