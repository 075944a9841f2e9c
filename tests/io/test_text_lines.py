"""Plain text: a row for every line."""

import pyarrow as pa
import pytest

from poolembed.errors import InputError
from poolembed.io.inputs import find_inputs


@pytest.fixture
def save(tmp_path):
    def save(data: bytes, name: str = "a.txt"):
        (tmp_path / name).write_bytes(data)
        return tmp_path / name

    return save


@pytest.mark.parametrize(
    ("data", "texts"),
    [
        (b"one\ntwo\n", ["one", "two"]),
        (b"one\r\ntwo", ["one", "two"]),
        (b"\none\n\n \n", ["", "one", "", " "]),
        (b"\xef\xbb\xbfone\n\xef\xbb\xbftwo\n", ["one", "\ufefftwo"]),
        (b"a\rb\na\x00b\n", ["a\rb", "a\x00b"]),
        ("a\u2028b\x0b\x85\n".encode(), ["a\u2028b\x0b\x85"]),
        (b'{"text": "x"}\n"a,b\n', ['{"text": "x"}', '"a,b']),
        (b"PAR1 is a park\n", ["PAR1 is a park"]),
        (b"", []),
        (b"\n", [""]),
    ],
)
def test_rows_are_lines_without_their_ends(save, read, data, texts):
    whole = read(save(data))
    assert whole.texts == texts
    assert whole.schema == pa.schema([("text", pa.string())])
    assert [place[1] for chunk in whole.chunks for place in chunk.places] == list(range(1, len(texts) + 1))


def test_bytes_that_are_not_utf_8_are_refused_or_replaced(save, read):
    path = save(b"one\ncaf\xe9\n\xef\xbf\xbd\n")
    with pytest.raises(InputError, match=r"a\.txt:2: byte 4, 0xe9, is not UTF-8"):
        read(path)
    assert read(path, on_error="skip").texts == ["one", "\ufffd"]
    whole = read(path, on_bad_text="replace")
    assert (whole.texts, whole.num_replaced) == (["one", "caf\ufffd", "\ufffd"], 1)


def test_text_of_a_directory_is_read_only_where_it_is_asked_for(save, tmp_path):
    save(b"x\n", "b.txt.gz")
    save(b"x\n", "a.txt")
    save(b'{"text": "x"}\n', "c.jsonl")
    assert [file.path.name for file in find_inputs([str(tmp_path)]).files] == ["c.jsonl"]
    found = find_inputs([str(tmp_path)], "text").files
    assert [(file.path.name, file.format) for file in found] == [("a.txt", "text"), ("b.txt.gz", "text")]


def test_any_file_is_read_as_what_the_user_says(save, read):
    assert read(save(b"a\nb\n", "server.log"), input_format="text").texts == ["a", "b"]
    assert read(save(b"text;n\na;1\n", "export"), input_format="csv", delimiter=";").texts == ["a"]
