"""The file of refused rows: JSON Lines, one object a row, there only when a row was refused."""

import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from poolembed.io.atomic import AtomicFile, translated
from poolembed.io.chunk import Reject


class RejectsFile:
    """Refused rows on their way to a file.

    Args:
        path: the final name.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: AtomicFile | None = None

    def write(self, rejects: Iterable[Reject]) -> None:
        """Add rows; the file is made with the first.

        Raises:
            OutputError: it cannot be written.
        """
        for reject in rejects:
            if self._file is None:
                self._file = AtomicFile(self._path, may_replace=True)
            # Names of files that are not UTF-8 hold surrogates, which become JSON's own escapes here.
            line = json.dumps(asdict(reject), ensure_ascii=False).encode("utf-8", "backslashreplace")
            with translated(self._path):
                self._file.handle.write(line + b"\n")

    def finish(self) -> None:
        """Sync the content.

        Raises:
            OutputError: the disk is full or fails.
        """
        if self._file is not None:
            self._file.finish()

    def place(self) -> list[Path]:
        """Give the file its final name; without rows remove the file of an earlier run.

        Returns:
            The file, if there is one.

        Raises:
            OutputError: the rename or removal fails.
        """
        if self._file is None:
            with translated(self._path):
                self._path.unlink(missing_ok=True)
            return []
        return [self._file.place()]

    def discard(self) -> None:
        """Remove what was written so far."""
        if self._file is not None:
            self._file.discard()
