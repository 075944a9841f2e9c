"""One run at a time for each output. The lock ends with its process, however that ends."""

import fcntl
import os
from pathlib import Path

from poolembed.errors import LockedError

LOCK_NAME = "lock"


class Lock:
    """A lock that this process holds.

    Made by `take_lock`.
    """

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor

    def release(self, *, remove: bool) -> None:
        """Let others in.

        Args:
            remove: whether the file goes as well.

        Raises:
            OSError: it cannot be removed.
        """
        try:
            if remove:
                # While it is held, or another run could lock a file that is about to go.
                self._path.unlink()
        finally:
            os.close(self._descriptor)


def take_lock(folder: Path, output: Path) -> Lock:
    """Make a folder and lock it.

    Args:
        folder: what only one run may use; its parent exists.
        output: what messages call it.

    Returns:
        The lock, which this process holds until it is released or the process ends.

    Raises:
        LockedError: another run holds it.
        OSError: the folder or the lock cannot be made.
    """
    path = folder / LOCK_NAME
    while True:
        folder.mkdir(exist_ok=True)
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except FileNotFoundError:
            continue  # a run that ended just now took its folder with it
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, 64, 0).decode("ascii", "replace").strip()
            os.close(descriptor)
            raise LockedError(
                f"{output}: another run is writing it{f' (process {holder})' if holder else ''}",
                "wait until it ends, or choose another -o",
            ) from None
        except OSError:
            os.close(descriptor)
            raise
        if _is_at(path, descriptor):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode("ascii"), 0)
            return Lock(path, descriptor)
        os.close(descriptor)


def _is_at(path: Path, descriptor: int) -> bool:
    """Tell whether the locked file still has its name."""
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False
