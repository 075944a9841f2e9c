"""JSON Lines in two passes: a survey that learns counts and types, then the rows as pieces.

Both hold one line or one piece at a time.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from poolembed.config import OnError
from poolembed.io.chunk import EXCERPT_CHARACTERS, Reject
from poolembed.io.documents import documents_of
from poolembed.io.files import InputFile
from poolembed.io.json_columns import JsonColumns
from poolembed.io.json_rows import RowError, kind_name, parse_row
from poolembed.io.lines import MAX_LINE_BYTES, Line, numbered_lines
from poolembed.io.pieces import Piece
from poolembed.io.plan import ReadPlan, changed, refused

_PIECE_ROWS = 1024
_PIECE_BYTES = 4 * 2**20


class JsonlReader:
    """One file of JSON Lines.

    Args:
        file: where it is.
        columns: what has been seen in all JSONL files; `survey` adds to it.
        max_line_bytes: a longer line is refused.

    Attributes:
        label: name of the file in messages.
        num_rows: rows to read, known after `survey`.
    """

    def __init__(self, file: InputFile, columns: JsonColumns, max_line_bytes: int = MAX_LINE_BYTES) -> None:
        self.label = file.label
        self.num_rows = 0
        self._file = file
        self._columns = columns
        self._max_line_bytes = max_line_bytes
        self._state = file.state()

    def survey(self, limit: int | None, on_error: OnError) -> None:
        """Read the file once to count its rows and learn its types.

        Args:
            limit: stop after so many rows.
            on_error: what a line does that holds no record.

        Raises:
            InputError: the file cannot be read, or a line holds no record and `on_error` is `fail`.
        """
        for line in self._lines():
            if self.num_rows == limit:
                return
            self.num_rows += 1
            self._columns.num_rows += 1
            try:
                record, _ = self._parse(line, exact=False)
            except RowError as problem:
                if on_error == "fail":
                    raise refused(self._reject(line, problem)) from problem
            else:
                self._columns.observe(record, f"{self.label}:{line.number}")

    def first_problem(self, plan: ReadPlan) -> Reject | None:
        """Return the first row that the plan would refuse, reading no more than needed to know."""
        if all(self._columns.is_complete(column) for column in plan.fields.values()):
            return None
        texts = ReadPlan(pa.schema([]), plan.fields, plan.lists)
        return next((reject for piece in self.pieces(texts) for _, reject in piece.rejects), None)

    def pieces(self, plan: ReadPlan) -> Iterator[Piece]:
        """Yield the rows in order.

        Raises:
            InputError: the file is no longer what the survey saw.
        """
        if self._file.state() != self._state:
            raise changed(self.label)
        exact = self._columns.writes_numbers(plan.schema.names)
        builder = _PieceBuilder(self.label, self._columns, plan, exact=exact)
        num_rows = 0
        for line in self._lines():
            if num_rows == self.num_rows:
                break
            num_rows += 1
            try:
                builder.add(line, *self._parse(line, exact=exact))
            except RowError as problem:
                builder.refuse(line, self._reject(line, problem))
            if builder.is_full:
                yield self._finished(builder)
                builder = _PieceBuilder(self.label, self._columns, plan, exact=exact)
        if num_rows != self.num_rows:
            raise changed(self.label)
        yield self._finished(builder)

    def _finished(self, builder: "_PieceBuilder") -> Piece:
        try:
            return builder.finish()
        except (ValueError, TypeError, OverflowError) as error:
            # The survey declared types that hold every value, unless other values stand there now.
            if self._file.state() != self._state:
                raise changed(self.label) from error
            raise

    def _lines(self) -> Iterator[Line]:
        return numbered_lines(self.label, self._file.open, self._max_line_bytes)

    def _parse(self, line: Line, *, exact: bool) -> tuple[dict[str, Any], frozenset[str]]:
        if not line.whole:
            raise RowError("too_large", f"the line is longer than {self._max_line_bytes} bytes")
        return parse_row(line.data, exact=exact)

    def _reject(self, line: Line, problem: RowError) -> Reject:
        # A character takes at most four bytes of UTF-8, so this many hold the whole excerpt.
        start = line.data[: 4 * EXCERPT_CHARACTERS].decode("utf-8", "replace").strip()
        return Reject(self.label, line.number, problem.code, problem.message, start[:EXCERPT_CHARACTERS])


class _PieceBuilder:
    """Rows on their way to a piece."""

    def __init__(self, label: str, columns: JsonColumns, plan: ReadPlan, *, exact: bool) -> None:
        self._label = label
        self._columns = columns
        self._plan = plan
        self._exact = exact
        self._kept = frozenset(plan.schema.names) | frozenset(plan.fields.values())
        self._records: list[dict[str, Any]] = []
        self._places: list[tuple[str, int]] = []
        self._row_bytes: list[int] = []
        self._num_bytes = 0
        self._rejects: list[tuple[int, Reject]] = []
        self._replaced: list[int] = []

    @property
    def is_full(self) -> bool:
        """Whether the piece should be finished."""
        return len(self._row_bytes) >= _PIECE_ROWS or self._num_bytes >= _PIECE_BYTES

    def add(self, line: Line, record: dict[str, Any], repaired: frozenset[str]) -> None:
        """Take a record, or raise RowError when it lacks a text."""
        for role, column in self._plan.fields.items():
            if role in self._plan.lists:
                documents_of(_present(record, column), column)
            else:
                _check_text(record, column)
        if repaired & self._kept:
            self._replaced.append(len(self._row_bytes))
        self._records.append(record)
        self._places.append((self._label, line.number))
        self._weigh(line)

    def refuse(self, line: Line, reject: Reject) -> None:
        """Set a row aside."""
        self._rejects.append((len(self._row_bytes), reject))
        self._weigh(line)

    def _weigh(self, line: Line) -> None:
        self._row_bytes.append(len(line.data))
        self._num_bytes += len(line.data)

    def finish(self) -> Piece:
        """Return what was gathered."""
        schema, records = self._plan.schema, self._records
        arrays = [self._columns.array(field, records, exact=self._exact) for field in schema]
        return Piece(
            table=pa.Table.from_arrays(arrays, schema=schema),
            texts={role: self._texts(role, column) for role, column in self._plan.fields.items()},
            places=self._places,
            row_bytes=np.array(self._row_bytes, dtype=np.int64),
            rejects=tuple(self._rejects),
            replaced=tuple(self._replaced),
        )

    def _texts(self, role: str, column: str) -> list[Any]:
        values = [record[column] for record in self._records]
        return [documents_of(value, column) for value in values] if role in self._plan.lists else values


def _present(record: dict[str, Any], column: str) -> Any:  # noqa: ANN401 - any JSON value
    if column not in record:
        raise RowError("missing_field", f"the field {column!r} is missing")
    return record[column]


def _check_text(record: dict[str, Any], column: str) -> None:
    value = _present(record, column)
    if value is None:
        raise RowError("null_text", f"the text in {column!r} is null")
    if type(value) is not str:
        raise RowError("not_a_string", f"the text in {column!r} is {kind_name(value)}, not a string")
