"""How the input of a run is opened, be it rows or what is joined to rows."""

from collections.abc import Sequence
from typing import BinaryIO

from poolembed.config import InputConfig
from poolembed.io.chunk import TextRole
from poolembed.io.join import open_join
from poolembed.io.source import Source, open_source


def open_input(config: InputConfig, roles: Sequence[TextRole], stdin: BinaryIO | None = None) -> Source:
    """Open files of rows, see `open_source`, or queries, documents and candidates, see `open_join`.

    Args:
        config: which rows are read.
        roles: the texts that every row must bring; those of a join are `query` and `documents`.
        stdin: what `-` stands for; None takes the process's standard input.

    Returns:
        The open input; used as a context manager.

    Raises:
        InputError: something cannot be read, or a row is bad and `on_error` is `fail`.
        ConfigError: a file is given twice, or the choice of columns is wrong.
    """
    return open_join(config, stdin) if config.is_join else open_source(config, roles, stdin)
