"""Records on their way to a piece: which of them are rows, and what their texts are."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from poolembed.io.chunk import Reject
from poolembed.io.documents import documents_of
from poolembed.io.ids import json_id
from poolembed.io.json_rows import RowError, kind_name
from poolembed.io.lines import Line
from poolembed.io.pieces import Piece
from poolembed.io.plan import ReadPlan
from poolembed.io.policy import EMPTY_TEXT, LONE_SURROGATE, MISSING_FIELD, NULL_TEXT

_PIECE_ROWS = 1024
_PIECE_BYTES = 4 * 2**20


class PieceBuilder:
    """Gathers records.

    Args:
        label: name of the file.
        plan: what is read.

    Attributes:
        plan: what is read.
        records: the good rows so far.
    """

    def __init__(self, label: str, plan: ReadPlan) -> None:
        self.plan = plan
        self.records: list[dict[str, Any]] = []
        self._label = label
        self._kept = frozenset(plan.schema.names) | frozenset(plan.fields.values())
        self._places: list[tuple[str, int]] = []
        self._row_bytes: list[int] = []
        self._num_bytes = 0
        self._rejects: list[tuple[int, Reject]] = []
        self._replaced: list[int] = []
        self._absent: list[int] = []

    @property
    def is_full(self) -> bool:
        """Whether the piece should be finished."""
        return len(self._row_bytes) >= _PIECE_ROWS or self._num_bytes >= _PIECE_BYTES

    def add(self, line: Line, record: dict[str, Any], replaced: frozenset[str]) -> None:
        """Take a record.

        Args:
            line: where it stood.
            record: its values by column.
            replaced: columns in which characters were replaced.

        Raises:
            RowError: the record has no text that can be used, or one that the user does not want.
        """
        is_absent = self._lacks_text(record)
        if replaced & self._kept:
            if self.plan.policy.refuses_surrogates:
                names = ", ".join(map(repr, sorted(replaced & self._kept)))
                raise RowError(LONE_SURROGATE, f"half of a surrogate pair stands alone in {names}")
            self._replaced.append(len(self._row_bytes))
        if is_absent:
            self._absent.append(len(self.records))
        self.records.append(record)
        self._places.append((self._label, line.number))
        self._weigh(line)

    def refuse(self, line: Line, reject: Reject) -> None:
        """Set the row aside that stood at `line`, as `reject` says."""
        self._rejects.append((len(self._row_bytes), reject))
        self._weigh(line)

    def _weigh(self, line: Line) -> None:
        self._row_bytes.append(len(line.data))
        self._num_bytes += len(line.data)

    def _lacks_text(self, record: dict[str, Any]) -> bool:
        policy, lists, texts = self.plan.policy, self.plan.lists, []
        for role, column in self.plan.fields.items():
            value = record.get(column)
            if value is None:
                if policy.on_null != "null":
                    raise _null_text(record, column, is_list=role in lists)
                return True
            if type(value) is str and role not in lists:
                texts.append(value)
            elif role in lists:
                documents_of(value, column)
            else:
                message = f"the text in {column!r} is {kind_name(value)}, not a string"
                raise RowError("not_a_string", message)
        if policy.on_empty == "embed" or not self.plan.is_empty(texts):
            return False
        if policy.on_empty != "null":
            raise RowError(EMPTY_TEXT, "the text is empty")
        return True

    def finish(self, arrays: Sequence[pa.Array]) -> Piece:
        """Return what was gathered, with the kept columns of `records` in `arrays`."""
        plan = self.plan
        absent = frozenset(self._absent)
        return Piece(
            table=pa.Table.from_arrays(arrays, schema=plan.schema),
            texts={role: self._texts(role, column, absent) for role, column in plan.fields.items()},
            places=self._places,
            row_bytes=np.array(self._row_bytes, dtype=np.int64),
            rejects=tuple(self._rejects),
            replaced=tuple(self._replaced),
            ids=self._ids(plan.id_column),
            absent=tuple(self._absent),
        )

    def _texts(self, role: str, column: str, absent: frozenset[int]) -> list[Any]:
        is_list = role in self.plan.lists
        values = [record.get(column) for record in self.records]
        if not absent:
            return [documents_of(value, column) for value in values] if is_list else values
        nothing: str | list[Any] = [] if is_list else ""
        return [
            nothing if row in absent else documents_of(value, column) if is_list else value
            for row, value in enumerate(values)
        ]

    def _ids(self, column: str | None) -> list[str | None] | None:
        return None if column is None else [json_id(record.get(column)) for record in self.records]


def _null_text(record: dict[str, Any], column: str, *, is_list: bool) -> RowError:
    if column not in record:
        return RowError(MISSING_FIELD, f"the field {column!r} is missing")
    return RowError(NULL_TEXT, f"the {'list' if is_list else 'text'} in {column!r} is null")
