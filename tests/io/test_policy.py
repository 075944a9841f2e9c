"""Rows that are not as they should be, and what the user can have become of them, in every format."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from poolembed.config import InputConfig
from poolembed.errors import InputError
from poolembed.io import TextRole, open_source

TEXT = TextRole("text", ("text",))
PAIR = [TextRole("query", ("query",)), TextRole("document", ("document",))]
COMPOSED = [TextRole(name, (name,), is_column=True) for name in ("title", "text")]
LISTED = [TextRole("query", ("query",)), TextRole("documents", ("documents",), is_list=True)]

NULLS = [("a", "one"), ("b", None), ("c", "three"), ("d", None)]


@pytest.fixture(params=["jsonl", "parquet", "arrow"])
def save(request, tmp_path):
    """Write rows in one of the formats that know nulls; the function returns the path."""

    def save(rows, schema=None):
        path = tmp_path / f"a.{request.param}"
        if request.param == "jsonl":
            path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
            return path
        table = pa.Table.from_pylist(rows, schema=schema)
        if request.param == "parquet":
            pq.write_table(table, path)
        else:
            with pa.ipc.new_file(path, table.schema) as writer:
                writer.write_table(table)
        return path

    return save


def records(pairs):
    return [{"id": name, "text": text} for name, text in pairs]


def chunk_of(path, roles, **config):
    with open_source(InputConfig(paths=(str(path),), **config), roles) as source:
        (chunk,) = source.chunks(100, 10**6)
        assert source.num_rows == chunk.num_rows + len(chunk.rejects)
        return chunk


def test_a_null_stops_the_run_unless_rows_are_skipped(save):
    path = save(records(NULLS))
    with pytest.raises(InputError, match=r":2: the text in 'text' is null") as caught:
        chunk_of(path, [TEXT])
    assert "--on-error skip" in caught.value.hint
    assert "--on-null" in caught.value.hint
    chunk = chunk_of(path, [TEXT], on_error="skip")
    assert [(reject.id, reject.code) for reject in chunk.rejects] == [("b", "null_text"), ("d", "null_text")]
    assert (chunk.ids, chunk.absent) == (("a", "c"), frozenset())


def test_nulls_are_rejected_though_other_faults_stop_the_run(save):
    assert len(chunk_of(save(records(NULLS)), [TEXT], on_null="reject").rejects) == 2


def test_nulls_stop_the_run_though_other_faults_are_skipped(save):
    with pytest.raises(InputError, match=r":2: the text in 'text' is null"):
        open_source(InputConfig(paths=(str(save(records(NULLS))),), on_error="skip", on_null="fail"), [TEXT])


def test_nulls_can_stay_as_rows_without_a_text(save):
    chunk = chunk_of(save(records(NULLS)), [TEXT], on_null="null")
    assert chunk.texts["text"] == ["one", "", "three", ""]
    assert chunk.table["text"].to_pylist() == ["one", None, "three", None]
    assert (chunk.absent, chunk.rejects, chunk.ids) == ({1, 3}, (), ("a", "b", "c", "d"))


def test_rows_without_a_text_keep_their_places_across_files_and_rejects(write, read, tmp_path):
    first = write("a.jsonl", {"text": None}, "broken", {"text": "x"}, {"other": 1})
    pq.write_table(pa.table({"text": ["y", None]}), tmp_path / "b.parquet")
    for size in (1, 2, 3, 100):
        chunks = read(first, tmp_path / "b.parquet", on_error="skip", on_null="null", max_rows=size).chunks
        absent = [row in chunk.absent for chunk in chunks for row in range(chunk.num_rows)]
        assert absent == [True, False, True, False, True]
        assert [text for chunk in chunks for text in chunk.texts["text"]] == ["", "x", "", "y", ""]


def test_a_missing_key_is_treated_like_a_null(write):
    path = write("a.jsonl", {"text": "x"}, {"other": 1}, {"text": 5})
    chunk = chunk_of(path, [TEXT], on_null="null", on_error="skip")
    assert (chunk.texts["text"], chunk.absent) == (["x", ""], {1})
    assert [reject.code for reject in chunk.rejects] == ["not_a_string"]
    with pytest.raises(InputError, match=r"a\.jsonl:3: the text in 'text' is a number"):
        chunk_of(path, [TEXT], on_null="null")


EMPTIES = [("a", "one"), ("b", ""), ("c", " \t\n"), ("d", "\u200b"), ("e", "\u00a0")]


def test_empty_texts_are_computed_unless_the_user_says_otherwise(save):
    chunk = chunk_of(save(records(EMPTIES)), [TEXT])
    assert (chunk.texts["text"], chunk.absent) == ([text for _, text in EMPTIES], frozenset())


def test_empty_texts_are_rejected(save):
    chunk = chunk_of(save(records(EMPTIES)), [TEXT], on_empty="reject")
    assert chunk.texts["text"] == ["one", "\u200b"]
    assert [(reject.id, reject.code) for reject in chunk.rejects] == [
        (name, "empty_text") for name in ("b", "c", "e")
    ]


def test_empty_texts_can_stay_as_rows_without_a_text(save):
    chunk = chunk_of(save(records(EMPTIES)), [TEXT], on_empty="null")
    assert (chunk.texts["text"], chunk.absent) == (["one", "", "", "\u200b", ""], {1, 2, 4})
    assert chunk.table["text"].to_pylist() == [text for _, text in EMPTIES]


@pytest.mark.parametrize("on_error", ["fail", "skip"])
def test_an_empty_text_stops_the_run_where_the_user_says_so(save, on_error):
    config = InputConfig(paths=(str(save(records(EMPTIES))),), on_empty="fail", on_error=on_error)
    with pytest.raises(InputError, match=r":2: the text is empty"):
        open_source(config, [TEXT])


def test_one_text_of_a_pair_is_enough_to_make_it_empty(save):
    path = save([{"query": "q", "document": "d"}, {"query": " ", "document": "d"}])
    chunk = chunk_of(path, PAIR, on_empty="null")
    assert chunk.texts == {"query": ["q", ""], "document": ["d", ""]}
    assert chunk.absent == {1}


def test_a_text_of_several_columns_is_empty_when_all_are(save):
    path = save([{"title": "", "text": "x"}, {"title": " ", "text": ""}])
    assert chunk_of(path, COMPOSED, on_empty="null").absent == {1}


def test_a_list_that_is_null_makes_a_row_without_texts(save):
    kind = pa.schema([("query", pa.string()), ("documents", pa.list_(pa.string()))])
    rows = [{"query": "q", "documents": ["d"]}, {"query": "q", "documents": None}]
    chunk = chunk_of(save(rows, kind), LISTED, on_null="null")
    assert chunk.texts == {"query": ["q", ""], "documents": [[("0", "d")], []]}
    assert chunk.absent == {1}


SURROGATES = [
    r'{"id": 1, "text": "a\ud800b"}',
    '{"id": 2, "text": "b"}',
    r'{"id": 3, "text": "c", "n": "\udfff"}',
]


@pytest.mark.parametrize("on_bad_text", [None, "replace"])
def test_lone_surrogates_are_replaced_and_counted(write, on_bad_text):
    chunk = chunk_of(write("a.jsonl", *SURROGATES), [TEXT], on_bad_text=on_bad_text)
    assert (chunk.texts["text"], chunk.num_replaced) == (["a\ufffdb", "b", "c"], 2)


def test_lone_surrogates_in_what_is_kept_are_rejected(write):
    path = write("a.jsonl", *SURROGATES)
    chunk = chunk_of(path, [TEXT], on_bad_text="reject")
    assert [(reject.id, reject.code) for reject in chunk.rejects] == [
        ("1", "lone_surrogate"),
        ("3", "lone_surrogate"),
    ]
    assert len(chunk_of(path, [TEXT], on_bad_text="reject", columns=("id",)).rejects) == 1


def test_a_lone_surrogate_stops_the_run_where_the_user_says_so(write):
    path = write("a.jsonl", *SURROGATES[1:])
    config = InputConfig(paths=(str(path),), on_bad_text="fail", on_error="skip")
    with pytest.raises(InputError, match=r"a\.jsonl:2: half of a surrogate pair stands alone in 'n'"):
        open_source(config, [TEXT])


def test_bytes_of_json_lines_that_are_not_utf_8_are_replaced(write):
    lines = [b'{"id": "x\xff", "text": "caf\xe9"}', '{"text": "\ufffd"}']
    chunk = chunk_of(write("a.jsonl", *lines), [TEXT], on_bad_text="replace")
    assert (chunk.texts["text"], chunk.num_replaced) == (["caf\ufffd", "\ufffd"], 1)
    assert chunk.table["id"].to_pylist() == ["x\ufffd", None]


def test_bytes_of_parquet_that_are_not_utf_8_are_replaced_in_text_and_column(tmp_path):
    offsets = pa.py_buffer(np.array([0, 3, 7, 8], dtype=np.int32).tobytes())
    texts = pa.Array.from_buffers(pa.string(), 3, [None, offsets, pa.py_buffer(b"onecaf\xe9x")])
    kinds = {"text": texts, "n": [1, 2, 3]}
    pq.write_table(pa.table(kinds), tmp_path / "a.parquet")
    chunk = chunk_of(tmp_path / "a.parquet", [TEXT], on_bad_text="replace")
    assert chunk.texts["text"] == chunk.table["text"].to_pylist() == ["one", "caf\ufffd", "x"]
    assert chunk.num_replaced == 1
    chunk = chunk_of(tmp_path / "a.parquet", [TEXT], on_bad_text="reject")
    assert [(reject.row, reject.code) for reject in chunk.rejects] == [(2, "invalid_utf8")]


@pytest.mark.parametrize(
    "name", ["input_format", "on_error", "on_null", "on_empty", "on_bad_text", "on_duplicate_id"]
)
def test_an_unknown_choice_is_told_with_the_known_ones(name):
    (problem,) = InputConfig(paths=("a",), **{name: "other"}).check()
    assert problem.startswith(f"--{name.replace('_', '-')} must be one of ")
