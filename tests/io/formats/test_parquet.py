"""Row groups of even size, plain vectors, and results that share memory with numpy."""

import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from poolembed.io.formats.parquet import GROUP_BYTES, MAX_GROUP_ROWS, ParquetGroups
from poolembed.io.result_arrays import result_array, result_field
from poolembed.results import ResultColumn


def written(tables, schema, plain=()) -> pq.ParquetFile:
    handle = io.BytesIO()
    groups = ParquetGroups(handle, schema, frozenset(plain))
    for table in tables:
        groups.write(table)
    groups.finish()
    return pq.ParquetFile(io.BytesIO(handle.getvalue()))


def group_rows(file: pq.ParquetFile) -> list[int]:
    return [file.metadata.row_group(index).num_rows for index in range(file.num_row_groups)]


def vectors(num_rows: int, dim: int) -> pa.Table:
    column = ResultColumn("embedding", "float32", dim)
    values = np.random.default_rng(0).standard_normal((num_rows, dim)).astype(np.float32)
    return pa.Table.from_arrays([result_array(column, values)], schema=pa.schema([result_field(column)]))


def test_small_tables_are_gathered_into_one_group():
    table = vectors(100, 8)
    assert group_rows(written([table] * 7, table.schema, ["embedding"])) == [700]


def test_a_large_table_is_split_at_64_mebibytes():
    table = vectors(30_000, 1024)
    file = written([table], table.schema, ["embedding"])
    sizes = [file.metadata.row_group(index).total_byte_size for index in range(file.num_row_groups)]
    assert sum(group_rows(file)) == 30_000
    assert len(sizes) == 2
    assert max(sizes) <= GROUP_BYTES * 1.01
    assert file.read().equals(table)


def test_tiny_rows_never_make_a_group_of_a_million():
    table = pa.table({"n": pa.array(np.arange(300_000, dtype=np.int8) % 100)})
    rows = group_rows(written([table, table], table.schema))
    assert sum(rows) == 600_000
    assert max(rows) <= MAX_GROUP_ROWS


def test_a_row_over_the_size_of_a_group_is_a_group_of_its_own():
    table = pa.table({"blob": [b"x" * (GROUP_BYTES + 1), b"y", b"z" * (GROUP_BYTES + 1)]})
    file = written([table.slice(0, 1), table.slice(1)], table.schema)
    assert file.read().equals(table)
    assert max(group_rows(file)) == 1


def test_order_is_kept_over_groups():
    tables = [pa.table({"n": np.arange(start, start + 1000)}) for start in range(0, 200_000, 1000)]
    assert written(tables, tables[0].schema).read()["n"].to_pylist() == list(range(200_000))


def test_vectors_are_stored_plainly_and_the_rest_compactly():
    table = vectors(1000, 16)
    extra = {
        "word": pa.array(["a", "b"] * 500),
        "tags": pa.array([["x"]] * 1000),
        "info": pa.array([{"a": 1, "m": {"k": "v"}}] * 1000),
        "map": pa.array([[("k", 1)]] * 1000, pa.map_(pa.string(), pa.int64())),
        "input_vector": pa.array([[1.0, 2.0]] * 1000, pa.list_(pa.float32(), 2)),
        "json": pa.array(["{}"] * 1000, pa.json_()),
    }
    for name, column in extra.items():
        table = table.append_column(name, column)
    file = written([table], table.schema, ["embedding"])
    leaves = {
        leaf.path_in_schema: leaf
        for leaf in (file.metadata.row_group(0).column(i) for i in range(file.metadata.num_columns))
    }
    vector = leaves.pop("embedding.list.element")
    assert vector.compression == "UNCOMPRESSED"
    assert "PLAIN" in vector.encodings
    assert not vector.has_dictionary_page
    assert not vector.is_stats_set
    assert len(leaves) == 8
    for leaf in leaves.values():
        assert (leaf.compression, leaf.has_dictionary_page, leaf.is_stats_set) == ("ZSTD", True, True)
        assert leaf.has_offset_index
    assert file.read().equals(table)


def test_no_rows_make_a_valid_file_with_the_schema():
    schema = pa.schema([("text", pa.string()), result_field(ResultColumn("embedding", "float32", 384))])
    file = written([], schema, ["embedding"])
    assert file.schema_arrow == schema
    assert file.metadata.num_rows == 0
    assert file.read().num_rows == 0


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (ResultColumn("v", "float32", 384), pa.list_(pa.float32(), 384)),
        (ResultColumn("v", "float16", 2), pa.list_(pa.float16(), 2)),
        (ResultColumn("v", "int8", 2), pa.list_(pa.int8(), 2)),
        (ResultColumn("n", "int32"), pa.int32()),
        (ResultColumn("t", "bool"), pa.bool_()),
        (ResultColumn("s", "float64"), pa.float64()),
    ],
)
def test_types_are_known_without_any_row(column, kind):
    assert result_field(column) == pa.field(column.name, kind, nullable=False)
    shape = (0,) if column.dim is None else (0, column.dim)
    assert result_array(column, np.zeros(shape, column.dtype)).type == kind


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "uint8", "int32", "int64"])
def test_values_survive_and_memory_is_shared(dtype):
    values = np.arange(12).reshape(4, 3).astype(dtype)
    array = result_array(ResultColumn("v", dtype, 3), values)
    assert array.to_pylist() == values.tolist()
    assert array.values.buffers()[1].address == values.ctypes.data


def test_booleans_are_packed():
    assert result_array(ResultColumn("t", "bool"), np.array([True, False])).to_pylist() == [True, False]


def test_values_that_do_not_lie_in_one_piece_are_copied():
    values = np.arange(24, dtype=np.float32).reshape(4, 6)[:, ::2]
    assert result_array(ResultColumn("v", "float32", 3), values).to_pylist() == values.tolist()


@pytest.mark.parametrize(
    "values",
    [
        np.zeros((2, 4), np.float32),
        np.zeros(2, np.float32),
        np.zeros((2, 3), np.float64),
        np.zeros((2, 3, 1), np.float32),
    ],
)
def test_another_shape_or_type_than_declared_is_refused(values):
    with pytest.raises(ValueError, match=r"the result 'v' has shape .* not \(2, 3\) and float32"):
        result_array(ResultColumn("v", "float32", 3), values)


def test_a_group_holds_fewer_values_than_32_bits_can_index():
    assert GROUP_BYTES < 2**31
    assert MAX_GROUP_ROWS < 1_000_000
