"""Mutated inputs of every format end in an InputError or in rejects, and no row is unaccounted for.

The mutations of a seed are always the same. 2 000 inputs run every time, 100 000 among the slow tests.
"""

import bz2
import gzip
import io
import json
import lzma
import random
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from poolembed.config import InputConfig
from poolembed.errors import InputError
from poolembed.io import TextRole, open_source

TEXT = TextRole("text", ("text",))
TEXTS = ["a", "漢字😀", "", None, "b\nc", "\\ud83d", ' "quoted", twice', "x" * 30]
ROWS = [
    {"id": f"r{n}" if n % 3 else n, "text": text, "n": n, "x": {"a": [1, 2.5, None]}}
    for n, text in enumerate(TEXTS)
]
TABLE = pa.table(
    {
        "id": pa.array(range(8), pa.uint64()),
        "text": TEXTS,
        "kind": pa.array(["a", "b"] * 4).dictionary_encode(),
        "tags": [["x", None], [], None, ["y"]] * 2,
        "vector": pa.array([[1.0, 2.0], None] * 4, pa.list_(pa.float32(), 2)),
    }
)


def json_lines() -> bytes:
    return "".join(json.dumps(row, ensure_ascii=row["n"] % 2 == 0) + "\n" for row in ROWS).encode()


def delimited(mark: str) -> bytes:
    cells = [
        '"' + (text or "").replace('"', '""') + '"' if n % 2 else "plain" for n, text in enumerate(TEXTS)
    ]
    return (
        f"id{mark}text{mark}n\r\n".encode()
        + "".join(f"{n}{mark}{cell}{mark}{n}\r\n" for n, cell in enumerate(cells)).encode()
    )


def arrow(opener, **options) -> bytes:
    sink = io.BytesIO()
    with opener(sink, TABLE.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(TABLE, max_chunksize=5)
    return sink.getvalue()


def parquet(**options) -> bytes:
    sink = io.BytesIO()
    pq.write_table(TABLE, sink, row_group_size=5, **options)
    return sink.getvalue()


INPUTS = {
    "a.jsonl": json_lines(),
    "a.csv": delimited(","),
    "a.tsv": delimited("\t"),
    "a.txt": "\n".join(text or "" for text in TEXTS).encode(),
    "gzip.jsonl": gzip.compress(json_lines(), mtime=0),
    "zstd.jsonl": pa.compress(json_lines(), codec="zstd", asbytes=True) * 2,
    "bzip2.csv": bz2.compress(delimited(",")),
    "xz.txt": lzma.compress(json_lines()),
    "file.arrow": arrow(pa.ipc.new_file),
    "packed.arrow": arrow(pa.ipc.new_file, compression="lz4"),
    "stream.arrow": arrow(pa.ipc.new_stream),
    "plain.parquet": parquet(use_dictionary=False, compression=None),
    "snappy.parquet": parquet(compression="snappy"),
    "zstd.parquet.gz": gzip.compress(parquet(compression="zstd"), mtime=0),
}
TOKENS = [
    b"{",
    b"}",
    b'"',
    b"\\ud8",
    b"\n",
    b"\r",
    b"]",
    b",",
    b"\x00",
    b"\xff",
    b"\xef\xbb\xbf",
    b"null",
    b"1e999",
]
POLICIES = (
    {"on_error": "skip"},
    {"on_error": "skip", "on_null": "null", "on_empty": "null", "on_bad_text": "replace"},
    {"on_error": "skip", "on_empty": "reject", "on_bad_text": "reject", "on_duplicate_id": "first"},
    {},
)


def policies_of(name: str) -> list[dict[str, str]]:
    """Return the policies for a file; plain text has no ids, and looking for equal ones is refused."""
    without = {"on_duplicate_id"} if name.endswith(".txt") else set()
    return [{key: value for key, value in policy.items() if key not in without} for policy in POLICIES]


def mutated(data: bytes, choose: random.Random) -> bytes:
    """Flip, cut, insert, overwrite or double something, once to four times."""
    for _ in range(choose.randint(1, 4)):
        at = choose.randrange(len(data) + 1)
        length = choose.randrange(1, 1 + choose.choice([1, 4, 16, 64]))
        kind = choose.randrange(6)
        if kind == 0 and at < len(data):
            data = data[:at] + bytes([data[at] ^ 1 << choose.randrange(8)]) + data[at + 1 :]
        elif kind == 1:
            data = data[:at] + data[at + length :]
        elif kind == 2:
            data = data[:at] + choose.choice(TOKENS) + data[at:]
        elif kind == 3:
            data = data[:at] + choose.randbytes(length) + data[at + length :]
        elif kind == 4:
            data = data[:at] + data[at : at + length] * 2 + data[at + length :]
        else:
            data = (
                data[:at]
                if choose.random() < 0.2
                else data[:at] + data[at + length :] + data[at : at + length]
            )
    return data


def check(path, policy) -> bool:
    """Read a file to its end; whether it could be read."""
    config = InputConfig(paths=(str(path),), **policy)
    try:
        with open_source(config, [TEXT]) as source:
            chunks = list(source.chunks(3, 200))
    except InputError:
        return False
    good = sum(chunk.num_rows for chunk in chunks)
    assert good + sum(len(chunk.rejects) for chunk in chunks) == source.num_rows
    for chunk in chunks:
        assert len(chunk.texts["text"]) == len(chunk.places) == chunk.num_rows
        assert all(type(text) is str for text in chunk.texts["text"])
        assert chunk.ids is None or len(chunk.ids) == chunk.num_rows
        assert all(0 <= row < chunk.num_rows for row in chunk.absent)
        assert chunk.table.schema == source.schema
        chunk.table.validate()
        "".join(chunk.texts["text"]).encode()
    return True


def run(folder, name: str, seed: int, times: int) -> None:
    choose = random.Random(f"{name} {seed}")
    path = folder / name
    for number in range(times):
        path.write_bytes(mutated(INPUTS[name], choose))
        policies = policies_of(name)
        check(path, policies[number % len(policies)])


@pytest.fixture
def folder(tmp_path):
    """A folder in memory, where there is one: writing the inputs to a disk takes longer than reading them."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else tmp_path) as name:
        yield Path(name)


@pytest.mark.parametrize("name", INPUTS)
def test_the_unharmed_input_is_read(tmp_path, name):
    (tmp_path / name).write_bytes(INPUTS[name])
    assert all(check(tmp_path / name, policy) for policy in policies_of(name)[:3])


@pytest.mark.parametrize("name", INPUTS)
def test_two_thousand_mutated_inputs(folder, name):
    run(folder, name, 0, -(-2000 // len(INPUTS)))


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("name", INPUTS)
def test_a_hundred_thousand_mutated_inputs(folder, name):
    run(folder, name, 1, -(-100_000 // len(INPUTS)))
