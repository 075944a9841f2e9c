"""CSV and TSV through the whole source: cells are strings, quotes are those of RFC 4180."""

import csv
import io

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from poolembed.config import InputConfig
from poolembed.errors import ConfigError, InputError
from poolembed.io import TextRole, open_source

TEXT = TextRole("text", ("text",))


@pytest.fixture
def save(tmp_path):
    def save(data: str | bytes, name: str = "a.csv"):
        path = tmp_path / name
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        return path

    return save


def test_every_column_is_a_string_whatever_it_looks_like(save, read):
    whole = read(save("id,text,when,n\n007,x,2024-01-01,1e5\n18446744073709551617,y,,NULL\n"))
    assert whole.schema == pa.schema([(name, pa.string()) for name in ("id", "text", "when", "n")])
    assert whole.table.to_pylist() == [
        {"id": "007", "text": "x", "when": "2024-01-01", "n": "1e5"},
        {"id": "18446744073709551617", "text": "y", "when": "", "n": "NULL"},
    ]


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ('"a,b"', "a,b"),
        ('"a\nb"', "a\nb"),
        ('"a\r\nb"', "a\r\nb"),
        ('"a\rb"', "a\rb"),
        ('"say ""no"""', 'say "no"'),
        ('""', ""),
        ('""""', '"'),
        ('"\n\n"', "\n\n"),
        ('5" disk', '5" disk'),
        ('a ""b""', 'a ""b""'),
        (" spaces ", " spaces "),
        ("a\x00b", "a\x00b"),
        ("\u2028\x0b\x0c\x85", "\u2028\x0b\x0c\x85"),
        ("😀", "😀"),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_cells(save, read, cell, value, end):
    path = save(end.join(["id,text,more", f"1,{cell},x", f"2,x,{cell}", f"{cell},y,", ""]))
    assert read(path).table.to_pylist() == [
        {"id": "1", "text": value, "more": "x"},
        {"id": "2", "text": "x", "more": value},
        {"id": value, "text": "y", "more": ""},
    ]


TABLES = st.lists(
    st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=8), min_size=2, max_size=2),
    max_size=12,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=80, deadline=None)
@given(TABLES, st.sampled_from([",", ";", "\t", "§"]), st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_what_pythons_writer_writes_is_read_back(save, read, rows, delimiter, end, quote_all):
    # With line feeds alone, that writer leaves a carriage return outside of quotes, and cannot read it back.
    assume(quote_all or end == "\r\n" or not any("\r" in cell for row in rows for cell in row))
    buffer = io.StringIO(newline="")
    quoting = csv.QUOTE_ALL if quote_all else csv.QUOTE_MINIMAL
    writer = csv.writer(buffer, delimiter=delimiter, lineterminator=end, quoting=quoting)
    writer.writerows([["id", "text"], *rows])
    whole = read(save(buffer.getvalue()), delimiter=delimiter, max_rows=5)
    assert whole.table.to_pylist() == [{"id": name, "text": text} for name, text in rows]


def test_a_tab_stands_between_the_cells_of_tsv_and_a_delimiter_can_be_chosen(save, read):
    assert read(save("id\ttext\n1\ta,b\n", "a.tsv")).texts == ["a,b"]
    assert read(save("id|text\n1|a,b\n"), delimiter="|").texts == ["a,b"]


def test_a_byte_order_mark_is_no_part_of_the_first_name(save, read):
    assert read(save(b"\xef\xbb\xbftext,n\nx,1\n")).schema.names == ["text", "n"]


def test_blank_lines_between_rows_are_passed_over_and_counted(save, read):
    path = save('text,n\n\na,1\n\r\n"b\n\nc",2\n\nbroken\n\n')
    whole = read(path, on_error="skip")
    assert whole.texts == ["a", "b\n\nc"]
    assert [place[1] for place in whole.chunks[0].places] == [3, 5]
    assert [(reject.row, reject.code, reject.message) for reject in whole.rejects] == [
        (9, "ragged_row", "row 3: a row of 1 cells, where the header has 2")
    ]


@pytest.mark.parametrize(
    ("row", "code"),
    [
        ("a", "ragged_row"),
        ("a,b,c", "ragged_row"),
        ('"a"b,c', "broken_csv"),
        ("a\rb,c", "broken_csv"),
        ('"a\rb" ,c', "broken_csv"),
        (b"a,\xff", "invalid_utf8"),
    ],
)
def test_a_bad_row_is_set_aside_with_its_line_and_row(save, read, row, code):
    data = row if isinstance(row, bytes) else row.encode()
    path = save(b'text,n\n"one\n",1\n' + data + b"\ntwo,2\n")
    whole = read(path, on_error="skip")
    assert whole.texts == ["one\n", "two"]
    assert [(reject.file, reject.row, reject.code) for reject in whole.rejects] == [(str(path), 4, code)]
    assert whole.num_rows == 3
    with pytest.raises(InputError, match=r"a\.csv:4: row 2: "):
        read(path)


def test_a_quote_that_is_never_closed_takes_the_rest_of_the_file(save, read):
    whole = read(save('text,n\na,1\n"b,2\nc,3\n'), on_error="skip")
    assert whole.texts == ["a"]
    assert [(reject.row, reject.message) for reject in whole.rejects] == [
        (3, "row 2: a quote is opened and never closed")
    ]


def test_a_file_whose_lines_end_in_carriage_returns_is_refused(save):
    with pytest.raises(InputError, match=r"a\.csv:1: the header cannot be read: a carriage return stands"):
        open_source(InputConfig(paths=(str(save("text,n\ra,1\rb,2\r")),)), [TEXT])


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("text,text\n", "two columns are named 'text'"),
        (b"text,\xff\n", "the header cannot be read: byte 6, 0xff, is not UTF-8"),
        ('"text\n', "the header cannot be read: a quote is opened"),
    ],
)
def test_a_header_that_names_no_columns_is_an_input_error(save, header, message):
    with pytest.raises(InputError, match=message):
        open_source(InputConfig(paths=(str(save(header)),)), [TEXT])


def test_an_empty_file_and_a_header_alone_give_no_rows(save, read):
    assert (read(save("")).num_rows, read(save("")).schema.names) == (0, ["text"])
    assert (read(save("text,n\n")).num_rows, read(save("text,n\n")).schema.names) == (0, ["text", "n"])


def test_a_csv_file_without_the_column_is_told_by_its_name(save):
    with pytest.raises(InputError, match="no column is named 'body'"):
        open_source(InputConfig(paths=(str(save("text\nx\n")),), text_field="body"), [TEXT])


def test_csv_and_json_lines_go_together(save, write, read):
    paths = [save("id,text\n7,a\n"), write("b.jsonl", {"id": "8", "text": "b", "n": 1})]
    assert read(*paths).table.to_pylist() == [
        {"id": "7", "text": "a", "n": None},
        {"id": "8", "text": "b", "n": 1},
    ]


def test_a_cell_of_fifty_megabytes_with_line_ends_is_read_whole(save, read):
    cell = ("é" * 999 + '""\n') * 25_000
    whole = read(save(f'id,text\n1,"{cell}"\n2,x\n'))
    assert [len(text) for text in whole.texts] == [1001 * 25_000, 1]
    assert whole.texts[0] == cell.replace('""', '"')


@pytest.mark.parametrize("delimiter", ["", ",,", '"', "\n", "\r"])
def test_a_delimiter_is_one_character_and_no_quote(delimiter):
    assert any("--delimiter" in problem for problem in InputConfig(paths=("a",), delimiter=delimiter).check())


def test_a_delimiter_for_files_without_one_is_told(write):
    config = InputConfig(paths=(str(write("a.jsonl", {"text": "x"})),), delimiter=";")
    with pytest.raises(ConfigError, match="--delimiter is for CSV and TSV"):
        open_source(config, [TEXT])
