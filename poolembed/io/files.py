"""One input file: its name in messages, its bytes, and whether it is still the same file."""

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from poolembed.config import InputFormat
from poolembed.errors import InputError
from poolembed.io.compression import compression_of, opened_bytes
from poolembed.io.names import STDIN_LABEL
from poolembed.io.remote import RemoteFile, network_errors

_COPY_BYTES = 2**20
_MAGIC: tuple[tuple[bytes, InputFormat], ...] = (
    (b"PAR1", "parquet"),
    (b"ARROW1\0\0", "arrow"),
    (b"\xff\xff\xff\xff", "arrow"),
)


@dataclass(frozen=True, slots=True)
class FileState:
    """How a file looked at some moment, so that a change is noticed.

    Attributes:
        size_bytes: length of the file.
        modified_ns: time of the last change, in nanoseconds; 0 where a remote store does not say.
        identity: device and inode; zeros for remote files.
    """

    size_bytes: int
    modified_ns: int
    identity: tuple[int, int]


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file to read.

    Attributes:
        path: where it is; None for standard input and remote files.
        format: what it holds; that of standard input is found when it is copied.
        remote: where it is, for a remote file.
        spool: the unnamed file that holds what came from standard input, or what was decompressed.
    """

    path: Path | None
    format: InputFormat = "jsonl"
    remote: RemoteFile | None = None
    spool: BinaryIO | None = None

    @property
    def label(self) -> str:
        """The name used in messages and rejects."""
        if self.remote is not None:
            return self.remote.url
        return STDIN_LABEL if self.path is None else str(self.path)

    @property
    def is_stdin(self) -> bool:
        """Whether it is standard input."""
        return self.path is None and self.remote is None

    def open(self) -> BinaryIO:
        """Open the bytes at their beginning; the caller closes.

        Raises:
            OSError: the file cannot be opened.
            ValueError: standard input has not been spooled.
        """
        if self.spool is not None:
            handle = os.fdopen(os.dup(self.spool.fileno()), "rb")
            handle.seek(0)
            return handle
        if self.remote is not None:
            return self.remote.open()
        if self.path is not None:
            return self.path.open("rb")
        raise ValueError("standard input must be spooled before it is read")

    def native(self) -> pa.NativeFile:
        """Open the bytes for pyarrow, which reads anywhere in them; the caller closes.

        Raises:
            OSError: the file cannot be opened.
        """
        if self.spool is None and self.path is not None:
            return pa.OSFile(str(self.path))
        if self.spool is None and self.remote is not None:
            return self.remote.native()
        return pa.PythonFile(self.open(), mode="r")

    def state(self) -> FileState | None:
        """Look at the file; None for standard input, which nobody else can change.

        Raises:
            InputError: the file cannot be looked at.
        """
        if self.remote is not None:
            return FileState(*self.remote.size_and_time(), (0, 0))
        if self.path is None:
            return None
        try:
            stat = self.path.stat()
        except OSError as error:
            raise InputError(f"{self.path}: cannot be read: {error.strerror}") from error
        return FileState(stat.st_size, stat.st_mtime_ns, (stat.st_dev, stat.st_ino))


def spooled(stdin: BinaryIO | None, opened: ExitStack, file_format: InputFormat | None = None) -> InputFile:
    """Copy standard input to an unnamed temporary file, so that it can be read twice.

    Args:
        stdin: where to read from; None takes the process's standard input.
        opened: what closes the copy, which is gone then.
        file_format: what it holds; None goes by the first bytes, and takes JSON Lines for the rest.

    Returns:
        The copy, at its beginning.

    Raises:
        InputError: there is no standard input, or it cannot be copied.
    """
    if stdin is None and sys.stdin is None:
        raise InputError("standard input is closed", "pipe JSON Lines into the command")
    stream = sys.stdin.buffer if stdin is None else stdin
    with _copied(STDIN_LABEL):
        spool = _spool_of(stream, opened)
    file = InputFile(None, spool=spool)
    return replace(file, format=file_format or _detected(file))


def is_packed(file: InputFile) -> bool:
    """Return whether a file is compressed as a whole.

    Raises:
        InputError: it cannot be read.
    """
    try:
        with file.open() as raw:
            return compression_of(raw) is not None
    except network_errors() as error:
        raise InputError(f"{file.label}: cannot be read: {error}") from error


def unpacked(file: InputFile, opened: ExitStack) -> InputFile:
    """Return a file that can be read anywhere: itself, or where it is compressed, a copy that is not.

    Args:
        file: where it is.
        opened: what closes the copy, which is gone then.

    Raises:
        InputError: the file cannot be read, or not copied.
    """
    if not is_packed(file):
        return file
    with opened_bytes(file.label, file.open) as stream:
        spool = _spool_of(stream, opened)
    return replace(file, spool=spool)


def _spool_of(stream: BinaryIO, opened: ExitStack) -> BinaryIO:
    spool = opened.enter_context(tempfile.TemporaryFile(prefix="poolembed-input-"))  # noqa: SIM115 - `opened` closes it
    while block := stream.read(_COPY_BYTES):
        with _copied("the input"):
            spool.write(block)
    with _copied("the input"):
        spool.flush()
    return spool


@contextmanager
def _copied(label: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(
            f"{label}: cannot be copied to {tempfile.gettempdir()}: {error.strerror or error}",
            "set TMPDIR to a folder with room for the whole input",
        ) from error


def _detected(file: InputFile) -> InputFormat:
    with opened_bytes(file.label, file.open) as stream:
        head = stream.peek(8)
    return next((name for magic, name in _MAGIC if head.startswith(magic)), "jsonl")
