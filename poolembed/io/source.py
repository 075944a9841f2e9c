"""The input of a run: surveyed before anything expensive starts, then read chunk by chunk."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

import pyarrow as pa

from poolembed.config import InputConfig, OnDuplicateId
from poolembed.errors import InputError
from poolembed.io.chunk import RowChunk, TextRole
from poolembed.io.columns import make_plan
from poolembed.io.files import spooled
from poolembed.io.ids import SeenIds
from poolembed.io.inputs import find_inputs
from poolembed.io.pieces import Piece, gather
from poolembed.io.plan import Reader, ReadPlan, refused
from poolembed.io.policy import DUPLICATE_ID
from poolembed.io.survey import survey


class Source:
    """The rows of all input files, in order.

    Made by `open_source`; closing it removes the copy of standard input.

    Attributes:
        num_rows: rows that will be yielded or rejected.
        schema: the kept columns, with the metadata that all files share.
        fields: role name -> column.
        skipped: outputs of earlier runs that stood in an input directory and are not read.
    """

    def __init__(
        self,
        readers: Sequence[Reader],
        plan: ReadPlan,
        *,
        on_duplicate_id: OnDuplicateId,
        skipped: tuple[Path | str, ...],
        opened: ExitStack,
    ) -> None:
        self.num_rows = sum(reader.num_rows for reader in readers)
        self.schema: pa.Schema = plan.schema
        self.fields = plan.fields
        self.skipped = skipped
        self._readers = readers
        self._plan = plan
        self._on_duplicate_id = on_duplicate_id
        self._opened = opened

    def chunks(self, max_rows: int, max_bytes: int) -> Iterator[RowChunk]:
        """Yield the rows as chunks; every call starts at the first row.

        Args:
            max_rows: most rows of a chunk, refused ones included; at least 1.
            max_bytes: most bytes of a chunk (lines as they stand in files of text; text and the mean of
                the other kept columns in Parquet and Arrow); a single larger row is a chunk of its own.

        Raises:
            InputError: a file is damaged or has changed, or a row is refused in a way that stops the run.
        """
        return gather(self._pieces(), max_rows, max_bytes)

    def _pieces(self) -> Iterator[Piece]:
        policy = self._plan.policy
        seen = None if self._on_duplicate_id == "keep" else SeenIds()
        for reader in self._readers:
            for piece in reader.pieces(self._plan):
                told = piece if seen is None else self._without_repeats(piece, seen)
                for _, reject in told.rejects:
                    if policy.stops(reject.code):
                        raise refused(reject)
                yield told

    def _without_repeats(self, piece: Piece, seen: SeenIds) -> Piece:
        again = seen.add(piece.ids or ())
        names = piece.ids or ()
        if again and self._on_duplicate_id == "error":
            file, row = piece.places[again[0]]
            raise InputError(
                f"{file}:{row}: the id {names[again[0]]!r} stood before",
                "--on-duplicate-id first keeps the first row of each id, keep all of them",
            )
        return piece.without({row: (DUPLICATE_ID, f"the id {names[row]!r} stood before") for row in again})

    def check(self) -> None:
        """Look for what would stop the run, so that it is told before anything expensive starts.

        Raises:
            InputError: a row is refused in a way that stops the run, or an id stands twice and must not.
        """
        if self._on_duplicate_id == "error":
            for _ in self._pieces():
                pass
        elif self._plan.policy.may_stop:
            for reader in self._readers:
                problem = reader.first_problem(self._plan)
                if problem is not None:
                    raise refused(problem)

    def keeping(self, columns: Sequence[str]) -> "Source":
        """Return the same rows with some of their columns; closing either closes both.

        Args:
            columns: names in `schema`, in the order wanted.
        """
        plan = replace(self._plan, schema=pa.schema([self.schema.field(name) for name in columns]))
        return Source(
            self._readers,
            plan,
            on_duplicate_id=self._on_duplicate_id,
            skipped=self.skipped,
            opened=self._opened,
        )

    def close(self) -> None:
        """Give up the copy of standard input."""
        self._opened.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_source(config: InputConfig, roles: Sequence[TextRole], stdin: BinaryIO | None = None) -> Source:
    """Survey the input: find the files, count the rows, learn the types, find the texts.

    Files of text are read once for this, Parquet by its footer; where a bad row stops the run, the texts
    are looked through as well, so that it is told before any model is loaded.

    Args:
        config: which rows are read.
        roles: the texts that every row must bring; at least one.
        stdin: what `-` stands for; None takes the process's standard input.

    Returns:
        The open input; used as a context manager.

    Raises:
        InputError: something cannot be read, a column is missing, or a row stops the run.
        ConfigError: a file is given twice, or the choice of columns is wrong.
    """
    found = find_inputs(config.paths, config.input_format)
    with ExitStack() as undo:
        opened = undo.enter_context(ExitStack())
        files = [
            spooled(stdin, opened, config.input_format) if file.is_stdin else file for file in found.files
        ]
        readers, parts = survey(files, config, opened)
        source = Source(
            readers,
            make_plan(config, roles, parts),
            on_duplicate_id=config.on_duplicate_id,
            skipped=found.skipped,
            opened=opened,
        )
        source.check()
        undo.pop_all()
    return source
