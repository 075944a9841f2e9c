"""Options for what is read, and for rows that are not as they should be."""

import json

import pytest

from tests.cli.conftest import table_of, write

ROWS = [
    {"id": 1, "key": "a", "text": "one"},
    {"id": 1, "key": "b", "text": None},
    {"id": 2, "key": "a", "text": " "},
    {"id": 3, "key": "c", "text": "four"},
]


@pytest.fixture
def odd(folder):
    write(folder / "odd.jsonl", ROWS)
    return "odd.jsonl"


def keys(result):
    return table_of(result, "odd.embed.parquet")["key"].to_pylist()


def rejected(folder):
    lines = (folder / "odd.embed.parquet.rejects.jsonl").read_text("utf-8").splitlines()
    return [(reject["row"], reject["id"], reject["code"]) for reject in map(json.loads, lines)]


def test_on_null_rejects_rows_without_a_text_or_stops(embed, odd, folder):
    assert keys(embed(odd, "--on-null", "reject")) == ["a", "a", "c"]
    assert rejected(folder) == [(2, "1", "null_text")]
    done = embed(odd, "--on-error", "skip", "--on-null", "fail", "--overwrite")
    assert done.exit_code == 3
    assert "odd.jsonl:2: the text in 'text' is null" in done.stderr


def test_on_empty_rejects_texts_of_white_space_or_stops(embed, odd, folder):
    assert keys(embed(odd, "--on-null", "reject", "--on-empty", "reject")) == ["a", "c"]
    assert rejected(folder) == [(2, "1", "null_text"), (3, "2", "empty_text")]
    done = embed(odd, "--on-null", "reject", "--on-empty", "fail", "--overwrite")
    assert done.exit_code == 3
    assert "odd.jsonl:3: the text is empty" in done.stderr


def test_on_duplicate_id_keeps_the_first_row_of_each_id_or_stops(embed, odd, folder):
    first = embed(odd, "--on-duplicate-id", "first", "--on-error", "skip", "--id-field", "key")
    assert keys(first) == ["a", "c"]
    assert rejected(folder) == [(2, "b", "null_text"), (3, "a", "duplicate_id")]
    done = embed(odd, "--on-duplicate-id", "error", "--on-null", "null", "--overwrite")
    assert done.exit_code == 3
    assert "odd.jsonl:2: the id '1' stood before" in done.stderr


def test_on_bad_text_replaces_bytes_or_rejects_surrogates(embed, folder):
    (folder / "odd.jsonl").write_bytes(b'{"key": "x", "text": "caf\xe9"}\n{"key": "y", "text": "\\ud800"}\n')
    assert embed("odd.jsonl").exit_code == 3
    done = embed("odd.jsonl", "--on-bad-text", "replace")
    assert keys(done) == ["x", "y"]
    assert "2 with characters replaced" in done.stderr
    assert embed("odd.jsonl", "--on-bad-text", "reject", "--overwrite").exit_code == 0
    assert [code for _, _, code in rejected(folder)] == ["invalid_utf8", "lone_surrogate"]


def test_input_format_and_delimiter_read_any_file_as_what_the_user_says(embed, folder):
    (folder / "odd.export").write_text("key\ttext\nx\tone\n", "utf-8")
    assert embed("odd.export").exit_code == 3
    done = embed("odd.export", "--input-format", "csv", "--delimiter", r"\t", "-o", "odd.embed.parquet")
    assert keys(done) == ["x"]
    piped = embed(
        "-", "--input-format", "csv", "-o", "odd.embed.parquet", "--overwrite", input=b"key,text\nz,1\n"
    )
    assert keys(piped) == ["z"]
