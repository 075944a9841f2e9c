"""How a command on rows is made: its own options, the shared ones, and the run."""

from collections.abc import Sequence
from typing import Any

import click

from poolembed.cli.console import Console
from poolembed.cli.option import Decorator
from poolembed.cli.options import POOLING_OPTIONS, job_from
from poolembed.config import TaskConfig


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

    def run(quiet: bool, as_json: bool, **options: Any) -> None:  # noqa: ANN401 - click's values
        job = job_from(name, options, task)
        with Console(quiet=quiet, as_json=as_json) as console:
            # Late, so that help and bad options do not wait for torch.
            from poolembed.pipeline import run_job

            console.summary(run_job(job, console))

    decorated: Any = run
    for decorate in reversed((*own_options, *shared)):
        decorated = decorate(decorated)
    command = click.command(name, cls=TaskCommand, short_help=short_help, help=help_text)(decorated)
    command.task = task
    return command
