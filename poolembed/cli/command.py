"""How a command on rows is made: its own options, the shared ones, and the run."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from poolembed.cli.console import Console
from poolembed.cli.figures import Figures
from poolembed.cli.log import Log, LogFormat
from poolembed.cli.option import Decorator
from poolembed.cli.options import POOLING_OPTIONS, job_from
from poolembed.cli.signals import asking
from poolembed.cli.watch import Board, MetricsFile, StatusFile, Watch
from poolembed.config import JobConfig, TaskConfig


class TaskCommand(click.Command):
    """A command that runs a job.

    Attributes:
        task: the record that its own options fill.
    """

    task: type[TaskConfig] = TaskConfig


def task_command(
    name: str,
    task: type[TaskConfig],
    own_options: Sequence[Decorator],
    *,
    short_help: str,
    help_text: str,
    shared: Sequence[Decorator] = POOLING_OPTIONS,
) -> TaskCommand:
    """Return a command that reads rows, computes, and writes them.

    Args:
        name: what the user types; also the name in `pipeline.commands`.
        task: the record that holds what the command alone must know.
        own_options: options that are not for every command; those of `task` among them.
        short_help: one line for the list of commands.
        help_text: the page of `--help`.
        shared: what it takes beside its own options.
    """

    def run(status: str | None, metrics: str | None, **options: Any) -> None:  # noqa: ANN401 - click's values
        job = job_from(name, options, task)
        console = _console(**{key: options[key] for key in ("quiet", "as_json", "log_format")})
        boards: list[Board] = [] if status is None else [StatusFile(Path(status))]
        boards += [] if metrics is None else [MetricsFile(Path(metrics))]
        with Watch(console, _figures(job), boards) as watch:
            # Late, so that help and bad options do not wait for torch.
            from poolembed.pipeline import StopRequest, run_job

            stop = StopRequest()
            with asking(stop):
                summary = run_job(job, watch, stop)
            watch.summary(summary)

    decorated: Any = run
    for decorate in reversed((*own_options, *shared)):
        decorated = decorate(decorated)
    command = click.command(name, cls=TaskCommand, short_help=short_help, help=help_text)(decorated)
    command.task = task
    return command


def _console(*, quiet: bool, as_json: bool, log_format: LogFormat) -> Console:
    if quiet or log_format == "json":
        # The hub's library reads it when it is imported, which is later.
        os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"
    return Console(Log(log_format), quiet=quiet, as_json=as_json)


def _figures(job: JobConfig) -> Figures:
    names = (job.output.output, *job.input.paths, job.input.candidates)
    return Figures(command=job.command, target=next(name for name in names if name))
