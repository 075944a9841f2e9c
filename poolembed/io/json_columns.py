"""The columns of all JSON Lines files of a run: found by the survey, filled when rows are read."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from poolembed.errors import InputError
from poolembed.io.json_types import LIST, STRING, JsonShape
from poolembed.io.plan import Columns

MAX_COLUMNS = 4096


class JsonColumns:
    """What has been seen in each column.

    Attributes:
        num_rows: rows seen, broken ones included.
    """

    def __init__(self) -> None:
        self.num_rows = 0
        self._shapes: dict[str, JsonShape] = {}

    def observe(self, record: dict[str, Any], place: str) -> None:
        """Take one more row into account.

        Args:
            record: the row.
            place: where it stands, for messages.

        Raises:
            InputError: there are more than `MAX_COLUMNS` columns.
        """
        for key, value in record.items():
            shape = self._shapes.get(key)
            if shape is None:
                if len(self._shapes) == MAX_COLUMNS:
                    raise InputError(
                        f"{place}: the input has more than {MAX_COLUMNS} different keys",
                        "put open-ended keys into an object under one key",
                    )
                shape = self._shapes[key] = JsonShape()
            shape.observe(value)

    def is_complete(self, column: str) -> bool:
        """Whether every row seen has a string in `column`."""
        shape = self._shapes.get(column)
        return shape is not None and shape.kinds == STRING and shape.num_present == self.num_rows

    def describe(self, label: str) -> Columns:
        """Return the columns with the types that the survey found."""
        shapes = self._shapes.items()
        return Columns(
            label=label,
            schema=pa.schema(
                [(key, pa.null() if shape.is_null else shape.arrow_type()) for key, shape in shapes]
            ),
            texts=frozenset(key for key, shape in shapes if shape.is_text),
            usable=frozenset(key for key, shape in shapes if shape.is_null or shape.kinds & STRING),
            lists=frozenset(key for key, shape in shapes if shape.is_null or shape.kinds & LIST),
            may_miss=True,
        )

    def writes_numbers(self, columns: Sequence[str]) -> bool:
        """Whether numbers in some of these columns become text, so that their digits must be kept."""
        return any(self._shapes[name].writes_numbers() for name in columns if name in self._shapes)

    def array(self, field: pa.Field, records: Sequence[dict[str, Any]], *, exact: bool) -> pa.Array:
        """Return one column of some rows.

        Args:
            field: name and type in the output, which may be wider than what the survey found.
            records: the rows; a missing key is a null.
            exact: numbers come as `JsonNumber`.
        """
        shape = self._shapes.get(field.name)
        if shape is None or shape.is_null:
            return pa.nulls(len(records), field.type)
        values = [record.get(field.name) for record in records]
        convert = shape.converter(exact=exact)
        if convert is not None:
            values = [convert(value) for value in values]
        array = pa.array(values, shape.arrow_type())
        return array if array.type == field.type else array.cast(field.type)
