"""Result columns as Arrow fields, arrays and tables."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from poolembed.results import ColumnData, Ragged, ResultColumn, Values


def result_field(column: ResultColumn) -> pa.Field:
    """Return the Arrow field of a result, which has no nulls."""
    return pa.field(column.name, _list_type(column), nullable=False)


def result_schema(columns: Sequence[ResultColumn], *, nullable: bool = False) -> pa.Schema:
    """Return the Arrow schema of results.

    Args:
        columns: what was declared.
        nullable: whether rows may have no results.
    """
    return pa.schema([result_field(column).with_nullable(nullable) for column in columns])


def result_table(columns: Sequence[ResultColumn], data: Mapping[str, ColumnData]) -> pa.Table:
    """Return results as an Arrow table, which shares the memory of numpy arrays where it can.

    Args:
        columns: what was declared.
        data: content of every column, one entry a row; not to be changed afterwards.

    Raises:
        ValueError: a result is missing, unknown, or of another shape or type than declared.
    """
    declared = [column.name for column in columns]
    if set(data) != set(declared):
        raise ValueError(f"results are {sorted(data)}, declared were {declared}")
    arrays = [result_array(column, data[column.name]) for column in columns]
    return pa.Table.from_arrays(arrays, schema=result_schema(columns))


def result_array(column: ResultColumn, data: ColumnData) -> pa.Array:
    """Return a result as an Arrow array, which shares the memory of a numpy array where it can.

    Args:
        column: what the data was declared to be.
        data: one entry a row.

    Raises:
        ValueError: shape or type is another than declared.
    """
    if not column.is_list:
        assert not isinstance(data, Ragged)
        return _values_array(column, data)
    assert isinstance(data, Ragged)
    offsets = np.concatenate(([0], np.cumsum(data.lengths)))
    if isinstance(data.values, Mapping):
        parts = [_values_array(field, data.values[field.name]) for field in column.fields]
        values = pa.StructArray.from_arrays(parts, fields=[result_field(field) for field in column.fields])
    else:
        values = _values_array(column, data.values)
    if offsets[-1] != len(values):
        raise ValueError(f"the result {column.name!r} has {len(values)} values, not {offsets[-1]}")
    # Offsets of 32 bits would end at 2**31 values, and a large chunk of token vectors comes near that.
    return pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), values).cast(_list_type(column))


def num_true(table: pa.Table, column: str) -> int:
    """Return how many rows of the `column` of truth values in `table` are true."""
    return int(pc.sum(table[column]).as_py() or 0)


def is_plain(column: ResultColumn) -> bool:
    """Tell whether a result is numbers that neither repeat nor compress (vectors)."""
    return column.dim is not None


def describe_column(column: ResultColumn) -> dict[str, Any]:
    """Return what a reader without the Arrow schema must know of a result."""
    described: dict[str, Any] = {"dtype": column.dtype, "dim": column.dim}
    if column.is_list:
        described["list"] = True
    if column.fields:
        described["fields"] = {field.name: describe_column(field) for field in column.fields}
    return described


def _list_type(column: ResultColumn) -> pa.DataType:
    return pa.large_list(_value_type(column)) if column.is_list else _value_type(column)


def _value_type(column: ResultColumn) -> pa.DataType:
    if column.fields:
        return pa.struct([result_field(field) for field in column.fields])
    item = pa.string() if column.dtype == "str" else pa.from_numpy_dtype(np.dtype(column.dtype))
    return item if column.dim is None else pa.list_(item, column.dim)


def _values_array(column: ResultColumn, values: Values) -> pa.Array:
    if column.dtype == "str":
        return pa.array(values, pa.string())
    array = np.asarray(values)
    shape = (len(array),) if column.dim is None else (len(array), column.dim)
    if array.shape != shape or array.dtype != np.dtype(column.dtype):
        raise ValueError(
            f"the result {column.name!r} has shape {array.shape} and type {array.dtype}, "
            f"not {shape} and {column.dtype}"
        )
    flat = pa.array(np.ascontiguousarray(array).reshape(-1))
    return flat if column.dim is None else pa.FixedSizeListArray.from_arrays(flat, type=_value_type(column))
