"""Parquet through the whole source: kept types, texts of any string type, rejects, memory bounds."""

import datetime
import decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from poolembed.config import InputConfig
from poolembed.errors import InputError
from poolembed.io import TextRole, open_source

TEXT = TextRole("text", ("text",))


@pytest.fixture
def save(tmp_path):
    def save(columns, name: str = "a.parquet", **options):
        table = columns if isinstance(columns, pa.Table) else pa.table(columns)
        pq.write_table(table, tmp_path / name, **options)
        return tmp_path / name

    return save


def broken_utf8(*values: bytes) -> pa.Array:
    """A string column whose bytes are not looked at, as other writers make them."""
    offsets = np.cumsum([0, *map(len, values)]).astype(np.int32)
    return pa.Array.from_buffers(
        pa.string(), len(values), [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(b"".join(values))]
    )


KEPT = {
    "int8": pa.array([1, None], pa.int8()),
    "uint64": pa.array([2**64 - 1, None], pa.uint64()),
    "float16": pa.array([1.5, None], pa.float16()),
    "decimal": pa.array([decimal.Decimal("1.10"), None], pa.decimal128(20, 2)),
    "timestamp": pa.array([datetime.datetime(2024, 1, 1), None], pa.timestamp("us", "Europe/Berlin")),
    "date": pa.array([datetime.date(2024, 1, 1), None]),
    "dictionary": pa.array(["a", None]).dictionary_encode(),
    "large_string": pa.array(["a", None], pa.large_string()),
    "string_view": pa.array(["a", None], pa.string_view()),
    "binary": pa.array([b"\xff", None]),
    "fixed": pa.array([b"ab", None], pa.binary(2)),
    "struct": pa.array([{"a": [1, None], "b": {"c": "x"}}, None]),
    "map": pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int64())),
    "list": pa.array([["a", None], None]),
    "large_list": pa.array([[1], None], pa.large_list(pa.int32())),
    "vector": pa.array([[1.0, 2.0], None], pa.list_(pa.float32(), 2)),
    "null": pa.nulls(2),
    "json": pa.array(['{"a": 1}', None], pa.json_()),
    "bool": pa.array([True, None]),
}


@pytest.mark.parametrize("name", KEPT)
def test_rows_of_every_type_can_be_left_out(save, read, name):
    whole = read(save({"text": [None, "y"], name: KEPT[name]}), on_error="skip")
    assert whole.table[name].to_pylist() == KEPT[name].to_pylist()[1:]


@pytest.mark.parametrize("name", KEPT)
def test_every_type_is_kept_exactly(save, read, name):
    column = KEPT[name]
    whole = read(save({"text": ["x", "y"], name: column}))
    assert whole.schema.field(name).type == column.type
    assert whole.table[name].to_pylist() == column.to_pylist()
    assert whole.table.schema == whole.schema


def test_field_metadata_and_non_null_fields_are_kept(save, read):
    field = pa.field("id", pa.int32(), nullable=False, metadata={"unit": "metres"})
    table = pa.table(
        [pa.array([1], pa.int32()), pa.array(["x"])], schema=pa.schema([field, ("text", pa.string())])
    )
    kept = read(save(table)).schema.field("id")
    assert not kept.nullable
    assert kept.metadata[b"unit"] == b"metres"


@pytest.mark.parametrize(
    "kind",
    [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string()), pa.json_()],
    ids=str,
)
def test_texts_are_read_from_every_kind_of_string(save, read, kind):
    texts = ["one", "", "漢字 😀", None, "one"]
    plain = pa.array(texts)
    column = (
        pa.ExtensionArray.from_storage(kind, plain)
        if isinstance(kind, pa.BaseExtensionType)
        else plain.cast(kind)
    )
    path = save({"text": column})
    whole = read(path, on_error="skip")
    assert whole.texts == ["one", "", "漢字 😀", "one"]
    assert whole.table["text"].to_pylist() == whole.texts
    assert [(reject.file, reject.row, reject.code) for reject in whole.rejects] == [
        (str(path), 4, "null_text")
    ]


def test_a_null_text_stops_the_run_before_it_starts(save):
    path = save({"text": ["a"] * 5000 + [None, "b", None]}, row_group_size=1000)
    with pytest.raises(InputError, match=r"a\.parquet:5001: the text in 'text' is null"):
        open_source(InputConfig(paths=(str(path),)), [TEXT])


def test_bytes_that_are_not_utf_8_are_refused_row_by_row(save, read):
    path = save({"text": broken_utf8(b"one", b"caf\xe9", b"\xff\xfe", b"two"), "n": [1, 2, 3, 4]})
    with pytest.raises(InputError, match=r"a\.parquet:2: the text in 'text' is not UTF-8"):
        read(path)
    whole = read(path, on_error="skip")
    assert whole.texts == ["one", "two"]
    assert whole.table["n"].to_pylist() == [1, 4]
    assert [(reject.row, reject.code, reject.excerpt) for reject in whole.rejects] == [
        (2, "invalid_utf8", "caf\ufffd"),
        (3, "invalid_utf8", "\ufffd\ufffd"),
    ]


def test_a_column_that_is_not_text_is_refused_with_the_columns_that_are(save):
    path = save({"text": [1, 2], "title": ["a", "b"], "body": ["c", "d"]})
    with pytest.raises(InputError, match=r"a\.parquet: the column 'text' holds int64, not strings") as caught:
        open_source(InputConfig(paths=(str(path),)), [TEXT])
    assert "body, title" in caught.value.hint


def test_bytes_are_not_taken_for_text(save):
    with pytest.raises(InputError, match="holds binary, not strings"):
        open_source(InputConfig(paths=(str(save({"text": [b"a"]})),)), [TEXT])


def test_a_column_of_nothing_but_nulls_is_refused_row_by_row(save, read):
    whole = read(save({"text": pa.nulls(3), "n": [1, 2, 3]}), on_error="skip")
    assert whole.table.num_rows == 0
    assert [reject.code for reject in whole.rejects] == ["null_text"] * 3


def test_two_columns_of_one_name_are_refused(save):
    table = pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"])], names=["text", "text"])
    with pytest.raises(InputError, match="two columns are named 'text'"):
        open_source(InputConfig(paths=(str(save(table)),)), [TEXT])


@pytest.mark.parametrize("data", [b"", b"PAR1", b"not parquet at all", b"PAR1" + b"x" * 100 + b"PAR1"])
def test_what_is_no_parquet_file_is_an_input_error(tmp_path, data):
    (tmp_path / "a.parquet").write_bytes(data)
    with pytest.raises(InputError, match=r"a\.parquet: cannot be read as Parquet: .+"):
        open_source(InputConfig(paths=(str(tmp_path / "a.parquet"),)), [TEXT])


@pytest.mark.parametrize("on_error", ["fail", "skip"])
def test_damaged_pages_are_an_input_error(save, on_error):
    path = save({"text": [f"row {number} " * 20 for number in range(2000)]}, use_dictionary=False)
    data = bytearray(path.read_bytes())
    data[4:2000] = bytes(1996)
    path.write_bytes(data)
    with (
        pytest.raises(InputError, match="cannot be read as Parquet"),
        open_source(InputConfig(paths=(str(path),), on_error=on_error), [TEXT]) as source,
    ):
        list(source.chunks(10, 1000))


def test_a_file_replaced_after_the_survey_is_noticed(save):
    path = save({"text": ["a", "b"]})
    with open_source(InputConfig(paths=(str(path),)), [TEXT]) as source:
        save({"text": ["a", "b", "c"]})
        with pytest.raises(InputError, match="changed while it was being read"):
            list(source.chunks(10, 10))


def test_an_empty_file_gives_no_rows_and_its_schema(save, read):
    table = pa.table({"text": pa.array([], pa.large_string()), "n": pa.array([], pa.int8())})
    whole = read(save(table))
    assert (whole.num_rows, whole.chunks) == (0, [])
    assert whole.schema == table.schema


@pytest.mark.parametrize("limit", [1, 999, 1000, 1001, 2500, 9999])
def test_the_limit_counts_rows(save, read, limit):
    path = save(
        {"text": [None if number == 5 else str(number) for number in range(2500)]}, row_group_size=1000
    )
    whole = read(path, limit=limit, on_error="skip")
    assert whole.num_rows == min(limit, 2500) == len(whole.texts) + len(whole.rejects)
    assert whole.texts == [str(number) for number in range(whole.num_rows) if number != 5]


def test_columns_with_dots_and_empty_names_are_told_apart(save, read):
    table = pa.table({"a.b": [1], "a": [{"b": 2, "c": 3}], "": ["nameless"], "text": ["x"]})
    whole = read(save(table), columns=("a", "", "a.b"))
    assert whole.table.to_pylist() == [{"a": {"b": 2, "c": 3}, "": "nameless", "a.b": 1}]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40, deadline=None)
@given(
    st.lists(st.one_of(st.none(), st.text(max_size=30)), min_size=1, max_size=60),
    st.integers(1, 20),
    st.integers(1, 20),
    st.integers(1, 300),
)
def test_chunks_of_any_size_put_together_are_the_input(save, read, values, group, max_rows, max_bytes):
    path = save({"n": list(range(len(values))), "text": pa.array(values, pa.string())}, row_group_size=group)
    whole = read(path, max_rows=max_rows, max_bytes=max_bytes, on_error="skip")
    assert whole.table.to_pylist() == [
        {"n": n, "text": text} for n, text in enumerate(values) if text is not None
    ]
    assert whole.texts == whole.table["text"].to_pylist()
    assert [reject.row for reject in whole.rejects] == [
        n + 1 for n, text in enumerate(values) if text is None
    ]
    for chunk in whole.chunks:
        assert chunk.num_rows + len(chunk.rejects) <= max_rows
        assert sum(len(text.encode()) for text in chunk.texts["text"]) <= max_bytes or chunk.num_rows == 1


def test_heavy_columns_beside_short_texts_bound_the_chunk(save, read):
    path = save({"text": ["x"] * 100, "page": [b"p" * 10_000] * 100})
    chunks = read(path, max_bytes=50_000).chunks
    assert max(chunk.num_rows for chunk in chunks) <= 5


def test_heavy_columns_that_are_left_out_are_not_weighed(save, read):
    path = save({"text": ["x"] * 100, "page": [b"p" * 10_000] * 100})
    assert len(read(path, max_bytes=50_000, columns=("text",)).chunks) == 1


def test_large_rows_are_read_in_small_batches(save):
    path = save({"text": ["x" * 2**20] * 40}, use_dictionary=False)
    with open_source(InputConfig(paths=(str(path),)), [TEXT]) as source:
        sizes = [chunk.num_rows for chunk in source.chunks(1000, 8 * 2**20)]
    assert sizes == [8] * 5
