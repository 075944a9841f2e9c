"""What every format of output offers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol

import pyarrow as pa

from poolembed.results import ResultColumn

META_SUFFIX = ".meta.json"
ROWS_SUFFIX = ".rows.parquet"


class TableWriter(Protocol):
    """A file on its way: tables of one schema go in, in order; the handles stay open."""

    def write(self, table: pa.Table) -> None:
        """Add rows.

        Raises:
            OSError: the disk is full or fails.
        """

    def finish(self) -> None:
        """Write what waits, and the end of the file.

        Raises:
            OSError: the disk is full or fails.
        """

    def abandon(self) -> None:
        """Give up the file, whatever state it is in."""


Opener = Callable[[Sequence[BinaryIO], pa.Schema, Sequence[ResultColumn]], TableWriter]
"""Begins a file: its handle and those of what stands beside it, its columns, which of them are results."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A kind of output.

    Attributes:
        name: what `--format` calls it.
        suffixes: what names of such files end in; the first is that of names the tool makes.
        open: begins a file; a ConfigError where the columns have no form in it.
        metadata: reads the metadata of a finished file; OSError, ValueError or an ArrowException where
            that is none.
        is_reusable: whether results are read back from it as they were, with columns in row groups.
        beside: what the names of the files end in that stand beside a file of this format.
    """

    name: str
    suffixes: tuple[str, ...]
    open: Opener
    metadata: Callable[[Path], Mapping[bytes, bytes]]
    is_reusable: bool = False
    beside: tuple[str, ...] = ()

    def files(self, path: Path) -> tuple[Path, ...]:
        """Return a file and what stands beside it: `x.npy`, `x.npy.rows.parquet`, `x.npy.meta.json`."""
        return (path, *(path.with_name(path.name + suffix) for suffix in self.beside))
