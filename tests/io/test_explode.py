"""Lists of results that become rows."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from poolembed.io import result_table
from poolembed.io.chunk import RowChunk
from poolembed.io.explode import explode, exploded_columns
from poolembed.results import WINDOW_TOKENS, Ragged, ResultColumn

COLUMNS = [
    ResultColumn("vector", "float32", 2, is_list=True),
    ResultColumn("label", "str", is_list=True),
    ResultColumn(WINDOW_TOKENS, "int32", is_list=True),
    ResultColumn("num_tokens", "int32"),
    ResultColumn("truncated", "bool"),
    ResultColumn("note", "str"),
]


def results_of(lengths):
    total, num_rows = sum(lengths), len(lengths)
    counts = np.asarray(lengths, np.int64)
    data = {
        "vector": Ragged(counts, np.arange(2 * total, dtype=np.float32).reshape(total, 2)),
        "label": Ragged(counts, [f"v{value}" for value in range(total)]),
        WINDOW_TOKENS: Ragged(counts, np.arange(total, dtype=np.int32)),
        "num_tokens": np.full(num_rows, 99, np.int32),
        "truncated": np.arange(num_rows) % 2 == 0,
        "note": [f"r{row}" for row in range(num_rows)],
    }
    return result_table(COLUMNS, data)


@given(st.lists(st.integers(0, 4), max_size=9), st.sets(st.integers(0, 8)))
def test_every_value_stands_beside_the_columns_of_its_row(lengths, absent):
    absent = {row for row in absent if row < len(lengths)}
    table = pa.table({"id": pa.array(range(len(lengths)), pa.int64())})
    chosen = pa.array([None if row in absent else row for row in range(len(lengths))], pa.int64())
    chunk, exploded = explode(RowChunk(0, table, {}), results_of(lengths).take(chosen))
    expected = []
    value = 0
    for row, length in enumerate(lengths):
        if row in absent:
            expected.append((row, None, None, None, None, None))
        else:
            for number in range(value, value + length):
                vector = [2.0 * number, 2.0 * number + 1]
                expected.append((row, vector, f"v{number}", number, row % 2 == 0, f"r{row}"))
        value += length
    found = [
        chunk.table["id"],
        *(exploded[name] for name in ("vector", "label", "num_tokens", "truncated", "note")),
    ]
    assert list(zip(*(column.to_pylist() for column in found), strict=True)) == expected
    assert exploded.column_names == [column.name for column in exploded_columns(COLUMNS)]


def test_columns_of_any_type_are_repeated():
    table = pa.table({"view": pa.array(["a", "b"], pa.string_view()), "list": [[1], None]})
    chunk, _ = explode(RowChunk(0, table, {}), results_of([1, 2]))
    assert chunk.table.to_pylist() == [{"view": "a", "list": [1]}, *[{"view": "b", "list": None}] * 2]


def test_columns_are_declared_as_what_they_become():
    assert exploded_columns(COLUMNS[:4]) == [
        ResultColumn("vector", "float32", 2),
        ResultColumn("label", "str"),
        ResultColumn("num_tokens", "int32"),
    ]
