"""Columns of ids: which they are, and their values as strings."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from poolembed.errors import InputError
from poolembed.io.parquet import is_text


@dataclass(frozen=True, slots=True)
class IdKind:
    """The ids of queries, or those of documents.

    Attributes:
        noun: what has these ids.
        own_names: columns that are tried in this order where each row is one of these.
        foreign_names: the same where rows point to them.
        named: the column that the user names, in both places; None names none.
    """

    noun: str
    own_names: tuple[str, ...]
    foreign_names: tuple[str, ...]
    named: str | None = None

    @property
    def option(self) -> str:
        """The option that names the column."""
        return f"--{self.noun}-id-field"

    def own_column(self, schema: pa.Schema, label: str) -> str:
        """Return the column with the id of each row.

        Args:
            schema: the columns there are.
            label: where, for messages.

        Raises:
            InputError: there is none, or it holds neither integers nor strings.
        """
        names = self.own_names if self.named is None else (self.named,)
        name = next((name for name in names if name in schema.names), None)
        if name is None:
            raise self.missing(names, schema, label)
        check_ids(schema.field(name), label)
        return name

    def foreign_column(self, schema: pa.Schema) -> str | None:
        """Return the column with ids of others; None where there is none of a known name."""
        names = (self.named, *self.foreign_names)
        return next((name for name in names if name in schema.names), None)

    def missing(self, names: Sequence[str], schema: pa.Schema, label: str) -> InputError:
        """Return the error that tells which columns were looked for in vain.

        Args:
            names: what was looked for.
            schema: the columns there are.
            label: where, for messages.
        """
        return InputError(
            f"{label}: no column {' or '.join(map(repr, names))} with the id of a {self.noun}",
            f"columns: {', '.join(schema.names) or 'none'}; {self.option} names it",
        )


def check_ids(field: pa.Field, label: str, *, may_be_list: bool = False) -> None:
    """See that a column can hold ids.

    Args:
        field: the column.
        label: where, for messages.
        may_be_list: whether a row may have a list of them.

    Raises:
        InputError: its values are neither integers nor strings.
    """
    kind = field.type
    if may_be_list and is_list(kind):
        kind = kind.value_type
    if not (is_text(kind) or pa.types.is_integer(kind) or pa.types.is_null(kind)):
        raise InputError(
            f"{label}: the column {field.name!r} holds {field.type}, not ids", "ids are integers or strings"
        )


def is_list(kind: pa.DataType) -> bool:
    """Return whether values of an Arrow type are lists."""
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def ids_in(table: pa.Table, column: str) -> Iterator[str | None]:
    """Yield the id in a `column` of each row of a `table`; None for a null."""
    for value in table.column(column).to_pylist():
        yield None if value is None else str(value)
