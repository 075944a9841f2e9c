"""Columns that are strings and nothing else: those of CSV, TSV and plain text."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from poolembed.io.plan import Columns


class StringColumns:
    """The columns of one file.

    Args:
        names: their names, in order.

    Attributes:
        num_rows: rows seen, broken ones included.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.num_rows = 0
        self._names = tuple(names)

    def observe(self, record: dict[str, Any], place: str) -> None:
        """Learn nothing: every value is a string."""

    def is_complete(self, column: str) -> bool:
        """Whether every row has a string in `column`: where it exists, it does."""
        return column in self._names

    def writes_numbers(self, columns: Sequence[str]) -> bool:
        """Whether numbers must keep their digits: there are none."""
        return False

    def describe(self, label: str) -> Columns:
        """Return the columns of the file called `label`; one without any may lack all."""
        names = frozenset(self._names)
        schema = pa.schema([(name, pa.string()) for name in self._names])
        return Columns(label, schema, names, names, frozenset(), may_miss=not names)

    def array(self, field: pa.Field, records: Sequence[dict[str, Any]], *, exact: bool) -> pa.Array:
        """Return one column of some records.

        Args:
            field: name and type in the output.
            records: the rows.
            exact: nothing here.
        """
        return pa.array([record.get(field.name) for record in records], pa.string()).cast(field.type)
