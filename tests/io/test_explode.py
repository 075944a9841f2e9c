"""Lists of results that become rows."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from poolembed.io.chunk import RowChunk
from poolembed.io.explode import explode, exploded_columns
from poolembed.results import WINDOW_TOKENS, Ragged, ResultColumn


@given(st.lists(st.integers(0, 4), max_size=9))
def test_every_value_stands_beside_the_columns_of_its_row(lengths):
    total, num_rows = sum(lengths), len(lengths)
    counts = np.asarray(lengths, np.int64)
    table = pa.table({"id": pa.array(range(num_rows), pa.int64())})
    results = {
        "vector": Ragged(counts, np.arange(2 * total, dtype=np.float32).reshape(total, 2)),
        "label": Ragged(counts, [f"v{value}" for value in range(total)]),
        WINDOW_TOKENS: Ragged(counts, np.arange(total, dtype=np.int32)),
        "num_tokens": np.full(num_rows, 99, np.int32),
        "truncated": np.arange(num_rows) % 2 == 0,
        "note": [f"r{row}" for row in range(num_rows)],
    }
    chunk, exploded = explode(RowChunk(0, table, {"text": [""] * num_rows}), results)
    rows = [row for row, times in enumerate(lengths) for _ in range(times)]
    assert chunk.table["id"].to_pylist() == rows
    assert exploded["note"] == [f"r{row}" for row in rows]
    assert exploded["truncated"].tolist() == [row % 2 == 0 for row in rows]
    assert exploded["label"] == [f"v{value}" for value in range(total)]
    assert exploded["num_tokens"].tolist() == list(range(total))
    assert exploded["vector"].shape == (total, 2)
    assert set(exploded) == set(results) - {WINDOW_TOKENS}


def test_columns_of_any_type_are_repeated():
    table = pa.table({"view": pa.array(["a", "b"], pa.string_view()), "list": [[1], None]})
    results = {
        WINDOW_TOKENS: Ragged(np.asarray([1, 2]), np.zeros(3, np.int32)),
        "num_tokens": np.zeros(2, int),
    }
    chunk, _ = explode(RowChunk(0, table, {}), results)
    assert chunk.table.to_pylist() == [{"view": "a", "list": [1]}, *[{"view": "b", "list": None}] * 2]


def test_columns_are_declared_as_what_they_become():
    columns = [
        ResultColumn("v", "float32", 2, is_list=True),
        ResultColumn(WINDOW_TOKENS, "int32", is_list=True),
        ResultColumn("num_tokens", "int32"),
    ]
    assert exploded_columns(columns) == [ResultColumn("v", "float32", 2), ResultColumn("num_tokens", "int32")]
