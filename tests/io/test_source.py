"""The source as a whole: several files, limits across them, what is told before a model is loaded."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from poolembed.config import InputConfig
from poolembed.errors import InputError
from poolembed.io import TextRole, open_source

TEXT = TextRole("text", ("text",))


@pytest.fixture
def three(tmp_path, write):
    """Files of 3, 4 and 2 rows, numbered through; row 4 (0-based) has no text."""
    pq.write_table(
        pa.table({"n": [3, 4, 5, 6], "text": ["3", None, "5", "6"]}), tmp_path / "b.parquet", row_group_size=3
    )
    return [
        write("a.jsonl", *[{"n": n, "text": str(n)} for n in range(3)]),
        tmp_path / "b.parquet",
        write("c.jsonl", {"n": 7, "text": "7"}, {"n": 8, "text": "8"}),
    ]


@pytest.mark.parametrize("max_rows", [1, 2, 4, 100])
def test_rows_of_all_files_come_in_order_and_chunks_cross_files(three, read, max_rows):
    whole = read(*three, max_rows=max_rows, on_error="skip")
    assert whole.table["n"].to_pylist() == [0, 1, 2, 3, 5, 6, 7, 8]
    assert whole.texts == [str(n) for n in whole.table["n"].to_pylist()]
    assert [(reject.file, reject.row) for reject in whole.rejects] == [(str(three[1]), 2)]
    assert whole.num_rows == 9
    assert all(chunk.num_rows + len(chunk.rejects) == max_rows for chunk in whole.chunks[:-1])


@pytest.mark.parametrize("limit", range(1, 11))
def test_the_limit_counts_across_files(three, read, limit):
    whole = read(*three, limit=limit, on_error="skip")
    assert whole.num_rows == min(limit, 9) == len(whole.texts) + len(whole.rejects)
    assert whole.texts == [str(n) for n in range(min(limit, 9)) if n != 4]


def test_files_beyond_the_limit_are_not_opened(write, read, tmp_path):
    (tmp_path / "b.parquet").write_bytes(b"broken")
    assert read(write("a.jsonl", {"text": "x"}), tmp_path / "b.parquet", limit=1).texts == ["x"]


def test_a_strict_run_stops_at_the_bad_row_of_any_file(three):
    with pytest.raises(InputError, match=r"b\.parquet:2: the text in 'text' is null"):
        open_source(InputConfig(paths=tuple(map(str, three))), [TEXT])


def test_a_strict_run_with_a_limit_does_not_look_beyond_it(three, read):
    assert read(*three, limit=4).texts == ["0", "1", "2", "3"]


def test_a_bad_row_in_a_later_jsonl_file_is_found(write):
    paths = [write("a.jsonl", {"text": "x"}), write("b.jsonl", {"text": "x"}, {"text": 1})]
    with pytest.raises(InputError, match=r"b\.jsonl:2: the text in 'text' is a number, not a string"):
        open_source(InputConfig(paths=tuple(map(str, paths))), [TEXT])


def test_outputs_that_stood_in_the_directory_are_named(tmp_path, write):
    path = write("in/a.jsonl", {"text": "x"})
    schema = pa.schema([("text", pa.string())], metadata={"poolembed.model": "m"})
    pq.write_table(pa.table({"text": ["y"]}, schema=schema), path.with_name("a.embed.parquet"))
    with open_source(InputConfig(paths=(str(tmp_path / "in"),)), [TEXT]) as source:
        assert source.num_rows == 1
        assert source.skipped == (path.with_name("a.embed.parquet"),)
