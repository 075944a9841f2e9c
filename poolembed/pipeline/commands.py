"""What each command does: the texts it reads, and the operation it runs on them.

A new command is a new entry here, with the click command that names it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from poolembed.config import JobConfig
from poolembed.io import TextRole

if TYPE_CHECKING:
    from poolembed.model import Operation
    from poolembed.runner import PoolingRunner


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One command on rows.

    Attributes:
        roles: the text columns it reads.
        operation: makes what is done with them from the loaded model and the job.
    """

    roles: tuple[TextRole, ...]
    operation: "Callable[[PoolingRunner, JobConfig], Operation]"


TEXT = TextRole(name="text", candidates=("text",), only_string_column=True)


def _embed(runner: "PoolingRunner", job: JobConfig) -> "Operation":
    from poolembed.model.embed import Embed

    prompt = job.model.prompt
    if prompt is None:
        prompt = runner.tokenizers.prompt(job.model.prompt_name)
    return Embed(runner, runner.params("embed"), prompt)


COMMANDS = {
    "embed": Command(roles=(TEXT,), operation=_embed),
}
