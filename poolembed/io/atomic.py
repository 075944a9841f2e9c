"""Files that appear whole or not at all: written under a hidden name, synced, then renamed.

The temporary name is in the folder of the final one, because a rename is atomic within a file system only.
"""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from poolembed.errors import OutputError

_CANNOT_SYNC = (errno.EINVAL, errno.ENOTSUP)


class AtomicFile:
    """A file on its way.

    Args:
        path: the final name; its folder exists.
        may_replace: whether a file of that name may be replaced.

    Attributes:
        path: the final name.
        handle: where the content is written.
        temporary: the name it has until it is placed.

    Raises:
        OutputError: the temporary file cannot be made.
    """

    def __init__(self, path: Path, *, may_replace: bool) -> None:
        self.path = path
        self._may_replace = may_replace
        self.temporary = path.with_name(f".{path.name}.tmp-{os.getpid()}")
        with translated(path):
            self.handle: BinaryIO = self.temporary.open("wb")

    def finish(self) -> None:
        """Sync and close the content; the final name is not touched yet.

        Raises:
            OutputError: the disk is full or fails.
        """
        with translated(self.path):
            self.handle.flush()
            os.fsync(self.handle.fileno())
            self.handle.close()

    def place(self) -> Path:
        """Give the finished content its final name and return it.

        Raises:
            OutputError: the rename fails, or the name has been taken and may not be replaced.
        """
        with translated(self.path):
            if not self._may_replace and self.path.exists():
                raise OutputError(
                    f"{self.path}: appeared while it was being written", "--overwrite replaces it"
                )
            self.temporary.replace(self.path)
            sync_folder(self.path.parent)
        return self.path

    def discard(self) -> None:
        """Remove the temporary file, if it is still there.

        Raises:
            OutputError: it cannot be removed.
        """
        with suppress(OSError):  # closing writes what is buffered, and nobody wants it any more
            self.handle.close()
        with translated(self.path):
            self.temporary.unlink(missing_ok=True)


def replace_text(path: Path, text: str) -> None:
    """Replace a small file that is written often; readers see the old one or the new one.

    It is not synced: after a crash of the machine nobody wants to know how far a run was.

    Args:
        path: its name; the folder exists.
        text: its content.

    Raises:
        OutputError: it cannot be written.
    """
    temporary = path.with_name(f".{path.name}.tmp-{os.getpid()}")
    with translated(path):
        try:
            temporary.write_text(text, "utf-8")
            temporary.replace(path)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise


def sync_folder(folder: Path) -> None:
    """Make renames in a folder last; does nothing on file systems that cannot.

    Raises:
        OSError: the folder cannot be opened, or the disk fails.
    """
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _CANNOT_SYNC:
            raise
    finally:
        os.close(descriptor)


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Turn failures of the file system into OutputError about `path`."""
    try:
        yield
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror or error}", _hint(error)) from error


def _hint(error: OSError) -> str | None:
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return "free some space, or write elsewhere with -o"
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return "write elsewhere with -o"
    return None
