"""What each command does, as a declaration: columns in, pooling task, columns out.

A new command is a new entry here, with the click command that names it.
"""

from dataclasses import dataclass

from poolembed.io import TextRole
from poolembed.tasks import PoolingTask


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One command on rows.

    Attributes:
        pooling_task: what the model computes.
        roles: the text columns it reads.
        column: name of the column with the pooled data.
    """

    pooling_task: PoolingTask
    roles: tuple[TextRole, ...]
    column: str


COMMANDS = {
    "embed": Command(
        pooling_task="embed",
        roles=(TextRole(name="text", candidates=("text",), only_string_column=True),),
        column="embedding",
    ),
}
