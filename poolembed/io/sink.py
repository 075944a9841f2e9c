"""The output of a run: chunks come with their results and become a file, or one part a chunk.

Nothing is ever half-written under a final name.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

import pyarrow as pa

from poolembed.errors import ConfigError
from poolembed.io.atomic import AtomicFile, sync_folder, translated
from poolembed.io.chunk import RowChunk
from poolembed.io.names import part_name
from poolembed.io.parquet_writer import ParquetGroups
from poolembed.io.rejects import RejectsFile
from poolembed.io.result_arrays import describe_column, is_plain, result_schema
from poolembed.io.store import JobFolder, Keys
from poolembed.io.store.records import FileRecord, identity_of
from poolembed.results import ResultColumn

RESULTS_KEY = "poolembed.results"


class Sink(ABC):
    """Where chunks and their results go; made by `open_sink`.

    Leaving it without `commit`, or with an exception, removes every temporary file.

    Attributes:
        schema: the columns of the output.
    """

    def __init__(self, folder: JobFolder, schema: pa.Schema, plain: frozenset[str]) -> None:
        self.schema = schema
        self._folder = folder
        self._target = folder.target
        self._may_replace = frozenset(folder.target.existing())
        self._plain = plain
        self._rejects = RejectsFile(folder.target.rejects)

    def write(self, chunk: RowChunk, results: pa.Table, keys: Keys) -> None:
        """Add a chunk.

        Args:
            chunk: the rows, in input order; its rejects are written as well.
            results: every result column, one row a good row of the chunk.
            keys: key of each good row.

        Raises:
            OutputError: the disk is full or fails.
        """
        table = pa.Table.from_arrays([*chunk.table.columns, *results.columns], schema=self.schema)
        with translated(self._target.path):
            self._write_table(chunk.index, table)
        self._folder.add_keys(keys)
        self._rejects.write(chunk.rejects)

    def commit(self) -> list[Path]:
        """Make the output final, and record it for the next run.

        Returns:
            The files written: the output or its parts, then the rejects if there are any.

        Raises:
            OutputError: the disk is full or fails.
        """
        self._rejects.finish()
        with translated(self._target.path):
            self._folder.record(
                [
                    FileRecord(file.path.name, num_rows, identity_of(file.temporary))
                    for file, num_rows in self._finish()
                ]
            )
            written = self._place()
        written += self._rejects.place()
        self._folder.finish()
        return written

    @abstractmethod
    def _write_table(self, index: int, table: pa.Table) -> None: ...

    @abstractmethod
    def _finish(self) -> list[tuple[AtomicFile, int]]:
        """Complete every file under its temporary name; return them with their numbers of rows."""

    @abstractmethod
    def _place(self) -> list[Path]: ...

    @abstractmethod
    def _discard(self) -> None: ...

    def _new_file(self, path: Path) -> AtomicFile:
        return AtomicFile(path, may_replace=self._target.overwrite or path in self._may_replace)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._rejects.discard()
        finally:
            self._discard()


class FileSink(Sink):
    """One Parquet file."""

    def __init__(self, folder: JobFolder, schema: pa.Schema, plain: frozenset[str]) -> None:
        super().__init__(folder, schema, plain)
        self._num_rows = 0
        self._file = self._new_file(folder.target.path)
        with ExitStack() as undo:
            undo.callback(self._file.discard)
            with translated(folder.target.path):
                self._groups = ParquetGroups(self._file.handle, schema, plain)
            undo.pop_all()

    def _write_table(self, index: int, table: pa.Table) -> None:
        self._groups.write(table)
        self._num_rows += table.num_rows

    def _finish(self) -> list[tuple[AtomicFile, int]]:
        self._groups.finish()
        self._file.finish()
        return [(self._file, self._num_rows)]

    def _place(self) -> list[Path]:
        return [self._file.place()]

    def _discard(self) -> None:
        self._groups.abandon()
        self._file.discard()


class PartsSink(Sink):
    """A directory with one Parquet file a chunk; all of them get their names at the end."""

    def __init__(self, folder: JobFolder, schema: pa.Schema, plain: frozenset[str]) -> None:
        super().__init__(folder, schema, plain)
        self._parts: list[tuple[AtomicFile, int]] = []

    def _write_table(self, index: int, table: pa.Table) -> None:
        part = self._new_file(self._target.path / part_name(index))
        self._parts.append((part, table.num_rows))
        groups = ParquetGroups(part.handle, self.schema, self._plain)
        with ExitStack() as undo:
            undo.callback(groups.abandon)
            groups.write(table)
            groups.finish()
            undo.pop_all()
        part.finish()

    def _finish(self) -> list[tuple[AtomicFile, int]]:
        if not self._parts:
            self._write_table(0, self.schema.empty_table())
        return self._parts

    def _place(self) -> list[Path]:
        written = [part.place() for part, _ in self._parts]
        for old in self._may_replace.difference(written):
            old.unlink()
        sync_folder(self._target.path)
        return written

    def _discard(self) -> None:
        for part, _ in self._parts:
            part.discard()


def open_sink(
    folder: JobFolder, schema: pa.Schema, results: Sequence[ResultColumn], metadata: Mapping[str, str]
) -> Sink:
    """Open the output.

    Args:
        folder: the locked place of the output.
        schema: the kept input columns (`Source.schema`).
        results: the columns that the run adds, in order.
        metadata: what the output records about the run; keys get the prefix `poolembed.`.

    Returns:
        The open output; used as a context manager.

    Raises:
        ConfigError: an input column has the name of a result.
        OutputError: the output cannot be written.
    """
    _check_names(schema, results)
    described = {result.name: describe_column(result) for result in results}
    recorded = {f"poolembed.{key}": value for key, value in metadata.items()}
    output_schema = pa.schema(
        [*schema, *result_schema(results)],
        metadata={**(schema.metadata or {}), **recorded, RESULTS_KEY: json.dumps(described)},
    )
    plain = frozenset(result.name for result in results if is_plain(result))
    return (PartsSink if folder.target.in_parts else FileSink)(folder, output_schema, plain)


def _check_names(schema: pa.Schema, results: Sequence[ResultColumn]) -> None:
    taken = {result.name for result in results}
    clashes = [name for name in schema.names if name in taken]
    if clashes:
        others = ",".join(name for name in schema.names if name not in taken)
        raise ConfigError(
            f"the input has columns with the names of results: {', '.join(clashes)}",
            f"leave them out with --columns {others}" if others else "rename them",
        )
