"""JSON Lines through the whole source: types, rejects, order, and files that change."""

import gzip
import json
import os

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from poolembed.config import InputConfig
from poolembed.errors import InputError
from poolembed.io import TextRole, open_source
from poolembed.io.files import InputFile
from poolembed.io.json_columns import MAX_COLUMNS, JsonColumns
from poolembed.io.jsonl import JsonlSource
from poolembed.io.plan import ReadPlan
from poolembed.io.policy import RowPolicy
from poolembed.io.records import RecordReader

TEXT = TextRole("text", ("text",))
BAD_LINES = [
    ('{"text": null}', "null_text"),
    ('{"text": 5}', "not_a_string"),
    ('{"text": ["a"]}', "not_a_string"),
    ('{"other": "a"}', "missing_field"),
    ('{"text": "a"', "broken_json"),
    ('{"text": NaN}', "broken_json"),
    ('["text"]', "not_an_object"),
    ('{"text": "a", "text": "b"}', "duplicate_key"),
    (b'{"text": "\xff"}', "invalid_utf8"),
    ('{"text": ' + "[" * 200 + "]" * 200 + "}", "too_deep"),
]


def test_columns_keep_their_types_and_order(write, read):
    whole = read(
        write("a.jsonl", {"id": 1, "text": "x", "when": "2024-01-01"}, {"text": "y", "ok": True, "id": 2})
    )
    assert whole.schema == pa.schema(
        [("id", pa.int64()), ("text", pa.string()), ("when", pa.string()), ("ok", pa.bool_())]
    )
    assert whole.table.to_pylist() == [
        {"id": 1, "text": "x", "when": "2024-01-01", "ok": None},
        {"id": 2, "text": "y", "when": None, "ok": True},
    ]
    assert whole.texts == ["x", "y"]


def test_a_column_that_is_null_at_first_gets_the_type_of_what_comes_later(write, read):
    lines = [{"text": "x", "late": None}] * 3000 + [{"text": "x", "late": "word", "later": [1]}]
    table = read(write("a.jsonl", *lines)).table
    assert table.schema.field("late").type == pa.string()
    assert table.schema.field("later").type == pa.list_(pa.int64())
    assert table["late"][-1].as_py() == "word"


def test_ids_are_never_read_as_dates_or_doubles_and_may_change_type(write, read):
    lines = [{"id": "2024-01-01", "n": 2**63, "text": "2023-05-06 07:08:09"}, {"id": 7, "n": 1, "text": "x"}]
    assert read(write("a.jsonl", *lines)).table.to_pylist() == [
        {"id": "2024-01-01", "n": 2**63, "text": "2023-05-06 07:08:09"},
        {"id": "7", "n": 1, "text": "x"},
    ]


def test_numbers_in_a_mixed_column_keep_their_digits_and_other_columns_their_types(write, read):
    lines = [
        '{"text": "x", "version": 1.10, "n": 3, "f": 2.5}',
        '{"text": "y", "version": "1.10.1", "n": 4, "f": 3}',
    ]
    assert read(write("a.jsonl", *lines)).table.to_pylist() == [
        {"text": "x", "version": "1.10", "n": 3, "f": 2.5},
        {"text": "y", "version": "1.10.1", "n": 4, "f": 3.0},
    ]


@pytest.mark.parametrize(("line", "code"), BAD_LINES)
def test_a_bad_row_is_set_aside_with_its_line_and_reason(write, read, line, code):
    path = write("a.jsonl", {"text": "one"}, "", line, {"text": "two"})
    whole = read(path, on_error="skip")
    assert whole.texts == ["one", "two"]
    assert [(reject.file, reject.row, reject.code) for reject in whole.rejects] == [(str(path), 3, code)]
    assert whole.rejects[0].message
    assert whole.num_rows == len(whole.texts) + len(whole.rejects) == 3


@pytest.mark.parametrize(("line", "code"), BAD_LINES)
def test_a_bad_row_stops_the_run_before_it_starts(write, line, code):
    path = write("a.jsonl", {"text": "one"}, "", line, {"text": "two"})
    with pytest.raises(InputError) as caught:
        open_source(InputConfig(paths=(str(path),)), [TEXT])
    assert caught.value.message.startswith(f"{path}:3: ")
    assert "--on-error skip" in caught.value.hint


def test_the_excerpt_is_short_and_readable(write, read):
    whole = read(write("a.jsonl", b'{"text": "caf\xe9 ' + b"x" * 5000 + b'"}'), on_error="skip")
    assert whole.rejects[0].excerpt == ('{"text": "caf\ufffd ' + "x" * 5000)[:200]


def test_good_rows_know_where_they_stood(write, read):
    path = write("a.jsonl", "", {"text": "one"}, "broken", {"text": "two"})
    assert read(path, on_error="skip").chunks[0].places == ((str(path), 2), (str(path), 4))


@pytest.mark.parametrize("text", ["", " ", "\t\n", "\u200b", "\u2028", "😀", "漢字", "a\x00b", "x" * 100_000])
def test_texts_arrive_as_they_are(write, read, text):
    whole = read(write("a.jsonl", {"text": text}))
    assert whole.texts == [text]
    assert whole.table["text"].to_pylist() == [text]


def test_lone_surrogates_are_replaced_and_their_rows_counted(write, read):
    lines = [
        r'{"text": "a\ud800b", "note": "\udfff"}',
        r'{"text": "\ud83d\ude00", "note": "n\udfff"}',
        '{"text": "c", "note": "d"}',
    ]
    whole = read(write("a.jsonl", *lines))
    assert whole.texts == ["a\ufffdb", "😀", "c"]
    assert whole.table["note"].to_pylist() == ["\ufffd", "n\ufffd", "d"]
    assert whole.num_replaced == 2


def test_lone_surrogates_in_columns_that_are_left_out_do_not_count(write, read):
    whole = read(write("a.jsonl", r'{"text": "a", "note": "\udfff"}'), columns=("text",))
    assert whole.num_replaced == 0


def test_a_row_of_a_nested_column_with_exact_numbers(write, read):
    lines = ['{"text": "x", "meta": {"v": 1.50, "n": [1, 2]}}', '{"text": "y", "meta": {"v": "two"}}']
    assert read(write("a.jsonl", *lines)).table["meta"].to_pylist() == [
        {"v": "1.50", "n": [1, 2]},
        {"v": "two", "n": None},
    ]


def test_gz_and_plain_files_give_the_same(write, read, tmp_path):
    plain = write("a.jsonl", {"text": "x"}, {"text": "y"})
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(plain.read_bytes()))
    (tmp_path / "c.ndjson").write_bytes(gzip.compress(plain.read_bytes()))
    texts = [read(tmp_path / name).texts for name in ("a.jsonl", "b.jsonl.gz", "c.ndjson")]
    assert texts == [["x", "y"]] * 3


def test_more_columns_than_can_be_held_are_refused(write):
    path = write("a.jsonl", {"text": "x"}, {f"key-{number}": 1 for number in range(MAX_COLUMNS)})
    with pytest.raises(InputError, match=f"a.jsonl:2: the input has more than {MAX_COLUMNS} different keys"):
        open_source(InputConfig(paths=(str(path),)), [TEXT])


def test_an_empty_file_gives_no_rows_and_a_schema(write, read):
    whole = read(write("a.jsonl"))
    assert (whole.num_rows, whole.chunks) == (0, [])
    assert whole.schema == pa.schema([("text", pa.string())])


def test_without_a_single_record_the_named_columns_are_strings(write, read):
    whole = read(write("a.jsonl", "broken"), on_error="skip", text_field="body", columns=("id", "body"))
    assert whole.schema == pa.schema([("id", pa.string()), ("body", pa.string())])
    assert whole.field == "body"
    assert [reject.code for reject in whole.rejects] == ["broken_json"]
    assert whole.table.num_rows == 0


def test_records_without_any_key_lack_the_text(write):
    with pytest.raises(InputError, match=r"a\.jsonl:1: the field 'text' is missing"):
        open_source(InputConfig(paths=(str(write("a.jsonl", "{}")),)), [TEXT])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50, deadline=None)
@given(
    st.lists(st.one_of(st.text(max_size=20), st.none(), st.integers()), max_size=30),
    st.integers(1, 10),
    st.integers(1, 200),
)
def test_chunks_of_any_size_put_together_are_the_input(write, read, values, max_rows, max_bytes):
    path = write("a.jsonl", {"text": "first"}, *[{"text": value, "n": n} for n, value in enumerate(values)])
    whole = read(path, max_rows=max_rows, max_bytes=max_bytes, on_error="skip")
    good = [value for value in values if isinstance(value, str)]
    assert whole.texts == ["first", *good]
    assert whole.table.to_pylist()[1:] == [
        {"text": value, "n": n} for n, value in enumerate(values) if isinstance(value, str)
    ]
    assert len(whole.rejects) == len(values) - len(good)
    assert all(chunk.num_rows + len(chunk.rejects) <= max_rows for chunk in whole.chunks)


def test_many_rows_cross_pieces_without_loss(write, read):
    lines = [{"text": f"row {number}", "n": number} for number in range(5000)]
    whole = read(write("a.jsonl", *lines), max_rows=777)
    assert whole.table.to_pylist() == lines
    assert [len(chunk.texts["text"]) for chunk in whole.chunks] == [777] * 6 + [338]


@pytest.mark.parametrize("limit", [1, 3, 4, 100])
def test_the_limit_counts_good_and_bad_rows(write, read, limit):
    path = write("a.jsonl", {"text": "0"}, "broken", "", {"text": None}, {"text": "3"})
    whole = read(path, limit=limit, on_error="skip")
    assert whole.texts == ["0", "3"][: 1 if limit < 4 else 2]
    assert whole.num_rows == min(limit, 4) == len(whole.texts) + len(whole.rejects)


def test_rows_beyond_the_limit_decide_nothing(write, read):
    whole = read(write("a.jsonl", {"text": "0", "n": 1}, {"text": 1, "n": "x", "more": 1}), limit=1)
    assert whole.schema == pa.schema([("text", pa.string()), ("n", pa.int64())])


@pytest.mark.parametrize("later", ['{"text": "longer than before"}\n', '{"text": 1}\n', ""])
def test_a_file_that_changes_after_the_survey_is_noticed(write, later):
    path = write("a.jsonl", {"text": "before"})
    with open_source(InputConfig(paths=(str(path),)), [TEXT]) as source:
        path.write_text(later, encoding="utf-8")
        with pytest.raises(InputError, match="changed while it was being read"):
            list(source.chunks(10, 10))


def test_a_file_that_shrinks_while_it_is_read_is_noticed(write):
    path = write("a.jsonl", *[{"text": "x" * 300, "n": number} for number in range(5000)])
    with open_source(InputConfig(paths=(str(path),)), [TEXT]) as source:
        chunks = source.chunks(1, 10**9)
        next(chunks)
        with path.open("r+b") as handle:
            handle.truncate(1_000_000)
        with pytest.raises(InputError):
            list(chunks)


def test_a_file_that_is_removed_after_the_survey_is_an_input_error(write):
    path = write("a.jsonl", {"text": "before"})
    with open_source(InputConfig(paths=(str(path),)), [TEXT]) as source:
        path.unlink()
        with pytest.raises(InputError, match=r"a\.jsonl: cannot be read"):
            list(source.chunks(10, 10))


def test_values_that_change_type_while_they_are_read_are_noticed(write):
    path = write("a.jsonl", *[{"text": "x" * 300, "n": 1} for _ in range(5000)])
    with open_source(InputConfig(paths=(str(path),)), [TEXT]) as source:
        chunks = source.chunks(1, 10**9)
        next(chunks)
        path.write_bytes(path.read_bytes().replace(b"1}", b"[]}"))
        with pytest.raises(InputError, match="changed while it was being read"):
            list(chunks)


def disguised(path, data: bytes) -> None:
    """Rewrite a file so that neither size nor time tell."""
    before = path.stat()
    assert len(data) == before.st_size
    path.write_bytes(data)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_a_row_that_turns_bad_unnoticed_stops_a_strict_run(write):
    path = write("a.jsonl", {"text": "good"})
    with open_source(InputConfig(paths=(str(path),)), [TEXT]) as source:
        disguised(path, b'{"text": 123456}\n')
        with pytest.raises(InputError, match="not a string"):
            list(source.chunks(10, 10))


def test_fewer_rows_than_surveyed_are_noticed_even_so(write):
    path = write("a.jsonl", {"text": "one"}, {"text": "two"})
    with open_source(InputConfig(paths=(str(path),)), [TEXT]) as source:
        disguised(path, b'{"text": "one"}\n' + b" " * 15 + b"\n")
        with pytest.raises(InputError, match="changed while it was being read"):
            list(source.chunks(10, 10))


def test_a_value_that_turns_unnoticed_into_another_type_is_never_written(write):
    path = write("a.jsonl", {"text": "good", "n": 1})
    with open_source(InputConfig(paths=(str(path),)), [TEXT]) as source:
        disguised(path, path.read_bytes().replace(b" 1}", b"[]}"))
        with pytest.raises((TypeError, ValueError)):
            list(source.chunks(10, 10))


def test_reading_again_gives_the_same(write):
    path = write("a.jsonl", {"text": "x"}, {"text": "y"})
    with open_source(InputConfig(paths=(str(path),)), [TEXT]) as source:
        assert [c.texts for c in source.chunks(1, 99)] == [c.texts for c in source.chunks(1, 99)]


def test_two_texts_a_row_are_both_asked_for(write):
    roles = [TextRole("query", ("query", "q"), False), TextRole("text", ("text", "passage"), False)]
    lines = [{"q": "a", "passage": "b"}, {"q": None, "passage": 1}, {"q": "c"}, {"q": "d", "passage": "e"}]
    config = InputConfig(paths=(str(write("a.jsonl", *lines)),), on_error="skip")
    with open_source(config, roles) as source:
        (chunk,) = source.chunks(10, 1000)
    assert source.fields == {"query": "q", "text": "passage"}
    assert chunk.texts == {"query": ["a", "d"], "text": ["b", "e"]}
    assert [reject.code for reject in chunk.rejects] == ["null_text", "missing_field"]


def test_a_line_over_the_limit_is_refused_and_the_next_one_is_not(write):
    path = write("a.jsonl", {"text": "x" * 100}, {"text": "y"})
    reader = RecordReader(JsonlSource(InputFile(path), JsonColumns(), max_bytes=50))
    reader.survey(None, RowPolicy(on_error="skip"))
    (piece,) = reader.pieces(ReadPlan(pa.schema([("text", pa.string())]), {"text": "text"}))
    assert piece.texts == {"text": ["y"]}
    (reject,) = [reject for _, reject in piece.rejects]
    assert (reject.row, reject.code, reject.message) == (1, "too_large", "the line is longer than 50 bytes")
    assert reject.excerpt == '{"text": "' + "x" * 41


def test_a_very_long_line_is_read_whole(write, read):
    text = json.dumps("é" * 2_000_000)
    whole = read(write("a.jsonl", '{"text": ' + text + "}", {"text": "next"}))
    assert [len(text) for text in whole.texts] == [2_000_000, 4]
    assert len(whole.chunks) == 2
