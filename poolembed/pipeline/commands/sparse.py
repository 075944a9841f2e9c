"""`sparse`: a text to weights of tokens."""

from typing import TYPE_CHECKING

from poolembed.config import SparseConfig
from poolembed.pipeline.commands.command import text_command

if TYPE_CHECKING:
    from poolembed.model.sparse import Sparse


def _operation() -> "type[Sparse]":
    from poolembed.model.sparse import Sparse

    return Sparse


COMMAND = text_command(_operation, SparseConfig)
