"""Arrow IPC files (Feather version 2), uncompressed, so that they can be mapped into memory."""

from collections.abc import Sequence
from contextlib import suppress
from typing import BinaryIO

import pyarrow as pa

from poolembed.io.formats.writer import Format
from poolembed.results import ResultColumn


class ArrowFile:
    """An Arrow IPC file.

    Args:
        handle: where the file is written.
        schema: its columns; dictionaries become their values, because a file has room for only one
            dictionary a column, and the rows to come may need another.
    """

    def __init__(self, handle: BinaryIO, schema: pa.Schema) -> None:
        self._schema = pa.schema([_field(field) for field in schema], metadata=schema.metadata)
        self._writer = pa.ipc.new_file(handle, self._schema)

    def write(self, table: pa.Table) -> None:
        """Add rows."""
        self._writer.write_table(table.cast(self._schema))

    def finish(self) -> None:
        """Write the footer; the handle stays open."""
        self._writer.close()

    def abandon(self) -> None:
        """Give up the file, whatever state it is in."""
        with suppress(OSError, ValueError, pa.ArrowException):  # the handle may be closed already
            self._writer.close()


def _field(field: pa.Field) -> pa.Field:
    return field.with_type(_plain(field.type))


def _plain(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(kind):
        return _plain(kind.value_type)
    if pa.types.is_struct(kind):
        return pa.struct([_field(kind.field(index)) for index in range(kind.num_fields)])
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(_field(kind.value_field), kind.list_size)
    if pa.types.is_large_list(kind):
        return pa.large_list(_field(kind.value_field))
    return pa.list_(_field(kind.value_field)) if pa.types.is_list(kind) else kind


def _open(handles: Sequence[BinaryIO], schema: pa.Schema, results: Sequence[ResultColumn]) -> ArrowFile:
    del results
    return ArrowFile(handles[0], schema)


ARROW = Format(
    name="arrow",
    suffixes=(".arrow", ".feather"),
    open=_open,
    metadata=lambda path: _metadata(pa.memory_map(str(path))),
)


def _metadata(source: pa.NativeFile) -> dict[bytes, bytes]:
    with source, pa.ipc.open_file(source) as file:
        return dict(file.schema.metadata or {})
