"""Rows with lists of results to a row for each of their values."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from poolembed.io.chunk import RowChunk
from poolembed.results import WINDOW_TOKENS, ResultColumn

_TOKENS = "num_tokens"


def exploded_columns(columns: Sequence[ResultColumn]) -> list[ResultColumn]:
    """Return the columns that `explode` makes of results.

    Args:
        columns: what the results are before; `num_tokens` stays where it stands.
    """
    return [replace(column, is_list=False) for column in columns if column.name != WINDOW_TOKENS]


def explode(chunk: RowChunk, results: pa.Table) -> tuple[RowChunk, pa.Table]:
    """Return a row for each value of the lists, with the columns of the row that had them.

    Args:
        chunk: some rows.
        results: their results. Lists are equally long in every column and hold no records; what is no list
            is repeated, but for `num_tokens`, which `WINDOW_TOKENS` replaces. A row of nulls stays one row.

    Returns:
        The chunk with its table made longer (texts and places stay those of the rows), and the results.
    """
    lengths = pc.fill_null(pc.list_value_length(results[WINDOW_TOKENS]), 1).to_numpy().astype(np.int64)
    is_null = results[WINDOW_TOKENS].is_null().to_numpy()
    owners = pa.array(np.repeat(np.arange(len(lengths)), lengths))
    # Place of each value among all values; a row of nulls has none.
    missing = np.repeat(is_null, lengths)
    places = pa.array(np.cumsum(~missing) - 1, mask=missing)
    columns = {
        name: column.combine_chunks().flatten().take(places) if _is_list(column) else column.take(owners)
        for name, column in zip(results.column_names, results.columns, strict=True)
    }
    columns[_TOKENS] = columns.pop(WINDOW_TOKENS)
    names = [name for name in results.column_names if name != WINDOW_TOKENS]
    exploded = pa.table([columns[name] for name in names], names=names)
    return replace(chunk, table=_repeated_rows(chunk.table, lengths)), exploded


def _is_list(column: pa.ChunkedArray) -> bool:
    return bool(pa.types.is_large_list(column.type))


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
