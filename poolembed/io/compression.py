"""Compressed files, known by their first bytes whatever their names say: gzip, zstd, bzip2, xz.

Several compressed streams in one file are read one after the other, as their tools do.
"""

import bz2
import gzip
import io
import lzma
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

import pyarrow as pa

from poolembed.errors import InputError
from poolembed.io.remote import network_errors

_HEAD_BYTES = 10
_BUFFER_BYTES = 2**20
_MAGIC = {
    "gzip": re.compile(rb"\x1f\x8b\x08"),
    "zstd": re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18"),
    "bzip2": re.compile(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)"),
    "xz": re.compile(rb"\xfd7zXZ\x00"),
}


def _zstd(raw: BinaryIO) -> Any:  # noqa: ANN401 - pyarrow has no types
    return pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), "zstd")


_OPEN: dict[str, Callable[[BinaryIO], Any]] = {
    "gzip": lambda raw: gzip.GzipFile(fileobj=raw),
    "zstd": _zstd,
    "bzip2": bz2.BZ2File,
    "xz": lzma.LZMAFile,
}


def compression_of(raw: BinaryIO) -> str | None:
    """Return how the bytes are compressed (`gzip`), or None; reads their beginning and goes back there.

    Raises:
        OSError: they cannot be read.
    """
    head = raw.read(_HEAD_BYTES)
    raw.seek(0)
    return next((name for name, magic in _MAGIC.items() if magic.match(head)), None)


@contextmanager
def opened_bytes(label: str, open_bytes: Callable[[], BinaryIO]) -> Iterator[io.BufferedReader]:
    """Open a file, decompressed where it is compressed.

    Args:
        label: name of the file in messages.
        open_bytes: opens the file at its beginning.

    Yields:
        The bytes, in order.

    Raises:
        InputError: inside the context, too: the file cannot be opened or read, or is damaged.
    """
    packed = None
    try:
        with open_bytes() as raw:
            packed = compression_of(raw)
            stream: Any = raw if packed is None else _OPEN[packed](raw)
            if isinstance(stream, io.BufferedReader):
                yield stream
            else:
                with io.BufferedReader(stream, _BUFFER_BYTES) as buffered:
                    yield buffered
    except (EOFError, gzip.BadGzipFile, zlib.error, lzma.LZMAError, pa.ArrowException) as error:
        raise _damaged(label, packed, error) from error
    except OSError as error:
        # What a disk says has a number; what a decompressor says has none.
        if packed is not None and error.errno is None:
            raise _damaged(label, packed, error) from error
        raise InputError(f"{label}: cannot be read: {error.strerror or error}") from error
    except network_errors() as error:
        raise InputError(f"{label}: cannot be read: {error}") from error


def _damaged(label: str, packed: str | None, error: Exception) -> InputError:
    return InputError(f"{label}: the {packed} data is damaged or cut off ({error})")
