"""The output of a run: chunks come with their results and become a file, or one part a chunk.

Nothing is ever half-written under a final name.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import pyarrow as pa

from poolembed.config import InputConfig, OutputConfig
from poolembed.errors import ConfigError
from poolembed.io.atomic import AtomicFile, sync_folder, translated
from poolembed.io.chunk import Reject, RowChunk
from poolembed.io.names import part_name
from poolembed.io.parquet_writer import ParquetGroups
from poolembed.io.rejects import RejectsFile
from poolembed.io.result_arrays import describe_column, is_plain, result_array, result_field
from poolembed.io.target import OutputTarget, plan_output
from poolembed.io.trec_run import RUN_SUFFIXES, TrecRun
from poolembed.results import ColumnData, ResultColumn

RESULTS_KEY = "poolembed.results"


class Sink(ABC):
    """Where chunks and their results go; made by `open_sink`.

    Leaving it without `commit`, or with an exception, removes every temporary file.

    Attributes:
        target: the final names.
        schema: the columns of the output.
    """

    def __init__(self, target: OutputTarget, schema: pa.Schema, results: Sequence[ResultColumn]) -> None:
        self.target = target
        self.schema = schema
        self._results = results
        self._vectors = frozenset(result.name for result in results if is_plain(result))
        self._rejects = RejectsFile(target.rejects)

    def write(
        self, chunk: RowChunk, results: Mapping[str, ColumnData], rejects: Sequence[Reject] = ()
    ) -> None:
        """Add a chunk.

        Args:
            chunk: the rows, in input order; its own rejects are written as well.
            results: every result column, one row a good row of the chunk. Their memory is shared, so
                they must not be changed afterwards.
            rejects: further refused rows.

        Raises:
            OutputError: the disk is full or fails.
            ValueError: a result is missing, unknown, or of another shape or type than declared.
        """
        if set(results) != {result.name for result in self._results}:
            declared = [result.name for result in self._results]
            raise ValueError(f"results are {sorted(results)}, declared were {declared}")
        arrays = [
            *chunk.table.columns,
            *(result_array(result, results[result.name]) for result in self._results),
        ]
        with translated(self.target.path):
            self._write_table(chunk.index, pa.Table.from_arrays(arrays, schema=self.schema))
        self._rejects.write((*chunk.rejects, *rejects))

    def commit(self) -> list[Path]:
        """Make the output final.

        Returns:
            The files written: the output or its parts, then the rejects if there are any.

        Raises:
            OutputError: the disk is full or fails.
        """
        self._rejects.finish()
        with translated(self.target.path):
            written = self._place()
        return [*written, *self._rejects.place()]

    @abstractmethod
    def _write_table(self, index: int, table: pa.Table) -> None: ...

    @abstractmethod
    def _place(self) -> list[Path]: ...

    @abstractmethod
    def _discard(self) -> None: ...

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
    """One file: Parquet, or a TREC run."""

    def __init__(self, target: OutputTarget, schema: pa.Schema, results: Sequence[ResultColumn]) -> None:
        super().__init__(target, schema, results)
        self._file = AtomicFile(target.path, may_replace=target.overwrite)
        with ExitStack() as undo:
            undo.callback(self._file.discard)
            with translated(target.path):
                self._groups: ParquetGroups | TrecRun = (
                    TrecRun(self._file.handle, schema)
                    if target.path.suffix in RUN_SUFFIXES
                    else ParquetGroups(self._file.handle, schema, self._vectors)
                )
            undo.pop_all()

    def _write_table(self, index: int, table: pa.Table) -> None:
        self._groups.write(table)

    def _place(self) -> list[Path]:
        self._groups.finish()
        self._file.finish()
        return [self._file.place()]

    def _discard(self) -> None:
        self._groups.abandon()
        self._file.discard()


class PartsSink(Sink):
    """A directory with one Parquet file a chunk.

    In a directory without parts each part gets its final name at once. Where parts of an earlier run
    are to be replaced, the new ones wait under temporary names until all are complete.
    """

    def __init__(self, target: OutputTarget, schema: pa.Schema, results: Sequence[ResultColumn]) -> None:
        super().__init__(target, schema, results)
        self._old = target.old_parts()
        self._waiting: list[AtomicFile] = []
        self._written: list[Path] = []
        self._made_folder = not target.path.exists()
        with translated(target.path):
            target.path.mkdir(exist_ok=True)

    def _write_table(self, index: int, table: pa.Table) -> None:
        part = AtomicFile(self.target.path / part_name(index), may_replace=self.target.overwrite)
        self._waiting.append(part)
        groups = ParquetGroups(part.handle, self.schema, self._vectors)
        with ExitStack() as undo:
            undo.callback(groups.abandon)
            groups.write(table)
            groups.finish()
            undo.pop_all()
        part.finish()
        if not self._old:
            self._place_waiting()

    def _place_waiting(self) -> None:
        self._written += [part.place() for part in self._waiting]
        self._waiting = []

    def _place(self) -> list[Path]:
        if not self._waiting and not self._written:
            self._write_table(0, self.schema.empty_table())
        self._place_waiting()
        for part in set(self._old) - set(self._written):
            part.unlink()
        sync_folder(self.target.path)
        return self._written

    def _discard(self) -> None:
        for part in self._waiting:
            part.discard()
        if self._made_folder and not self._written:
            with suppress(OSError):  # somebody may have put something there
                self.target.path.rmdir()


def open_sink(
    config: OutputConfig,
    inputs: InputConfig,
    suffix: str,
    schema: pa.Schema,
    results: Sequence[ResultColumn],
    metadata: Mapping[str, str],
) -> Sink:
    """Open the output.

    Args:
        config: where results go.
        inputs: what is read, for the default name.
        suffix: what the default name gets before `.parquet` (`embed`).
        schema: the kept input columns (`Source.schema`).
        results: the columns that the run adds, in order.
        metadata: what the output records about the run; keys get the prefix `poolembed.`.

    Returns:
        The open output; used as a context manager.

    Raises:
        ConfigError: no output name fits, or an input column has the name of a result.
        OutputError: the target exists or cannot be written.
    """
    _check_names(schema, results)
    target = plan_output(config, inputs, suffix)
    described = {result.name: describe_column(result) for result in results}
    recorded = {f"poolembed.{key}": value for key, value in metadata.items()}
    output_schema = pa.schema(
        [*schema, *(result_field(result) for result in results)],
        metadata={**(schema.metadata or {}), **recorded, RESULTS_KEY: json.dumps(described)},
    )
    return (PartsSink if target.in_parts else FileSink)(target, output_schema, results)


def _check_names(schema: pa.Schema, results: Sequence[ResultColumn]) -> None:
    taken = {result.name for result in results}
    clashes = [name for name in schema.names if name in taken]
    if clashes:
        others = ",".join(name for name in schema.names if name not in taken)
        raise ConfigError(
            f"the input has columns with the names of results: {', '.join(clashes)}",
            f"leave them out with --columns {others}" if others else "rename them",
        )
