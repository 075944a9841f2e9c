"""Files of Arrow batches (Parquet, Arrow) as pieces: only the columns that are needed, types as they are."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from poolembed.errors import InputError
from poolembed.io.arrow_texts import is_text, is_utf8, plain, replaced, texts_of
from poolembed.io.chunk import EXCERPT_CHARACTERS, Reject, drop_rows
from poolembed.io.documents import TEXT_KEY, documents_of
from poolembed.io.files import InputFile
from poolembed.io.ids import column_ids
from poolembed.io.json_rows import RowError
from poolembed.io.pieces import Piece
from poolembed.io.plan import Columns, ReadPlan, changed
from poolembed.io.policy import EMPTY_TEXT, INVALID_UTF8, NULL_TEXT


class BatchFile(Protocol):
    """A file of batches.

    Attributes:
        schema: all its columns.
        num_rows: how many rows it declares.
    """

    schema: pa.Schema
    num_rows: int

    def batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        """Yield the rows in order, in small batches of these columns."""
        ...


@dataclass(slots=True)
class _Findings:
    """Rows of a batch that are not as they should be, by position."""

    problems: dict[int, Reject] = field(default_factory=dict)
    absent: set[int] = field(default_factory=set)
    replaced: set[int] = field(default_factory=set)


class TableReader:
    """One file of batches.

    Args:
        file: where it is.
        batches: what is in it.
        limit: read at most so many rows.

    Attributes:
        label: name of the file in messages.
        num_rows: rows to read.

    Raises:
        InputError: two columns have the same name.
    """

    def __init__(self, file: InputFile, batches: BatchFile, limit: int | None) -> None:
        self.label = file.label
        self._file = file
        self._state = file.state()
        self._batches = batches
        self._schema = batches.schema
        self.num_rows = batches.num_rows if limit is None else min(batches.num_rows, limit)
        names = self._schema.names
        if len(set(names)) != len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise InputError(f"{self.label}: two columns are named {twice!r}", "rename one of them")

    def describe(self) -> Columns:
        """Return the columns with their types."""
        texts = frozenset(field.name for field in self._schema if is_text(field.type))
        nulls = frozenset(field.name for field in self._schema if pa.types.is_null(field.type))
        lists = frozenset(field.name for field in self._schema if _is_list_of_texts(field.type))
        return Columns(self.label, self._schema, texts, texts | nulls, lists | nulls, may_miss=False)

    def first_problem(self, plan: ReadPlan) -> Reject | None:
        """Return the first row that would stop the run; reads the text columns only."""
        for first_row, batch in self._rows(set(plan.fields.values())):
            problems = self._findings(batch, plan, first_row).problems
            stopping = [row for row, reject in problems.items() if plan.policy.stops(reject.code)]
            if stopping:
                return problems[min(stopping)]
        return None

    def pieces(self, plan: ReadPlan) -> Iterator[Piece]:
        """Yield the rows in order.

        Raises:
            InputError: the file is damaged, or no longer what the survey saw.
        """
        for first_row, batch in self._rows(set(plan.columns)):
            yield self._piece(batch, plan, first_row)

    def _rows(self, wanted: set[str]) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield batches of the wanted columns, each with the number of its first row."""
        if self._file.state() != self._state:
            raise changed(self.label)
        columns = [name for name in self._schema.names if name in wanted]
        first_row = 1
        for batch in self._batches.batches(columns):
            rows = batch.slice(0, self.num_rows + 1 - first_row)
            if rows.num_rows == 0:
                return
            yield first_row, rows
            first_row += rows.num_rows
        if first_row <= self.num_rows:
            raise contradiction(self.label, self.num_rows, first_row - 1)

    def _piece(self, batch: pa.RecordBatch, plan: ReadPlan, first_row: int) -> Piece:
        found = self._findings(batch, plan, first_row)
        ids = self._ids(batch, plan)
        refused = sorted(found.problems)
        good = [row for row in range(batch.num_rows) if row not in found.problems]
        absent = tuple(new for new, row in enumerate(good) if row in found.absent)
        row_bytes = _row_bytes(batch, plan)
        batch = _repaired(batch, plan) if found.replaced else batch
        table = drop_rows(pa.Table.from_batches([batch]), refused)
        return Piece(
            table=pa.Table.from_arrays([_column(table, field) for field in plan.schema], schema=plan.schema),
            texts={
                role: _values(table, column, is_list=role in plan.lists, absent=absent)
                for role, column in plan.fields.items()
            },
            places=[(self.label, first_row + row) for row in good],
            row_bytes=row_bytes,
            rejects=tuple((row, _named(found.problems[row], row, ids)) for row in refused),
            replaced=tuple(sorted(found.replaced - found.problems.keys())),
            ids=None if ids is None else [ids[row] for row in good],
            absent=absent,
        )

    def _ids(self, batch: pa.RecordBatch, plan: ReadPlan) -> list[str | None] | None:
        has_ids = plan.id_column is not None and plan.id_column in batch.schema.names
        return column_ids(batch.column(plan.id_column)) if has_ids else None

    def _findings(self, batch: pa.RecordBatch, plan: ReadPlan, first_row: int) -> _Findings:
        found = _Findings()
        for role, column in plan.fields.items():
            look = self._look_at_lists if role in plan.lists else self._look_at_texts
            look(found, batch.column(column), column, plan, first_row)
        if plan.policy.on_empty != "embed":
            self._look_for_nothing(found, batch, plan, first_row)
        return found

    def _look_at_texts(
        self, found: _Findings, array: pa.Array, column: str, plan: ReadPlan, first_row: int
    ) -> None:
        if plain(array).null_count:
            for row in np.flatnonzero(np.asarray(plain(array).is_null())).tolist():
                self._null(found, row, f"the text in {column!r} is null", plan, first_row)
        if is_utf8(array):
            return
        for row, value in enumerate(plain(array).cast(pa.large_binary()).to_pylist()):
            if value is None or _is_utf8(value):
                continue
            if plan.policy.replaces_bytes:
                found.replaced.add(row)
            else:
                start = value[: 4 * EXCERPT_CHARACTERS].decode("utf-8", "replace")[:EXCERPT_CHARACTERS]
                message = f"the text in {column!r} is not UTF-8"
                found.problems.setdefault(
                    row, Reject(self.label, first_row + row, INVALID_UTF8, message, start)
                )

    def _look_at_lists(
        self, found: _Findings, array: pa.Array, column: str, plan: ReadPlan, first_row: int
    ) -> None:
        for row, value in enumerate(array):
            try:
                documents_of(value.as_py(), column)
            except RowError as error:
                if error.code == NULL_TEXT:
                    self._null(found, row, error.message, plan, first_row)
                else:
                    reject = Reject(self.label, first_row + row, error.code, error.message, "")
                    found.problems.setdefault(row, reject)
            except UnicodeDecodeError:
                message = f"a text in {column!r} is not UTF-8"
                found.problems.setdefault(row, Reject(self.label, first_row + row, INVALID_UTF8, message, ""))

    def _null(self, found: _Findings, row: int, message: str, plan: ReadPlan, first_row: int) -> None:
        if plan.policy.on_null == "null":
            found.absent.add(row)
        else:
            found.problems.setdefault(row, Reject(self.label, first_row + row, NULL_TEXT, message, ""))

    def _look_for_nothing(
        self, found: _Findings, batch: pa.RecordBatch, plan: ReadPlan, first_row: int
    ) -> None:
        names = [column for role, column in plan.fields.items() if role not in plan.lists]
        columns = [texts_of(batch.column(name), errors="replace") for name in names]
        for row, texts in enumerate(zip(*columns, strict=True)):
            if row in found.problems or row in found.absent or not plan.is_empty([t or "" for t in texts]):
                continue
            if plan.policy.on_empty == "null":
                found.absent.add(row)
            else:
                found.problems[row] = Reject(self.label, first_row + row, EMPTY_TEXT, "the text is empty", "")


def look_at_names(schema: pa.Schema) -> None:
    """Decode the names of columns and of all within them, which pyarrow does when they are used.

    Args:
        schema: as it was read.

    Raises:
        UnicodeDecodeError: a name is not UTF-8.
    """
    for column in schema:
        str(column.name)
        str(column.type)


def contradiction(label: str, declared: int, found: int) -> InputError:
    """Return the error for a file whose numbers of rows disagree.

    Args:
        label: name of the file.
        declared: rows it says it has.
        found: rows that are there.
    """
    return InputError(f"{label}: is damaged: it declares {declared} rows but holds {found}", "write it anew")


def _named(reject: Reject, row: int, ids: list[str | None] | None) -> Reject:
    return reject if ids is None else replace(reject, id=ids[row])


def _repaired(batch: pa.RecordBatch, plan: ReadPlan) -> pa.RecordBatch:
    texts = {column for role, column in plan.fields.items() if role not in plan.lists}
    arrays = [
        replaced(array) if name in texts and is_text(array.type) else array
        for name, array in zip(batch.schema.names, batch.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=batch.schema)


def _column(table: pa.Table, field: pa.Field) -> pa.ChunkedArray:
    if field.name not in table.column_names:
        return pa.chunked_array([pa.nulls(table.num_rows, field.type)])
    column = table.column(field.name)
    return column if column.type == field.type else column.cast(field.type)


def _values(table: pa.Table, column: str, *, is_list: bool, absent: tuple[int, ...]) -> list[Any]:
    chunks = table.column(column).chunks
    if not is_list:
        texts: list[Any] = [text for array in chunks for text in texts_of(array)]
        for row in absent:
            texts[row] = ""
        return texts
    gone = frozenset(absent)
    values = [value for array in chunks for value in array.to_pylist()]
    return [[] if row in gone else documents_of(value, column) for row, value in enumerate(values)]


def _is_list_of_texts(kind: pa.DataType) -> bool:
    is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    if not is_list:
        return False
    item = kind.value_type
    if pa.types.is_struct(item):
        position = item.get_field_index(TEXT_KEY)
        return position >= 0 and is_text(item.field(position).type)
    return is_text(item) or bool(pa.types.is_null(item))


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _row_bytes(batch: pa.RecordBatch, plan: ReadPlan) -> np.ndarray:
    """Return what each row weighs: its texts exactly, the other kept columns as a mean of the batch."""
    texts = {column for role, column in plan.fields.items() if role not in plan.lists}
    others = sum(batch.column(name).nbytes for name in batch.schema.names if name not in texts)
    weights = np.full(batch.num_rows, others // max(1, batch.num_rows), dtype=np.int64)
    for column in texts:
        lengths = pc.fill_null(pc.binary_length(plain(batch.column(column))), 0)
        weights += np.asarray(lengths, dtype=np.int64)
    return weights
