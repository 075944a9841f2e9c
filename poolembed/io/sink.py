"""The output of a run: chunks come with their results and become a file, or one part a chunk.

Nothing is ever half-written under a final name.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import pyarrow as pa

from poolembed.config import InputConfig, OutputConfig
from poolembed.errors import ConfigError
from poolembed.io.atomic import sync_folder, translated
from poolembed.io.chunk import Reject, RowChunk
from poolembed.io.names import part_name
from poolembed.io.output_file import OutputFile
from poolembed.io.rejects import RejectsFile
from poolembed.io.result_arrays import describe_column, result_array, result_field
from poolembed.io.target import OutputTarget, plan_output
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
    """One file."""

    def __init__(self, target: OutputTarget, schema: pa.Schema, results: Sequence[ResultColumn]) -> None:
        super().__init__(target, schema, results)
        self._file = OutputFile(target.path, target.format, schema, results, may_replace=target.overwrite)

    def _write_table(self, index: int, table: pa.Table) -> None:
        self._file.write(table)

    def _place(self) -> list[Path]:
        self._file.finish()
        return self._file.place()

    def _discard(self) -> None:
        self._file.discard()


class PartsSink(Sink):
    """A directory with one file a chunk.

    In a directory without parts each part gets its final name at once. Where parts of an earlier run
    are to be replaced, the new ones wait under temporary names until all are complete.
    """

    def __init__(self, target: OutputTarget, schema: pa.Schema, results: Sequence[ResultColumn]) -> None:
        super().__init__(target, schema, results)
        self._old = target.old_parts()
        self._waiting: list[OutputFile] = []
        self._written: list[Path] = []
        self._made_folder = not target.path.exists()
        with translated(target.path):
            target.path.mkdir(exist_ok=True)

    def _write_table(self, index: int, table: pa.Table) -> None:
        kind = self.target.format
        path = self.target.path / part_name(index, kind.suffixes[0])
        part = OutputFile(path, kind, self.schema, self._results, may_replace=self.target.overwrite)
        self._waiting.append(part)
        part.write(table)
        part.finish()
        if not self._old:
            self._place_waiting()

    def _place_waiting(self) -> None:
        self._written += [path for part in self._waiting for path in part.place()]
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
        suffix: what the default name gets before its suffix (`embed`).
        schema: the kept input columns (`Source.schema`).
        results: the columns that the run adds, in order.
        metadata: what the output records about the run; keys get the prefix `poolembed.`.

    Returns:
        The open output; used as a context manager.

    Raises:
        ConfigError: no output name fits, an input column has the name of a result, or the columns have no
            form in the format.
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
