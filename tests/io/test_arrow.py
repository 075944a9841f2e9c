"""Arrow files, streams and Feather through the whole source."""

import gzip
import io

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pytest

from poolembed.config import InputConfig
from poolembed.errors import InputError
from poolembed.io import TextRole, open_source

TEXT = TextRole("text", ("text",))
TABLE = pa.table(
    {
        "id": pa.array([2**64 - 1, 5, None], pa.uint64()),
        "text": ["one", "zwei", "三"],
        "kind": pa.array(["a", "b", "a"]).dictionary_encode(),
        "vector": pa.array([[1.0, 2.0], None, [3.0, 4.0]], pa.list_(pa.float32(), 2)),
        "struct": [{"a": [1]}, None, {"a": []}],
    }
)


def packed(table: pa.Table, kind: str, **options) -> bytes:
    sink = io.BytesIO()
    if kind == "feather":
        pa.feather.write_feather(table, sink, **options)
        return sink.getvalue()
    opener = pa.ipc.new_file if kind == "file" else pa.ipc.new_stream
    with opener(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table, max_chunksize=2)
    return sink.getvalue()


@pytest.mark.parametrize("kind", ["file", "stream", "feather"])
@pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
def test_rows_and_types_are_kept(tmp_path, read, kind, compression):
    path = tmp_path / "a.arrow"
    options = (
        {"compression": compression or "uncompressed"} if kind == "feather" else {"compression": compression}
    )
    path.write_bytes(packed(TABLE, kind, **options))
    whole = read(path)
    assert whole.table.equals(TABLE)
    assert whole.schema == TABLE.schema
    assert whole.texts == TABLE["text"].to_pylist()
    assert whole.chunks[0].ids == (str(2**64 - 1), "5", None)
    assert whole.chunks[0].places == tuple((str(path), row) for row in (1, 2, 3))


@pytest.mark.parametrize("suffix", [".arrow", ".feather", ".ipc", ".arrow.gz", ".FEATHER.ZST"])
def test_names(tmp_path, read, suffix):
    data = packed(TABLE, "file")
    if suffix.endswith("gz"):
        data = gzip.compress(data)
    if suffix.endswith("ZST"):
        data = pa.compress(data, codec="zstd", asbytes=True)
    (tmp_path / f"a{suffix}").write_bytes(data)
    assert read(tmp_path / f"a{suffix}").table.equals(TABLE)


@pytest.mark.parametrize("columns", [("text",), ("struct", "id"), ("kind", "text", "vector")])
def test_only_what_is_kept_is_read(tmp_path, read, columns):
    (tmp_path / "a.arrow").write_bytes(packed(TABLE, "stream"))
    assert read(tmp_path / "a.arrow", columns=columns).table.equals(TABLE.select(columns))


@pytest.mark.parametrize("limit", [1, 2, 3, 4])
def test_the_limit_counts_across_batches(tmp_path, read, limit):
    (tmp_path / "a.arrow").write_bytes(packed(TABLE, "file"))
    assert read(tmp_path / "a.arrow", limit=limit).texts == TABLE["text"].to_pylist()[:limit]


@pytest.mark.parametrize("kind", ["file", "stream"])
def test_a_file_without_rows_has_a_schema(tmp_path, read, kind):
    (tmp_path / "a.arrow").write_bytes(packed(TABLE.slice(0, 0), kind))
    whole = read(tmp_path / "a.arrow")
    assert (whole.num_rows, whole.schema) == (0, TABLE.schema)


def test_large_batches_are_cut(tmp_path):
    table = pa.table({"text": ["x" * 2**20] * 40})
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    (tmp_path / "a.arrow").write_bytes(sink.getvalue())
    with open_source(InputConfig(paths=(str(tmp_path / "a.arrow"),)), [TEXT]) as source:
        assert [chunk.num_rows for chunk in source.chunks(1000, 8 * 2**20)] == [8] * 5


def broken_utf8(kind: pa.DataType) -> pa.Array:
    offsets = np.array([0, 3, 7], dtype=np.int64 if kind == pa.large_string() else np.int32)
    return pa.Array.from_buffers(
        kind, 2, [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(b"onecaf\xe9")]
    )


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()], ids=str)
def test_bytes_that_are_not_utf_8_are_refused_row_by_row_or_replaced(tmp_path, read, kind):
    (tmp_path / "a.arrow").write_bytes(packed(pa.table({"text": broken_utf8(kind)}), "file"))
    whole = read(tmp_path / "a.arrow", on_error="skip")
    assert whole.texts == ["one"]
    assert [(reject.row, reject.code) for reject in whole.rejects] == [(2, "invalid_utf8")]
    whole = read(tmp_path / "a.arrow", on_bad_text="replace")
    assert whole.texts == whole.table["text"].to_pylist() == ["one", "caf\ufffd"]
    assert (whole.schema.field("text").type, whole.num_replaced) == (kind, 1)


@pytest.mark.parametrize("data", [b"", b"ARROW1", b"ARROW1\0\0" + b"x" * 100 + b"ARROW1", b"no arrow at all"])
def test_what_is_no_arrow_file_is_an_input_error(tmp_path, data):
    (tmp_path / "a.arrow").write_bytes(data)
    with pytest.raises(InputError, match=r"a\.arrow: cannot be read as Arrow: .+"):
        open_source(InputConfig(paths=(str(tmp_path / "a.arrow"),)), [TEXT])


def test_the_first_version_of_feather_is_told(tmp_path):
    (tmp_path / "a.feather").write_bytes(b"FEA1" + bytes(50))
    with pytest.raises(InputError, match="first version of Feather"):
        open_source(InputConfig(paths=(str(tmp_path / "a.feather"),)), [TEXT])


def test_a_stream_that_is_cut_off_is_an_input_error(tmp_path, read):
    data = packed(TABLE, "stream")
    (tmp_path / "a.arrow").write_bytes(data[: len(data) // 2])
    with pytest.raises(InputError, match=r"a\.arrow"):
        read(tmp_path / "a.arrow")


@pytest.mark.parametrize("kind", ["file", "stream", "parquet"])
def test_standard_input_is_known_by_its_first_bytes(read, kind):
    if kind == "parquet":
        sink = io.BytesIO()
        pa.parquet.write_table(TABLE, sink)
        data = sink.getvalue()
    else:
        data = packed(TABLE, kind)
    for stdin in (data, gzip.compress(data)):
        assert read("-", stdin=io.BytesIO(stdin)).texts == TABLE["text"].to_pylist()


def test_standard_input_is_what_the_user_says(read):
    assert read("-", stdin=io.BytesIO(b"text,n\na,1\n"), input_format="csv").texts == ["a"]
    assert read("-", stdin=io.BytesIO(b"a\n\nb"), input_format="text").texts == ["a", "", "b"]
