"""Lines of JSONL files: where they end, how they are numbered, what is no JSONL at all."""

import gzip
import io

import pytest

from poolembed.errors import InputError
from poolembed.io.lines import numbered_lines


def lines(data: bytes, **limits):
    return [
        (line.number, line.data, line.whole)
        for line in numbered_lines("x.jsonl", lambda: io.BytesIO(data), **limits)
    ]


class BrokenDisk(io.RawIOBase):
    def readable(self):
        return True

    def seekable(self):
        return True

    def seek(self, offset, whence=0):
        return offset

    def readinto(self, buffer):
        raise OSError(5, "Input/output error")


def test_the_last_line_needs_no_line_feed():
    assert lines(b"{}\n[]") == [(1, b"{}\n", True), (2, b"[]", True)]


def test_an_empty_file_has_no_lines():
    assert lines(b"") == []


def test_blank_lines_are_counted_and_can_be_left_out():
    data = b"\n  \t\r\n1\n\n\n2\n"
    assert [number for number, _, _ in lines(data)] == [1, 2, 3, 4, 5, 6]
    assert lines(data, blank=False) == [(3, b"1\n", True), (6, b"2\n", True)]


def test_a_line_ends_at_a_line_feed_and_nowhere_else():
    text = '"a\u2028b\u2029c\u0085d\x0be\x0cf\rg"'.encode()
    assert lines(text + b"\n") == [(1, text + b"\n", True)]


def test_a_byte_order_mark_at_the_start_is_passed_over():
    assert lines(b"\xef\xbb\xbf{}\n") == [(1, b"{}\n", True)]


def test_a_byte_order_mark_elsewhere_stays():
    assert lines(b"{}\n\xef\xbb\xbf{}\n")[1][1] == b"\xef\xbb\xbf{}\n"


def test_gzip_is_known_by_its_content_whatever_the_name_says():
    assert lines(gzip.compress(b"1\n2\n")) == lines(b"1\n2\n")


def test_all_members_of_a_gzip_file_are_read():
    assert lines(gzip.compress(b"1\n2") + gzip.compress(b"3\n4\n")) == lines(b"1\n23\n4\n")


@pytest.mark.parametrize("cut", [12, 30, -9, -1])
def test_a_cut_gzip_file_is_an_input_error(cut):
    data = gzip.compress(bytes(range(256)) * 4 + b"\n")
    with pytest.raises(InputError, match=r"x\.jsonl: the gzip data is damaged"):
        lines(data[:cut])


def test_damaged_gzip_data_is_an_input_error():
    data = bytearray(gzip.compress(b"a line of text\n" * 100))
    data[15] ^= 0xFF
    with pytest.raises(InputError, match="damaged"):
        lines(bytes(data))


def test_a_line_over_the_limit_is_cut_and_its_rest_is_passed_over():
    assert lines(b"12345\n678901234567\n2\n", max_bytes=6) == [
        (1, b"12345\n", True),
        (2, b"6789012", False),
        (3, b"2\n", True),
    ]


def test_an_endless_last_line_over_the_limit_ends_with_the_file():
    assert lines(b"1\n" + b"2" * 50, max_bytes=6) == [(1, b"1\n", True), (2, b"2" * 7, False)]


def test_a_line_over_the_limit_that_ends_exactly_there_swallows_no_other():
    assert lines(b"123456\n7\n", max_bytes=6) == [(1, b"123456\n", False), (2, b"7\n", True)]


@pytest.mark.parametrize(
    ("head", "what"),
    [
        (b"PAR1\x15", "a Parquet file"),
        (b"ARROW1\x00\x00", "an Arrow file"),
        (b"\xff\xff\xff\xff\x10", "an Arrow stream"),
        (b"PK\x03\x04", "a zip archive"),
        (b"\xff\xfe{\x00", "UTF-16"),
        (b"\xfe\xff\x00{", "UTF-16"),
    ],
)
def test_files_of_another_kind_are_told_by_their_first_bytes(head, what):
    with pytest.raises(InputError, match=what) as caught:
        lines(head + b"\n")
    assert caught.value.hint


def test_a_failing_disk_is_an_input_error():
    with pytest.raises(InputError, match=r"x\.jsonl: cannot be read: Input/output error"):
        list(numbered_lines("x.jsonl", BrokenDisk))


def test_a_file_that_cannot_be_opened_is_an_input_error(tmp_path):
    with pytest.raises(InputError, match="Is a directory"):
        list(numbered_lines("x.jsonl", lambda: tmp_path.open("rb")))
