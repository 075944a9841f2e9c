"""Columns of more than 2 GiB, which 32-bit offsets cannot hold, stream through."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from poolembed.config import InputConfig
from poolembed.io import TextRole, open_source

pytestmark = pytest.mark.slow

MEBIBYTE = 2**20
NUM_ROWS = 2200


def test_strings_and_lists_over_two_gibibytes_in_one_row_group_stream_through(tmp_path):
    texts = pa.chunked_array([pa.array(["x" * MEBIBYTE] * 20)] * (NUM_ROWS // 20))
    tags = pa.chunked_array([pa.array([["y" * MEBIBYTE]] * 20)] * (NUM_ROWS // 20))
    path = tmp_path / "a.parquet"
    table = pa.table({"text": texts, "tags": tags})
    pq.write_table(table, path, row_group_size=NUM_ROWS, use_dictionary=False, compression="zstd")
    assert pq.read_metadata(path).row_group(0).total_byte_size > 2 * 2**31
    num_rows, before = 0, pa.total_allocated_bytes()
    with open_source(InputConfig(paths=(str(path),)), [TextRole("text", ("text",))]) as source:
        for chunk in source.chunks(1000, 64 * MEBIBYTE):
            assert chunk.num_rows <= 32
            assert {len(text) for text in chunk.texts["text"]} == {MEBIBYTE}
            assert pa.total_allocated_bytes() - before < 512 * MEBIBYTE
            num_rows += chunk.num_rows
    assert num_rows == NUM_ROWS
