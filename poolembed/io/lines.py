"""Numbered lines of a JSON Lines file, compressed or not; the bytes are not looked into here.

A line ends at a line feed and nowhere else: U+2028 and its like are part of the text.
"""

import gzip
import io
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import BinaryIO, NamedTuple

from poolembed.errors import InputError

MAX_LINE_BYTES = 2**30
"""Longest line that is taken; what is longer cannot be held in one value of a string column."""

_BOM = b"\xef\xbb\xbf"
_GZIP_MAGIC = b"\x1f\x8b"
_FOREIGN_MAGIC = {
    b"PAR1": ("a Parquet file", "name it *.parquet"),
    b"\x28\xb5\x2f\xfd": ("compressed with zstd", "decompress it, or use gzip"),
    b"BZh": ("compressed with bzip2", "decompress it, or use gzip"),
    b"\xfd7zXZ": ("compressed with xz", "decompress it, or use gzip"),
    b"PK\x03\x04": ("a zip archive", "unpack it, or use gzip"),
    b"\xff\xfe": ("UTF-16 text", "convert it to UTF-8"),
    b"\xfe\xff": ("UTF-16 text", "convert it to UTF-8"),
}
_BUFFER_BYTES = 2**20


class Line(NamedTuple):
    """One line that is not blank.

    Attributes:
        number: 1-based; blank lines count.
        data: the bytes, line end included; only the beginning where `whole` is False.
        whole: whether the line was short enough to be taken.
    """

    number: int
    data: bytes
    whole: bool = True


def numbered_lines(
    label: str, open_bytes: Callable[[], BinaryIO], max_bytes: int = MAX_LINE_BYTES
) -> Iterator[Line]:
    """Yield the lines of a file that are not blank.

    Args:
        label: name of the file in messages.
        open_bytes: opens the file at its beginning.
        max_bytes: longest line that is taken whole.

    Raises:
        InputError: the file cannot be opened or read, is damaged, or is of another kind.
    """
    with _translated(label), open_bytes() as raw:
        stream = _decompressed(label, raw)
        number = 0
        while data := stream.readline(max_bytes + 1):
            number += 1
            if number == 1:
                data = data.removeprefix(_BOM)
            if len(data) > max_bytes:
                _skip_line(stream, data)
                yield Line(number, data, whole=False)
            elif data.strip(b" \t\r\n"):
                yield Line(number, data)


def _decompressed(label: str, raw: BinaryIO) -> BinaryIO:
    head = raw.read(max(map(len, _FOREIGN_MAGIC)))
    raw.seek(0)
    for magic, (what, hint) in _FOREIGN_MAGIC.items():
        if head.startswith(magic):
            raise InputError(f"{label}: not JSON Lines but {what}", hint)
    if head.startswith(_GZIP_MAGIC):
        return io.BufferedReader(gzip.GzipFile(fileobj=raw), _BUFFER_BYTES)
    return raw


def _skip_line(stream: BinaryIO, data: bytes) -> None:
    while data and not data.endswith(b"\n"):
        data = stream.readline(_BUFFER_BYTES)


@contextmanager
def _translated(label: str) -> Iterator[None]:
    try:
        yield
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InputError(f"{label}: the gzip data is damaged or cut off ({error})") from error
    except OSError as error:
        raise InputError(f"{label}: cannot be read: {error.strerror or error}") from error
