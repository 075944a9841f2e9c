"""Numbered lines of a file of text, compressed or not; the bytes are not looked into here.

A line ends at a line feed and nowhere else: U+2028 and its like are part of the text.
"""

import re
from collections.abc import Callable, Iterator
from io import BufferedReader
from typing import BinaryIO, NamedTuple

from poolembed.errors import InputError
from poolembed.io.compression import opened_bytes

MAX_LINE_BYTES = 2**30
"""Longest line that is taken; what is longer cannot be held in one value of a string column."""

_BOM = b"\xef\xbb\xbf"
_FOREIGN = (
    (re.compile(rb"PAR1[^ -~\n]"), "a Parquet file", "name it *.parquet, or say --input-format parquet"),
    (re.compile(rb"ARROW1\0"), "an Arrow file", "name it *.arrow, or say --input-format arrow"),
    (re.compile(rb"\xff\xff\xff\xff"), "an Arrow stream", "name it *.arrow, or say --input-format arrow"),
    (re.compile(rb"PK\x03\x04"), "a zip archive", "unpack it, or use gzip"),
    (re.compile(rb"\xff\xfe|\xfe\xff"), "UTF-16", "convert it to UTF-8"),
)
_BLOCK_BYTES = 2**20


class Line(NamedTuple):
    """One line, or what stands for one record.

    Attributes:
        number: 1-based; blank lines count.
        data: the bytes, line end included; only the beginning where `whole` is False.
        whole: whether the line was short enough to be taken.
    """

    number: int
    data: bytes
    whole: bool = True


def numbered_lines(
    label: str, open_bytes: Callable[[], BinaryIO], max_bytes: int = MAX_LINE_BYTES, *, blank: bool = True
) -> Iterator[Line]:
    """Yield the lines of a file.

    Args:
        label: name of the file in messages.
        open_bytes: opens the file at its beginning.
        max_bytes: longest line that is taken whole.
        blank: yield lines of nothing but white space, too.

    Raises:
        InputError: the file cannot be opened or read, is damaged, or is of another kind.
    """
    with opened_bytes(label, open_bytes) as stream:
        _refuse_foreign(label, stream)
        number = 0
        while data := stream.readline(max_bytes + 1):
            number += 1
            if number == 1:
                data = data.removeprefix(_BOM)
            if len(data) > max_bytes:
                _skip_line(stream, data)
                yield Line(number, data, whole=False)
            elif data and (blank or data.strip(b" \t\r\n")):
                yield Line(number, data)


def _refuse_foreign(label: str, stream: BufferedReader) -> None:
    head = stream.peek(8)
    for magic, what, hint in _FOREIGN:
        if magic.match(head):
            raise InputError(f"{label}: not UTF-8 text but {what}", hint)


def _skip_line(stream: BufferedReader, data: bytes) -> None:
    while data and not data.endswith(b"\n"):
        data = stream.readline(_BLOCK_BYTES)
