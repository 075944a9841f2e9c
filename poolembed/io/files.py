"""One input file: its name in messages, its bytes, and whether it is still the same file."""

import os
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from poolembed.errors import InputError
from poolembed.io.names import PARQUET_SUFFIX, STDIN_LABEL, input_suffix

_COPY_BYTES = 2**20


@dataclass(frozen=True, slots=True)
class FileState:
    """How a file looked at some moment, so that a change is noticed.

    Attributes:
        size_bytes: length of the file.
        modified_ns: time of the last change, in nanoseconds.
        identity: device and inode.
    """

    size_bytes: int
    modified_ns: int
    identity: tuple[int, int]


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file to read.

    Attributes:
        path: where it is; None for standard input.
        spool: the unnamed file that holds what came from standard input.
    """

    path: Path | None
    spool: BinaryIO | None = None

    @property
    def label(self) -> str:
        """The name used in messages and rejects."""
        return STDIN_LABEL if self.path is None else str(self.path)

    @property
    def is_parquet(self) -> bool:
        """Whether the name says Parquet; everything else is JSON Lines."""
        return self.path is not None and input_suffix(self.path) == PARQUET_SUFFIX

    def open(self) -> BinaryIO:
        """Open the bytes at their beginning; the caller closes.

        Raises:
            OSError: the file cannot be opened.
            ValueError: standard input has not been spooled.
        """
        if self.path is not None:
            return self.path.open("rb")
        if self.spool is None:
            raise ValueError("standard input must be spooled before it is read")
        handle = os.fdopen(os.dup(self.spool.fileno()), "rb")
        handle.seek(0)
        return handle

    def state(self) -> FileState | None:
        """Look at the file; None for standard input, which nobody else can change.

        Raises:
            InputError: the file cannot be looked at.
        """
        if self.path is None:
            return None
        try:
            stat = self.path.stat()
        except OSError as error:
            raise InputError(f"{self.path}: cannot be read: {error.strerror}") from error
        return FileState(stat.st_size, stat.st_mtime_ns, (stat.st_dev, stat.st_ino))


def spooled(stdin: BinaryIO | None, opened: ExitStack) -> InputFile:
    """Copy standard input to an unnamed temporary file, so that it can be read twice.

    Args:
        stdin: where to read from; None takes the process's standard input.
        opened: what closes the copy, which is gone then.

    Returns:
        The copy, at its beginning.

    Raises:
        InputError: there is no standard input, or it cannot be copied.
    """
    if stdin is None and sys.stdin is None:
        raise InputError("standard input is closed", "pipe JSON Lines into the command")
    stream = sys.stdin.buffer if stdin is None else stdin
    try:
        spool = tempfile.TemporaryFile(prefix="poolembed-stdin-")  # noqa: SIM115 - `opened` closes it
        opened.enter_context(spool)
        while block := stream.read(_COPY_BYTES):
            spool.write(block)
        spool.flush()
    except OSError as error:
        raise InputError(
            f"{STDIN_LABEL}: cannot be copied to {tempfile.gettempdir()}: {error.strerror or error}",
            "set TMPDIR to a folder with room for the whole input",
        ) from error
    return InputFile(None, spool)
