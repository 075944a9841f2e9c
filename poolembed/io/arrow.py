"""Arrow IPC files and streams, Feather among them, in small batches.

Memory holds one record batch of the file. Each is validated before anything looks into it: pyarrow reads
beyond the end of damaged ones.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from pyarrow import ipc

from poolembed.errors import InputError
from poolembed.io.arrow_texts import is_text, plain
from poolembed.io.files import InputFile
from poolembed.io.parquet import batch_rows, read_as
from poolembed.io.table_reader import look_at_names

_FILE_MAGIC = b"ARROW1"
_OLD_FEATHER_MAGIC = b"FEA1"


class ArrowBatches:
    """What is in one Arrow file or stream.

    Args:
        file: where it is.

    Attributes:
        schema: all its columns.
        num_rows: how many rows it holds.

    Raises:
        InputError: it is neither, or damaged.
    """

    def __init__(self, file: InputFile) -> None:
        self._file = file
        self.schema = arrow_schema(file)
        with _opened(file, [0]) as (_, batches):
            self.num_rows = sum(batch.num_rows for batch in _each(file.label, batches))

    def batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        """Yield the rows in order, in small batches of these columns.

        Raises:
            InputError: the file is damaged.
        """
        wanted = [self.schema.get_field_index(name) for name in columns]
        # An empty list means all columns to pyarrow; one is enough to have rows.
        with _opened(self._file, wanted or [0]) as (_, batches):
            for batch in _each(self._file.label, batches):
                with read_as("Arrow", self._file.label):
                    _validate(batch)
                size = batch_rows(batch.num_rows, batch.nbytes)
                for start in range(0, batch.num_rows, size):
                    yield batch.slice(start, size)


def arrow_schema(file: InputFile) -> pa.Schema:
    """Return the columns of an Arrow file or stream, with its metadata.

    Args:
        file: where it is.

    Raises:
        InputError: it is neither, or damaged, or has no columns.
    """
    with _opened(file, None) as (schema, _), read_as("Arrow", file.label):
        look_at_names(schema)
        if not len(schema):
            raise InputError(f"{file.label}: has no columns")
        return schema


@contextmanager
def _opened(
    file: InputFile, columns: list[int] | None
) -> Iterator[tuple[pa.Schema, Iterator[pa.RecordBatch]]]:
    """Open a file: the schema of all of it, and batches of some columns, or of all."""
    with read_as("Arrow", file.label):
        source = file.native()
    with source:
        with read_as("Arrow", file.label):
            head = source.read(len(_FILE_MAGIC))
            source.seek(0)
            if head.startswith(_OLD_FEATHER_MAGIC):
                raise InputError(f"{file.label}: is in the first version of Feather", "write it anew")
            options = ipc.IpcReadOptions(included_fields=columns or [])
            is_file = head == _FILE_MAGIC
            reader: Any = (ipc.open_file if is_file else ipc.open_stream)(source, options=options)
            batches = _of_file(reader) if is_file else iter(reader)
        yield reader.schema, batches


def _of_file(reader: ipc.RecordBatchFileReader) -> Iterator[pa.RecordBatch]:
    return (reader.get_batch(index) for index in range(reader.num_record_batches))


def _each(label: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    while True:
        with read_as("Arrow", label):
            batch = next(batches, None)
        if batch is None:
            return
        yield batch


def _validate(batch: pa.RecordBatch) -> None:
    batch.validate()
    for array in batch.columns:
        try:
            array.validate(full=True)
        except pa.ArrowInvalid:
            # Bytes that are not UTF-8 are the row's fault, and told there.
            if not is_text(array.type) or pa.types.is_dictionary(array.type):
                raise
            _as_bytes(array).validate(full=True)
            plain(array)


def _as_bytes(array: pa.Array) -> pa.Array:
    """Return an array of strings as one of bytes, sharing memory and looking at nothing."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    large = pa.types.is_large_string(array.type)
    if pa.types.is_string_view(array.type):
        kind = pa.binary_view()
    else:
        kind = pa.large_binary() if large else pa.binary()
    return pa.Array.from_buffers(kind, len(array), array.buffers(), array.null_count, array.offset)
