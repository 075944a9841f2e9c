"""The input of a run: surveyed before anything expensive starts, then read chunk by chunk."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

import pyarrow as pa

from poolembed.config import InputConfig, OnError
from poolembed.io.chunk import RowChunk, TextRole
from poolembed.io.columns import make_plan
from poolembed.io.files import InputFile, spooled
from poolembed.io.inputs import find_inputs
from poolembed.io.json_columns import JsonColumns
from poolembed.io.jsonl import JsonlReader
from poolembed.io.parquet import ParquetReader
from poolembed.io.pieces import Piece, gather
from poolembed.io.plan import Columns, Reader, ReadPlan, refused


class Source:
    """The rows of all input files, in order.

    Made by `open_source`; closing it removes the copy of standard input.

    Attributes:
        num_rows: rows that will be yielded or rejected.
        schema: the kept columns, with the metadata that all files share.
        fields: role name -> column.
        skipped: outputs of earlier runs that stood in an input directory and are not read.
    """

    def __init__(
        self,
        readers: Sequence[Reader],
        plan: ReadPlan,
        *,
        on_error: OnError,
        skipped: tuple[Path, ...],
        opened: ExitStack,
    ) -> None:
        self.num_rows = sum(reader.num_rows for reader in readers)
        self.schema: pa.Schema = plan.schema
        self.fields = plan.fields
        self.skipped = skipped
        self._readers = readers
        self._plan = plan
        self._on_error = on_error
        self._opened = opened

    def chunks(self, max_rows: int, max_bytes: int) -> Iterator[RowChunk]:
        """Yield the rows as chunks; every call starts at the first row.

        Args:
            max_rows: most rows of a chunk, refused ones included; at least 1.
            max_bytes: most bytes of a chunk (lines as they stand in JSONL; text and the mean of the
                other kept columns in Parquet); a single larger row is a chunk of its own.

        Raises:
            InputError: a file is damaged or has changed, or a row is refused and `on_error` is `fail`.
        """
        return gather(self._pieces(), max_rows, max_bytes)

    def _pieces(self) -> Iterator[Piece]:
        for reader in self._readers:
            for piece in reader.pieces(self._plan):
                if piece.rejects and self._on_error == "fail":
                    raise refused(piece.rejects[0][1])
                yield piece

    def keeping(self, columns: Sequence[str]) -> "Source":
        """Return the same rows with some of their columns; closing either closes both.

        Args:
            columns: names in `schema`, in the order wanted.
        """
        plan = replace(self._plan, schema=pa.schema([self.schema.field(name) for name in columns]))
        return Source(self._readers, plan, on_error=self._on_error, skipped=self.skipped, opened=self._opened)

    def close(self) -> None:
        """Give up the copy of standard input."""
        self._opened.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_source(config: InputConfig, roles: Sequence[TextRole], stdin: BinaryIO | None = None) -> Source:
    """Survey the input: find the files, count the rows, learn the types, find the texts.

    JSON Lines is read once for this, Parquet by its footer; with `on_error="fail"` the texts are
    looked through as well, so that a bad row is told before any model is loaded.

    Args:
        config: which rows are read.
        roles: the texts that every row must bring; at least one.
        stdin: what `-` stands for; None takes the process's standard input.

    Returns:
        The open input; used as a context manager.

    Raises:
        InputError: something cannot be read, a column is missing, or a row is bad and `on_error` is `fail`.
        ConfigError: a file is given twice, or the choice of columns is wrong.
    """
    found = find_inputs(config.paths)
    with ExitStack() as opened:
        files = [spooled(stdin, opened) if file.path is None else file for file in found.files]
        readers, parts = _survey(files, config)
        plan = make_plan(config, roles, parts)
        if config.on_error == "fail":
            _check(readers, plan)
        return Source(readers, plan, on_error=config.on_error, skipped=found.skipped, opened=opened.pop_all())


def _check(readers: Sequence[Reader], plan: ReadPlan) -> None:
    for reader in readers:
        problem = reader.first_problem(plan)
        if problem is not None:
            raise refused(problem)


def _survey(files: Sequence[InputFile], config: InputConfig) -> tuple[list[Reader], list[Columns]]:
    json_columns = JsonColumns()
    readers: list[Reader] = []
    parts: list[Columns | None] = []
    json_label = None
    left = config.limit
    for file in files:
        if left == 0:
            break
        if file.is_parquet:
            parquet = ParquetReader(file, left)
            parts.append(parquet.describe())
            readers.append(parquet)
        else:
            jsonl = JsonlReader(file, json_columns)
            jsonl.survey(left, config.on_error)
            if json_label is None:
                json_label = file.label
                parts.append(None)
            readers.append(jsonl)
        left = None if left is None else left - readers[-1].num_rows
    return readers, [json_columns.describe(json_label or "") if part is None else part for part in parts]
