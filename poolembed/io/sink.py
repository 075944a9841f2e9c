"""The output of a run: chunks come with their results and become a file, or one part a chunk.

Nothing is ever half-written under a final name.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import pyarrow as pa

from poolembed.errors import ConfigError
from poolembed.io.atomic import sync_folder, translated
from poolembed.io.chunk import RowChunk
from poolembed.io.names import part_name
from poolembed.io.output_file import OutputFile
from poolembed.io.rejects import RejectsFile
from poolembed.io.result_arrays import describe_column, result_schema
from poolembed.io.store import JobFolder, Keys
from poolembed.io.store.records import FileRecord
from poolembed.results import ResultColumn

RESULTS_KEY = "poolembed.results"


class Sink(ABC):
    """Where chunks and their results go; made by `open_sink`.

    Leaving it without `commit`, or with an exception, removes every temporary file.

    Attributes:
        schema: the columns of the output.
    """

    def __init__(self, folder: JobFolder, schema: pa.Schema, results: Sequence[ResultColumn]) -> None:
        self.schema = schema
        self._folder = folder
        self._target = folder.target
        self._results = results
        self._old = frozenset(folder.target.existing())
        self._rejects = RejectsFile(folder.target.rejects)

    def write(self, chunk: RowChunk, results: pa.Table, keys: Keys | None) -> None:
        """Add a chunk.

        Args:
            chunk: the rows, in input order; its rejects are written as well.
            results: every result column, one row a good row of the chunk.
            keys: key of each good row, for the next run; None where rows of the output are no rows of the
                input.

        Raises:
            OutputError: the disk is full or fails.
        """
        table = pa.Table.from_arrays([*chunk.table.columns, *results.columns], schema=self.schema)
        self._write_table(chunk.index, table)
        if keys is not None and self._target.format.is_reusable:
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
        self._folder.record(self._finish())
        with translated(self._target.path):
            written = self._place()
        written += self._rejects.place()
        self._folder.finish()
        return written

    @abstractmethod
    def _write_table(self, index: int, table: pa.Table) -> None: ...

    @abstractmethod
    def _finish(self) -> list[FileRecord]:
        """Complete every file under its temporary name, and describe them."""

    @abstractmethod
    def _place(self) -> list[Path]: ...

    @abstractmethod
    def _discard(self) -> None: ...

    def _new_file(self, path: Path) -> OutputFile:
        return OutputFile(
            path,
            self._target.format,
            self.schema,
            self._results,
            may_replace=self._target.overwrite or path in self._old,
        )

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
    """One file."""

    def __init__(self, folder: JobFolder, schema: pa.Schema, results: Sequence[ResultColumn]) -> None:
        super().__init__(folder, schema, results)
        self._file = self._new_file(folder.target.path)

    def _write_table(self, index: int, table: pa.Table) -> None:
        self._file.write(table)

    def _finish(self) -> list[FileRecord]:
        return self._file.finish()

    def _place(self) -> list[Path]:
        return self._file.place()

    def _discard(self) -> None:
        self._file.discard()


class PartsSink(Sink):
    """A directory with one file a chunk; all of them get their names at the end."""

    def __init__(self, folder: JobFolder, schema: pa.Schema, results: Sequence[ResultColumn]) -> None:
        super().__init__(folder, schema, results)
        self._parts: list[OutputFile] = []
        self._records: list[FileRecord] = []

    def _write_table(self, index: int, table: pa.Table) -> None:
        part = self._new_file(self._target.path / part_name(index, self._target.format.suffixes[0]))
        self._parts.append(part)
        part.write(table)
        self._records += part.finish()

    def _finish(self) -> list[FileRecord]:
        if not self._parts:
            self._write_table(0, self.schema.empty_table())
        return self._records

    def _place(self) -> list[Path]:
        written = [path for part in self._parts for path in part.place()]
        for old in self._old.difference(written):
            old.unlink()
        sync_folder(self._target.path)
        return written

    def _discard(self) -> None:
        for part in self._parts:
            part.discard()


def open_sink(
    folder: JobFolder,
    schema: pa.Schema,
    results: Sequence[ResultColumn],
    metadata: Mapping[str, str],
    *,
    nullable: bool = False,
) -> Sink:
    """Open the output.

    Args:
        folder: the locked place of the output.
        schema: the kept input columns (`Source.schema`).
        results: the columns that the run adds, in order.
        metadata: what the output records about the run; keys get the prefix `poolembed.`.
        nullable: whether rows may have no results.

    Returns:
        The open output; used as a context manager.

    Raises:
        ConfigError: an input column has the name of a result, or the columns have no form in the format.
        OutputError: the output cannot be written.
    """
    _check_names(schema, results)
    described = {result.name: describe_column(result) for result in results}
    recorded = {f"poolembed.{key}": value for key, value in metadata.items()}
    output_schema = pa.schema(
        [*schema, *result_schema(results, nullable=nullable)],
        metadata={**(schema.metadata or {}), **recorded, RESULTS_KEY: json.dumps(described)},
    )
    return (PartsSink if folder.target.in_parts else FileSink)(folder, output_schema, results)


def _check_names(schema: pa.Schema, results: Sequence[ResultColumn]) -> None:
    taken = {result.name for result in results}
    clashes = [name for name in schema.names if name in taken]
    if clashes:
        others = ",".join(name for name in schema.names if name not in taken)
        raise ConfigError(
            f"the input has columns with the names of results: {', '.join(clashes)}",
            f"leave them out with --columns {others}" if others else "rename them",
        )
