"""Parquet files in row groups of even size, with vectors stored plainly."""

import io
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from poolembed.io.formats.writer import Format
from poolembed.io.result_arrays import is_plain
from poolembed.results import ResultColumn

GROUP_BYTES = 64 * 2**20
MAX_GROUP_ROWS = 2**17


class ParquetGroups:
    """A Parquet file that gathers tables until they fill a row group.

    Args:
        handle: where the file is written.
        schema: its columns.
        plain: columns of numbers that neither repeat nor compress (vectors).
    """

    def __init__(self, handle: BinaryIO, schema: pa.Schema, plain: frozenset[str]) -> None:
        self._writer = pq.ParquetWriter(handle, schema, **_options(schema, plain))
        self._pending: list[pa.Table] = []
        self._pending_bytes = 0
        self._pending_rows = 0

    def write(self, table: pa.Table) -> None:
        """Add rows; at most one row group of them waits in memory."""
        rows_at_once = max(1, min(MAX_GROUP_ROWS, GROUP_BYTES * table.num_rows // max(1, table.nbytes)))
        for start in range(0, table.num_rows, rows_at_once):
            part = table.slice(start, rows_at_once)
            num_bytes = part.nbytes
            too_many = self._pending_rows + part.num_rows > MAX_GROUP_ROWS
            if too_many or self._pending_bytes + num_bytes > GROUP_BYTES:
                self._write_group()
            self._pending.append(part)
            self._pending_bytes += num_bytes
            self._pending_rows += part.num_rows

    def _write_group(self) -> None:
        if self._pending:
            table = pa.concat_tables(self._pending)
            self._writer.write_table(table, row_group_size=table.num_rows)
        self._pending, self._pending_bytes, self._pending_rows = [], 0, 0

    def finish(self) -> None:
        """Write what waits and the footer; the handle stays open."""
        self._write_group()
        self._writer.close()

    def abandon(self) -> None:
        """Give up the file, whatever state it is in."""
        self._pending = []
        with suppress(OSError, pa.ArrowException):
            self._writer.close()
        # The writer closes itself once more when it is collected, unless it is told that it is closed.
        self._writer.is_open = False


def _options(schema: pa.Schema, plain: frozenset[str]) -> dict[str, Any]:
    """Return the writer's options, which name the leaves of nested columns by their paths.

    Vectors are stored as they are: a dictionary, statistics or zstd cost time and save at most 8 %.
    """
    leaves = _leaf_paths(schema)
    others = [path for name, path in leaves if name not in plain]
    return {
        "compression": {path: "none" if name in plain else "zstd" for name, path in leaves},
        "compression_level": dict.fromkeys(others, 1),
        "use_dictionary": others or False,
        "write_statistics": others or False,
        "write_page_index": True,
    }


def _leaf_paths(schema: pa.Schema) -> list[tuple[str, str]]:
    empty = io.BytesIO()
    pq.write_table(schema.empty_table(), empty)
    paths = [column.path for column in pq.ParquetFile(empty).schema]
    leaves: list[tuple[str, str]] = []
    for field in schema:
        count = _num_leaves(field.type)
        leaves += [(field.name, path) for path in paths[len(leaves) : len(leaves) + count]]
    return leaves


def _num_leaves(kind: pa.DataType) -> int:
    if isinstance(kind, pa.BaseExtensionType):
        return _num_leaves(kind.storage_type)
    if pa.types.is_nested(kind):
        return sum(_num_leaves(kind.field(index).type) for index in range(kind.num_fields))
    return 1


def _open(handles: Sequence[BinaryIO], schema: pa.Schema, results: Sequence[ResultColumn]) -> ParquetGroups:
    return ParquetGroups(handles[0], schema, frozenset(result.name for result in results if is_plain(result)))


PARQUET = Format(
    is_reusable=True,
    name="parquet",
    suffixes=(".parquet",),
    open=_open,
    metadata=lambda path: dict(pq.read_schema(path).metadata or {}),
)
