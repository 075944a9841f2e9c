"""Parquet files in small batches."""

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.parquet as pq

from poolembed.errors import InputError
from poolembed.io.files import InputFile
from poolembed.io.remote import network_errors
from poolembed.io.table_reader import contradiction, look_at_names

METADATA_PREFIX = b"poolembed."
"""Keys of the schema metadata that this tool writes; a file that has one is an output of it."""

_BATCH_ROWS = 512
_BATCH_BYTES = 16 * 2**20
_READ_BUFFER_BYTES = 2**20


class ParquetBatches:
    """What is in one Parquet file.

    Args:
        file: where it is.

    Attributes:
        schema: all its columns.
        num_rows: how many rows it declares.

    Raises:
        InputError: it is not a Parquet file, or damaged.
    """

    def __init__(self, file: InputFile) -> None:
        self._file = file
        with self._opened() as parquet:
            with read_as("Parquet", file.label):
                look_at_names(parquet.schema_arrow)
            self.schema: pa.Schema = parquet.schema_arrow
            self.num_rows = _declared_rows(file.label, parquet)

    def batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        """Yield the rows in order, in small batches of these columns.

        Raises:
            InputError: the file is damaged.
        """
        label = self._file.label
        with self._opened() as parquet:
            for group in range(parquet.num_row_groups):
                with read_as("Parquet", label):
                    # The sizes of single columns would be finer, but pyarrow aborts on damaged ones.
                    described = parquet.metadata.row_group(group)
                    size = batch_rows(described.num_rows, described.total_byte_size)
                    batches = parquet.iter_batches(
                        size, row_groups=[group], columns=columns, use_threads=False
                    )
                while True:
                    with read_as("Parquet", label):
                        batch = next(batches, None)
                    if batch is None:
                        break
                    yield batch

    @contextmanager
    def _opened(self) -> Iterator[pq.ParquetFile]:
        with read_as("Parquet", self._file.label):
            source = self._file.native()
            # Without pre-buffering, memory holds pages and not whole row groups.
            parquet = pq.ParquetFile(source, pre_buffer=False, buffer_size=_READ_BUFFER_BYTES)
        with source, parquet:
            yield parquet


def batch_rows(num_rows: int, num_bytes: int) -> int:
    """Return the rows of a batch of bounded size.

    Args:
        num_rows: rows of a larger whole.
        num_bytes: its size.
    """
    return max(1, min(_BATCH_ROWS, _BATCH_BYTES * num_rows // max(1, num_bytes)))


def _declared_rows(label: str, parquet: pq.ParquetFile) -> int:
    groups: int = sum(parquet.metadata.row_group(group).num_rows for group in range(parquet.num_row_groups))
    num_rows: int = parquet.metadata.num_rows
    if num_rows != groups:
        raise contradiction(label, num_rows, groups)
    return num_rows


@contextmanager
def read_as(kind: str, label: str) -> Iterator[None]:
    """Turn what goes wrong with a file of columns into InputError.

    Args:
        kind: what it is read as (`Parquet`).
        label: name of the file in messages.

    Yields:
        Nothing; what is read is read inside.

    Raises:
        InputError: the file cannot be read as that, or not at all.
    """
    try:
        yield
    except (pa.ArrowException, UnicodeDecodeError, *network_errors()) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"{label}: cannot be read as {kind}: {reason}") from error
