"""Compressed files, known by their first bytes."""

import bz2
import gzip
import lzma

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from poolembed.errors import InputError

LINES = b"".join(b'{"text": "row %d"}\n' % number for number in range(300))
PACK = {
    "gzip": gzip.compress,
    "zstd": lambda data: pa.compress(data, codec="zstd", asbytes=True),
    "bzip2": bz2.compress,
    "xz": lzma.compress,
}


@pytest.fixture(params=PACK)
def kind(request):
    return request.param


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.ndjson.zst", "a.jsonl.xz"])
def test_the_name_decides_nothing(tmp_path, read, kind, name):
    (tmp_path / name).write_bytes(PACK[kind](LINES))
    assert read(tmp_path / name).texts == [f"row {number}" for number in range(300)]


def test_streams_one_after_the_other_are_one_file(tmp_path, read, kind):
    pack = PACK[kind]
    (tmp_path / "a.jsonl").write_bytes(pack(LINES[:1000]) + pack(LINES[1000:2000]) + pack(LINES[2000:]))
    assert read(tmp_path / "a.jsonl").num_rows == 300


def test_an_empty_stream_has_no_rows(tmp_path, read, kind):
    (tmp_path / "a.jsonl").write_bytes(PACK[kind](b""))
    assert read(tmp_path / "a.jsonl").num_rows == 0


@pytest.mark.parametrize("part", [0.1, 0.5, 0.9, 0.99])
@pytest.mark.parametrize("name", ["a.jsonl", "a.csv", "a.txt", "a.parquet", "a.arrow"])
@pytest.mark.parametrize("first", [True, False], ids=["alone", "after another"])
def test_a_stream_that_is_cut_off_is_an_input_error(tmp_path, read, kind, part, name, first):
    data = PACK[kind](LINES)
    cut = max(12, int(part * len(data)))
    (tmp_path / name).write_bytes((b"" if first else data) + data[:cut])
    with pytest.raises(InputError, match=f"the {kind} data is damaged or cut off"):
        read(tmp_path / name, on_error="skip")


def test_damaged_data_is_an_input_error(tmp_path, read, kind):
    data = bytearray(PACK[kind](LINES))
    start = 6 if kind == "zstd" else 12
    data[start : start + 8] = (
        b"\xff" * 8
    )  # zstd streams need not have a checksum, so a flipped bit may go unseen
    (tmp_path / "a.jsonl").write_bytes(data)
    with pytest.raises(InputError, match="damaged"):
        read(tmp_path / "a.jsonl", on_error="skip")


def test_a_text_that_begins_like_bzip2_is_a_text(tmp_path, read):
    (tmp_path / "a.txt").write_bytes(b"BZh9 is no header\n")
    assert read(tmp_path / "a.txt").texts == ["BZh9 is no header"]


def test_compressed_parquet_is_unpacked_to_be_read(tmp_path, read, kind):
    pq.write_table(pa.table({"text": ["a", "b"]}), tmp_path / "plain.parquet")
    (tmp_path / "a.parquet").write_bytes(PACK[kind]((tmp_path / "plain.parquet").read_bytes()))
    assert read(tmp_path / "a.parquet").texts == ["a", "b"]
