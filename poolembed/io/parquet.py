"""Parquet files as pieces: small batches of only the columns that are needed, types as they are."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from poolembed.errors import InputError
from poolembed.io.chunk import EXCERPT_CHARACTERS, Reject, drop_rows
from poolembed.io.documents import TEXT_KEY, documents_of
from poolembed.io.files import InputFile
from poolembed.io.json_rows import RowError
from poolembed.io.pieces import Piece
from poolembed.io.plan import Columns, ReadPlan, changed

METADATA_PREFIX = b"poolembed."
"""Keys of the schema metadata that this tool writes; a file that has one is an output of it."""

_BATCH_ROWS = 512
_BATCH_BYTES = 16 * 2**20
_READ_BUFFER_BYTES = 2**20


def is_own_output(path: Path) -> bool:
    """Return whether a Parquet file was written by this tool.

    Raises:
        InputError: it is not a Parquet file, or damaged.
    """
    with _translated(str(path)), pq.ParquetFile(path) as file:
        keys = file.schema_arrow.metadata or {}
    return any(key.startswith(METADATA_PREFIX) for key in keys)


def is_text(kind: pa.DataType) -> bool:
    """Return whether values of an Arrow type are strings."""
    if isinstance(kind, pa.BaseExtensionType):
        return is_text(kind.storage_type)
    if pa.types.is_dictionary(kind):
        return is_text(kind.value_type)
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


class ParquetReader:
    """One Parquet file.

    Args:
        file: where it is.
        limit: read at most so many rows.

    Attributes:
        label: name of the file in messages.
        num_rows: rows to read.

    Raises:
        InputError: it is not a Parquet file, or damaged, or two columns have the same name.
    """

    def __init__(self, file: InputFile, limit: int | None) -> None:
        self.label = file.label
        self._file = file
        self._state = file.state()
        with self._opened() as parquet:
            self._schema = parquet.schema_arrow
            num_rows = _declared_rows(self.label, parquet)
        self.num_rows = num_rows if limit is None else min(num_rows, limit)
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
        """Return the first row that the plan would refuse; reads the text columns only."""
        texts = set(plan.fields.values())
        for first_row, batch in self._rows(texts):
            problems = self._problems(batch, plan, first_row)
            if problems:
                return problems[min(problems)]
        return None

    def pieces(self, plan: ReadPlan) -> Iterator[Piece]:
        """Yield the rows in order.

        Raises:
            InputError: the file is damaged, or no longer what the survey saw.
        """
        for first_row, batch in self._rows({*plan.schema.names, *plan.fields.values()}):
            yield self._piece(batch, plan, first_row)

    def _rows(self, wanted: set[str]) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield batches of the wanted columns, each with the number of its first row."""
        if self._file.state() != self._state:
            raise changed(self.label)
        columns = [name for name in self._schema.names if name in wanted]
        first_row = 1
        with self._opened() as parquet:
            for batch in _batches(parquet, self.label, columns):
                rows = batch.slice(0, self.num_rows + 1 - first_row)
                if rows.num_rows == 0:
                    return
                yield first_row, rows
                first_row += rows.num_rows
        if first_row <= self.num_rows:
            raise _contradiction(self.label, self.num_rows, first_row - 1)

    @contextmanager
    def _opened(self) -> Iterator[pq.ParquetFile]:
        with _translated(self.label):
            # Without pre-buffering, memory holds pages and not whole row groups.
            parquet = pq.ParquetFile(self.label, pre_buffer=False, buffer_size=_READ_BUFFER_BYTES)
        with parquet:
            yield parquet

    def _piece(self, batch: pa.RecordBatch, plan: ReadPlan, first_row: int) -> Piece:
        problems = self._problems(batch, plan, first_row)
        row_bytes = _row_bytes(batch, plan)
        places = [(self.label, first_row + row) for row in range(batch.num_rows) if row not in problems]
        table = drop_rows(pa.Table.from_batches([batch]), sorted(problems))
        return Piece(
            table=pa.Table.from_arrays([_column(table, field) for field in plan.schema], schema=plan.schema),
            texts={
                role: _lists(table.column(column), column)
                if role in plan.lists
                else _texts(table.column(column))
                for role, column in plan.fields.items()
            },
            places=places,
            row_bytes=row_bytes,
            rejects=tuple(sorted(problems.items(), key=lambda item: item[0])),
        )

    def _problems(self, batch: pa.RecordBatch, plan: ReadPlan, first_row: int) -> dict[int, Reject]:
        """Return the rows of a batch that have no usable text, by position."""
        problems: dict[int, Reject] = {}
        for role, column in plan.fields.items():
            if role in plan.lists:
                problems = self._list_problems(batch.column(column), column, first_row) | problems
                continue
            if _is_sound(batch.column(column)):
                continue
            values = _plain(batch.column(column)).cast(pa.large_binary()).to_pylist()
            for row, value in enumerate(values):
                if (value is None or not _is_utf8(value)) and row not in problems:
                    problems[row] = self._reject(first_row + row, column, value)
        return problems

    def _list_problems(self, lists: pa.Array, column: str, first_row: int) -> dict[int, Reject]:
        problems: dict[int, Reject] = {}
        for row, value in enumerate(lists):
            try:
                documents_of(value.as_py(), column)
            except RowError as error:
                problems[row] = Reject(self.label, first_row + row, error.code, error.message, "")
            except UnicodeDecodeError:
                message = f"a text in {column!r} is not UTF-8"
                problems[row] = Reject(self.label, first_row + row, "invalid_utf8", message, "")
        return problems

    def _reject(self, row: int, column: str, value: bytes | None) -> Reject:
        if value is None:
            return Reject(self.label, row, "null_text", f"the text in {column!r} is null", "")
        start = value[: 4 * EXCERPT_CHARACTERS].decode("utf-8", "replace")[:EXCERPT_CHARACTERS]
        return Reject(self.label, row, "invalid_utf8", f"the text in {column!r} is not UTF-8", start)


def _declared_rows(label: str, parquet: pq.ParquetFile) -> int:
    groups: int = sum(parquet.metadata.row_group(group).num_rows for group in range(parquet.num_row_groups))
    num_rows: int = parquet.metadata.num_rows
    if num_rows != groups:
        raise _contradiction(label, num_rows, groups)
    return num_rows


def _contradiction(label: str, declared: int, found: int) -> InputError:
    return InputError(f"{label}: is damaged: it declares {declared} rows but holds {found}", "write it anew")


def _batches(parquet: pq.ParquetFile, label: str, columns: list[str]) -> Iterator[pa.RecordBatch]:
    for group in range(parquet.num_row_groups):
        with _translated(label):
            # The sizes of single columns would be finer, but pyarrow aborts on damaged ones.
            described = parquet.metadata.row_group(group)
            size = _batch_rows(described.num_rows, described.total_byte_size)
            batches = parquet.iter_batches(size, row_groups=[group], columns=columns, use_threads=False)
        while True:
            with _translated(label):
                batch = next(batches, None)
            if batch is None:
                break
            yield batch


def _batch_rows(num_rows: int, num_bytes: int) -> int:
    """Return the rows of a batch, from those of a row group and its bytes before compression."""
    return max(1, min(_BATCH_ROWS, _BATCH_BYTES * num_rows // max(1, num_bytes)))


def _column(table: pa.Table, field: pa.Field) -> pa.ChunkedArray:
    if field.name not in table.column_names:
        return pa.chunked_array([pa.nulls(table.num_rows, field.type)])
    column = table.column(field.name)
    return column if column.type == field.type else column.cast(field.type)


def _plain(array: pa.Array) -> pa.Array:
    """Return an array of texts of any kind as large_string."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    return array.cast(pa.large_string())


def _texts(column: pa.ChunkedArray) -> list[str]:
    return [text for array in column.chunks for text in _plain(array).to_pylist()]


def _lists(column: pa.ChunkedArray, name: str) -> list[list[tuple[str, str]]]:
    return [documents_of(value, name) for array in column.chunks for value in array.to_pylist()]


def _is_list_of_texts(kind: pa.DataType) -> bool:
    is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    if not is_list:
        return False
    item = kind.value_type
    if pa.types.is_struct(item):
        position = item.get_field_index(TEXT_KEY)
        return position >= 0 and is_text(item.field(position).type)
    return is_text(item) or bool(pa.types.is_null(item))


def _is_sound(array: pa.Array) -> bool:
    """Return whether every value is a string in UTF-8."""
    try:
        _plain(array).validate(full=True)
    except pa.ArrowInvalid:
        return False
    return bool(_plain(array).null_count == 0)


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
        lengths = pc.fill_null(pc.binary_length(_plain(batch.column(column))), 0)
        weights += np.asarray(lengths, dtype=np.int64)
    return weights


@contextmanager
def _translated(label: str) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"{label}: cannot be read as Parquet: {reason}") from error
