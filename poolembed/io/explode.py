"""Rows with lists of results to a row for each of their values."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from poolembed.io.chunk import RowChunk
from poolembed.results import WINDOW_TOKENS, ColumnData, Ragged, ResultColumn, Values

_TOKENS = "num_tokens"


def exploded_columns(columns: Sequence[ResultColumn]) -> list[ResultColumn]:
    """Return the columns that `explode` makes of results.

    Args:
        columns: what the results are before; `num_tokens` stays where it stands.
    """
    return [replace(column, is_list=False) for column in columns if column.name != WINDOW_TOKENS]


def explode(chunk: RowChunk, results: Mapping[str, ColumnData]) -> tuple[RowChunk, dict[str, ColumnData]]:
    """Return a row for each value of the lists, with the columns of the row that had them.

    Args:
        chunk: some rows.
        results: their results. Lists are equally long in every column and hold no records; what is no list
            is repeated, but for `num_tokens`, which `WINDOW_TOKENS` replaces.

    Returns:
        The chunk with its table made longer (texts and places stay those of the rows), and the results.
    """
    lengths = _lengths(results)
    exploded: dict[str, ColumnData] = {
        name: _values(data) if isinstance(data, Ragged) else _repeated(data, lengths)
        for name, data in results.items()
    }
    exploded[_TOKENS] = exploded.pop(WINDOW_TOKENS)
    return replace(chunk, table=_repeated_rows(chunk.table, lengths)), exploded


def _lengths(results: Mapping[str, ColumnData]) -> npt.NDArray[np.int64]:
    return next(data.lengths for data in results.values() if isinstance(data, Ragged))


def _values(data: Ragged) -> Values:
    assert not isinstance(data.values, Mapping)
    return data.values


def _repeated(data: Values, lengths: npt.NDArray[np.int64]) -> Values:
    if isinstance(data, list):
        return [value for value, times in zip(data, lengths.tolist(), strict=True) for _ in range(times)]
    return np.repeat(data, lengths, axis=0)


def _repeated_rows(table: pa.Table, lengths: npt.NDArray[np.int64]) -> pa.Table:
    """Return a table with each row so often; neighbours that stay single are taken together.

    Slices are used because pyarrow cannot take rows of every type (string_view).
    """
    parts, start = [], 0
    for row in [*np.flatnonzero(lengths != 1).tolist(), len(lengths)]:
        parts.append(table.slice(start, row - start))
        if row < len(lengths):
            parts += [table.slice(row, 1)] * int(lengths[row])
        start = row + 1
    return pa.concat_tables(parts)
