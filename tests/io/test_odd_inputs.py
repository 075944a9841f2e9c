"""What users of other tools ran into: odd bytes, odd keys, late columns, in the formats that have them."""

import json

import pyarrow as pa
import pytest

from poolembed.config import InputConfig
from poolembed.io import TextRole, open_source


@pytest.mark.parametrize(
    "text", ["a\x00b", "\x00", "a\rb", "\u2028\u2029", "\ufeff", "\x85\x0b\x0c\x1c", "\u200b"]
)
@pytest.mark.parametrize("name", ["a.jsonl", "a.csv", "a.tsv"])
def test_odd_characters_arrive_as_they_are(tmp_path, read, text, name):
    mark = "\t" if name == "a.tsv" else ","
    data = json.dumps({"text": text}) if name == "a.jsonl" else f'id{mark}text\n1{mark}"{text}"\n'
    (tmp_path / name).write_bytes(data.encode())
    assert read(tmp_path / name).texts == [text]


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_line_ends_and_byte_order_marks_change_nothing(tmp_path, read, end, mark):
    contents = {
        "a.jsonl": [b'{"text": "a"}', b'{"text": "b"}'],
        "a.csv": [b"text,n", b"a,1", b'"b",2'],
        "a.tsv": [b"text\tn", b"a\t1", b"b\t2"],
        "a.txt": [b"a", b"b"],
    }
    for name, lines in contents.items():
        for last in (b"", end):
            (tmp_path / name).write_bytes(mark + end.join(lines) + last)
            assert read(tmp_path / name).texts == ["a", "b"], (name, last)


def test_a_text_with_a_carriage_return_at_its_end_keeps_it_in_quotes_alone(tmp_path, read):
    (tmp_path / "a.csv").write_bytes(b'n,text\r\n1,"a\r"\r\n2,b\r\n')
    assert read(tmp_path / "a.csv").texts == ["a\r", "b"]


def test_keys_may_come_late_go_away_and_be_unknown(write, read):
    lines = [{"text": "x"}] * 5000 + [
        {"late": {"a": 1}, "text": "y"},
        {"text": "z", "late": None, "other": []},
    ]
    whole = read(write("a.jsonl", *lines), max_rows=999)
    assert whole.table.num_rows == 5002
    assert whole.table["late"].to_pylist()[-3:] == [None, {"a": 1}, None]
    assert whole.table["other"].to_pylist()[-2:] == [None, []]


def test_columns_of_nothing_but_nulls_become_what_a_later_file_says(write, read):
    first = write("a.jsonl", *[{"text": "x", "n": None, "s": None}] * 3000)
    second = write("b.jsonl", {"text": "y", "n": 1.5, "s": "2024-01-01"})
    whole = read(first, second)
    assert [whole.schema.field(name).type for name in ("n", "s")] == [pa.float64(), pa.string()]
    assert whole.table["s"].to_pylist()[-1] == "2024-01-01"


@pytest.mark.parametrize("largest", [2**63 - 1, 2**63, 2**64 - 1, 2**64, 10**40])
def test_large_ids_keep_every_digit(write, read, largest):
    chunk = read(write("a.jsonl", {"id": largest, "text": "x"}, {"id": 1, "text": "y"})).chunks[0]
    assert chunk.ids == (str(largest), "1")
    assert [str(value) for value in chunk.table["id"].to_pylist()] == [str(largest), "1"]


def test_ids_that_change_type_stay_what_they_were_written_as(write, read):
    lines = ['{"id": 1.10, "text": "x"}', '{"id": "b", "text": "y"}', '{"id": 1e3, "text": "z"}']
    chunk = read(write("a.jsonl", *lines)).chunks[0]
    assert chunk.table["id"].to_pylist() == ["1.10", "b", "1e3"]
    assert chunk.ids == ("1.10", "b", "1e3")


@pytest.mark.parametrize(
    "text", ["2024-01-01", "2023-05-06 07:08:09", "12:00", "1e5", "true", "null", "NaN", "0x10"]
)
@pytest.mark.parametrize("name", ["a.jsonl", "a.csv", "a.txt"])
def test_texts_that_look_like_other_types_are_texts(tmp_path, read, text, name):
    data = {"a.jsonl": json.dumps({"text": text}), "a.csv": f"text\n{text}", "a.txt": text}[name]
    (tmp_path / name).write_text(data, "utf-8")
    assert read(tmp_path / name).table["text"].to_pylist() == [text]


MEBIBYTE = 2**20
NUM_ROWS = 2200


def json_line(text: str) -> bytes:
    return b'{"text": "' + text.encode() + b'"}\n'


def csv_line(text: str) -> bytes:
    return b'"' + text.encode() + b'"\n'


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "head", "line"), [("a.jsonl", b"", json_line), ("a.csv", b"text\n", csv_line)]
)
def test_strings_over_two_gibibytes_in_all_stream_through(tmp_path, name, head, line):
    path = tmp_path / name
    # Packed, because two gibibytes of one letter need not go through a disk.
    with pa.CompressedOutputStream(str(path), "zstd") as handle:
        handle.write(head)
        for _ in range(NUM_ROWS):
            handle.write(line("x" * (MEBIBYTE - 1) + "\u00e9"))
    num_rows, before = 0, pa.total_allocated_bytes()
    with open_source(InputConfig(paths=(str(path),)), [TextRole("text", ("text",))]) as source:
        for chunk in source.chunks(1000, 64 * MEBIBYTE):
            assert {len(text) for text in chunk.texts["text"]} == {MEBIBYTE}
            assert pa.total_allocated_bytes() - before < 512 * MEBIBYTE
            num_rows += chunk.num_rows
    assert num_rows == source.num_rows == NUM_ROWS
    path.unlink()
