"""Files of text in two passes: a survey that learns counts and types, then the rows as pieces.

Both hold one record or one piece at a time. What a record looks like is the part of a `RecordSource`.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import pyarrow as pa

from poolembed.io.chunk import EXCERPT_CHARACTERS, Reject
from poolembed.io.files import InputFile
from poolembed.io.ids import json_id
from poolembed.io.json_rows import RowError
from poolembed.io.lines import Line
from poolembed.io.piece_builder import PieceBuilder
from poolembed.io.pieces import Piece
from poolembed.io.plan import ReadPlan, changed, refused
from poolembed.io.policy import RowPolicy


class RecordColumns(Protocol):
    """The columns of one or several files: found by the survey, filled when rows are read.

    Attributes:
        num_rows: rows seen, broken ones included.
    """

    num_rows: int

    def observe(self, record: dict[str, Any], place: str) -> None:
        """Take one more `record` into account; `place` says where it stands, for messages."""

    def is_complete(self, column: str) -> bool:
        """Whether every row seen has a string in `column`."""
        ...

    def writes_numbers(self, columns: Sequence[str]) -> bool:
        """Whether numbers in some of these columns become text, so that their digits must be kept."""
        ...

    def array(self, field: pa.Field, records: Sequence[dict[str, Any]], *, exact: bool) -> pa.Array:
        """Return one column of some records.

        Args:
            field: name and type in the output.
            records: the rows; a missing key is a null.
            exact: numbers come as `JsonNumber`.
        """
        ...


class RecordSource(Protocol):
    """A file as records.

    Attributes:
        file: where it is.
        tells_rows: whether a record may take several lines, so that messages tell the row as well.
        max_bytes: a longer record is refused.
    """

    file: InputFile
    tells_rows: bool
    max_bytes: int

    @property
    def columns(self) -> RecordColumns:
        """What is known of its columns."""

    def records(self) -> Iterator[Line]:
        """Yield what stands for each record, in order."""
        ...

    def parse(self, line: Line, *, exact: bool, replace: bool) -> tuple[dict[str, Any], frozenset[str]]:
        """Return a record by column, and the columns in which characters were replaced.

        Args:
            line: one of `records`, whole.
            exact: give numbers as `JsonNumber`.
            replace: put U+FFFD for bytes that are not UTF-8.

        Raises:
            RowError: it holds no record.
        """
        ...


class RecordReader:
    """One file of records.

    Args:
        source: the file.

    Attributes:
        label: name of the file in messages.
        num_rows: rows to read, known after `survey`.
    """

    def __init__(self, source: RecordSource) -> None:
        self.label = source.file.label
        self.num_rows = 0
        self._source = source
        self._columns = source.columns
        self._state = source.file.state()

    def survey(self, limit: int | None, policy: RowPolicy) -> None:
        """Read the file once to count its rows and learn its types.

        Args:
            limit: stop after so many rows.
            policy: what a line does that holds no record.

        Raises:
            InputError: the file cannot be read, or a line holds no record and that stops the run.
        """
        replace, columns = policy.replaces_bytes, self._columns
        for line in self._source.records():
            if self.num_rows == limit:
                return
            self.num_rows += 1
            columns.num_rows += 1
            try:
                record, _ = self._parse(line, exact=False, replace=replace)
            except RowError as problem:
                if policy.stops(problem.code):
                    raise refused(self._reject(line, self.num_rows, problem)) from problem
            else:
                columns.observe(record, f"{self.label}:{line.number}")

    def first_problem(self, plan: ReadPlan) -> Reject | None:
        """Return the first row that would stop the run, reading no more than needed to know."""
        complete = all(self._columns.is_complete(column) for column in plan.fields.values())
        if complete and not plan.policy.refuses_whole_texts:
            return None
        # Which columns are kept decides whether a surrogate in them counts.
        texts = plan if plan.policy.refuses_surrogates else plan.texts_only()
        rejects = (reject for piece in self.pieces(texts) for _, reject in piece.rejects)
        return next((reject for reject in rejects if plan.policy.stops(reject.code)), None)

    def pieces(self, plan: ReadPlan) -> Iterator[Piece]:
        """Yield the rows in order.

        Raises:
            InputError: the file is no longer what the survey saw.
        """
        if self._source.file.state() != self._state:
            raise changed(self.label)
        exact = self._columns.writes_numbers(tuple(plan.columns))
        builder = PieceBuilder(self.label, plan)
        replace, num_rows = plan.policy.replaces_bytes, 0
        for line in self._source.records():
            if num_rows == self.num_rows:
                break
            num_rows += 1
            record: dict[str, Any] = {}
            try:
                record, replaced = self._parse(line, exact=exact, replace=replace)
                builder.add(line, record, replaced)
            except RowError as problem:
                name = json_id(record.get(plan.id_column)) if plan.id_column else None
                builder.refuse(line, self._reject(line, num_rows, problem, name))
            if builder.is_full:
                yield self._finished(builder, exact=exact)
                builder = PieceBuilder(self.label, plan)
        if num_rows != self.num_rows:
            raise changed(self.label)
        yield self._finished(builder, exact=exact)

    def _finished(self, builder: PieceBuilder, *, exact: bool) -> Piece:
        try:
            return builder.finish(
                [self._columns.array(field, builder.records, exact=exact) for field in builder.plan.schema]
            )
        except (ValueError, TypeError, OverflowError) as error:
            # The survey declared types that hold every value, unless other values stand there now.
            if self._source.file.state() != self._state:
                raise changed(self.label) from error
            raise

    def _parse(self, line: Line, *, exact: bool, replace: bool) -> tuple[dict[str, Any], frozenset[str]]:
        if not line.whole:
            raise RowError("too_large", f"the line is longer than {self._source.max_bytes} bytes")
        return self._source.parse(line, exact=exact, replace=replace)

    def _reject(self, line: Line, row: int, problem: RowError, name: str | None = None) -> Reject:
        # A character takes at most four bytes of UTF-8, so this many hold the whole excerpt.
        start = line.data[: 4 * EXCERPT_CHARACTERS].decode("utf-8", "replace").strip()
        message = f"row {row}: {problem.message}" if self._source.tells_rows else problem.message
        return Reject(self.label, line.number, problem.code, message, start[:EXCERPT_CHARACTERS], name)
