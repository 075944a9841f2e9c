"""One output file of any format, with what stands beside it; all of it appears whole or not at all."""

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa

from poolembed.io.atomic import AtomicFile, translated
from poolembed.io.formats import Format
from poolembed.io.store.records import FileRecord, identity_of
from poolembed.results import ResultColumn


class OutputFile:
    """An output file on its way.

    Args:
        path: the final name; its folder exists.
        kind: the format.
        schema: the columns.
        results: which of them are results.
        may_replace: whether files of these names may be replaced.

    Attributes:
        path: the final name.

    Raises:
        OutputError: a temporary file cannot be made or written.
        ConfigError: the columns have no form in this format.
    """

    def __init__(
        self,
        path: Path,
        kind: Format,
        schema: pa.Schema,
        results: Sequence[ResultColumn],
        *,
        may_replace: bool,
    ) -> None:
        self.path = path
        self._num_rows = 0
        self._files: list[AtomicFile] = []
        with ExitStack() as undo:
            undo.callback(self._discard_files)
            for name in kind.files(path):
                self._files.append(AtomicFile(name, may_replace=may_replace))
            with translated(path):
                self._writer = kind.open([file.handle for file in self._files], schema, results)
            undo.pop_all()

    def write(self, table: pa.Table) -> None:
        """Add rows.

        Raises:
            OutputError: the disk is full or fails.
        """
        with translated(self.path):
            self._writer.write(table)
        self._num_rows += table.num_rows

    def finish(self) -> list[FileRecord]:
        """Write the end, sync and close; no final name is touched yet.

        Returns:
            The file, and what stands beside it, which is said to have no rows.

        Raises:
            OutputError: the disk is full or fails.
        """
        with translated(self.path):
            self._writer.finish()
        for file in self._files:
            file.finish()
        with translated(self.path):
            return [
                FileRecord(file.path.name, 0 if number else self._num_rows, identity_of(file.temporary))
                for number, file in enumerate(self._files)
            ]

    def place(self) -> list[Path]:
        """Give the finished files their final names, the output itself last, and return them, it first.

        Raises:
            OutputError: a rename fails, or a name has been taken and may not be replaced.
        """
        main, *beside = self._files
        others = [file.place() for file in beside]
        return [main.place(), *others]

    def discard(self) -> None:
        """Remove the temporary files that are still there.

        Raises:
            OutputError: one cannot be removed.
        """
        self._writer.abandon()
        self._discard_files()

    def _discard_files(self) -> None:
        for file in self._files:
            file.discard()
