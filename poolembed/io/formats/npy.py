"""A numpy array of the results, with the other columns in a Parquet file beside it.

Row i of the array is row i of that file. The array is written as it comes; its header, which has the
number of rows, is written last, into room left for it.
"""

from collections.abc import Sequence
from typing import BinaryIO

import numpy as np
import pyarrow as pa

from poolembed.errors import ConfigError, OutputError
from poolembed.io.formats.meta import read_meta, write_meta
from poolembed.io.formats.parquet import ParquetGroups
from poolembed.io.formats.writer import META_SUFFIX, ROWS_SUFFIX, Format
from poolembed.results import ResultColumn

# Room for the header: a multiple of 64, as numpy wants it, that holds 20 digits of rows.
HEADER_BYTES = 128
_MAGIC = b"\x93NUMPY\x01\x00"


class NumpyArray:
    """A `.npy` file and the columns beside it.

    Args:
        array: where the array goes; must be seekable.
        rows: where the other columns go.
        meta: where the metadata goes.
        schema: the columns.
        results: which of them are results, one of which becomes the array.

    Raises:
        ConfigError: no column, or none alone, can be the array, or some rows may have no results.
    """

    def __init__(
        self,
        array: BinaryIO,
        rows: BinaryIO,
        meta: BinaryIO,
        schema: pa.Schema,
        results: Sequence[ResultColumn],
    ) -> None:
        self._result = array_column(results)
        if schema.field(self._result.name).nullable:
            raise ConfigError(
                "rows without a text have no numbers for an array",
                "leave them out with --on-null reject, or write Parquet",
            )
        self._schema = schema
        self._dtype = np.dtype(self._result.dtype)
        self._array, self._meta = array, meta
        self._others = [name for name in schema.names if name != self._result.name]
        self._num_rows = 0
        array.write(b"\0" * HEADER_BYTES)
        fields = [schema.field(name) for name in self._others]
        self._rows = ParquetGroups(rows, pa.schema(fields, metadata=schema.metadata), frozenset())

    def write(self, table: pa.Table) -> None:
        """Add rows.

        Raises:
            OutputError: a row has no result, for which an array has no room.
        """
        if table[self._result.name].null_count:
            raise OutputError(
                f"some rows have no {self._result.name} (null), for which an array has no room",
                "reject such rows, or write Parquet, Arrow or JSON Lines",
            )
        for chunk in table[self._result.name].chunks:
            values = chunk if self._result.dim is None else chunk.flatten()
            numbers = values.to_numpy(zero_copy_only=False).astype(self._dtype, copy=False)
            self._array.write(np.ascontiguousarray(numbers).data)
        self._rows.write(table.select(self._others))
        self._num_rows += table.num_rows

    def finish(self) -> None:
        """Write the header and what waits; the handles stay open."""
        self._rows.finish()
        self._array.seek(0)
        self._array.write(header(self._dtype, self._num_rows, self._result.dim))
        write_meta(self._meta, self._schema, self._num_rows)

    def abandon(self) -> None:
        """Give up the files, whatever state they are in."""
        self._rows.abandon()


def array_column(results: Sequence[ResultColumn]) -> ResultColumn:
    """Return the result that becomes the array.

    That is the only vector, or the only float where there is neither a vector nor a list.

    Raises:
        ConfigError: there is no such result, or more than one.
    """
    numbers = [result for result in results if not (result.is_list or result.fields or result.dtype == "str")]
    vectors = [result for result in numbers if result.dim is not None]
    floats = [result for result in numbers if np.issubdtype(np.dtype(result.dtype), np.floating)]
    scalars = [] if any(result.is_list for result in results) else floats
    candidates = vectors or scalars
    if len(candidates) == 1:
        return candidates[0]
    names = ", ".join(result.name for result in results)
    raise ConfigError(
        f"these results are not one array of numbers: {names}", "write Parquet, Arrow or JSON Lines"
    )


def header(dtype: np.dtype[np.generic], num_rows: int, dim: int | None) -> bytes:
    """Return the first `HEADER_BYTES` bytes of a `.npy` file of format 1.0.

    Args:
        dtype: type of a number.
        num_rows: length of the array.
        dim: length of a row; None for an array of one dimension.

    Source:
        numpy, `numpy/lib/format.py`, "Format Version 1.0".
    """
    shape = f"({num_rows},)" if dim is None else f"({num_rows}, {dim})"
    described = f"{{'descr': {dtype.str!r}, 'fortran_order': False, 'shape': {shape}, }}".encode()
    room = HEADER_BYTES - len(_MAGIC) - 2
    return _MAGIC + room.to_bytes(2, "little") + described.ljust(room - 1) + b"\n"


def _open(handles: Sequence[BinaryIO], schema: pa.Schema, results: Sequence[ResultColumn]) -> NumpyArray:
    array, rows, meta = handles
    return NumpyArray(array, rows, meta, schema, results)


NPY = Format(
    name="npy", suffixes=(".npy",), open=_open, metadata=read_meta, beside=(ROWS_SUFFIX, META_SUFFIX)
)
