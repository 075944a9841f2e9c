"""Column types of JSON Lines, declared by every value of the whole input and never guessed from text.

all strings             string (a date in a string stays a string)
all booleans            bool
all integers            int64, else uint64, else string with the digits as written
integers and fractions  double where every integer is exact in it, else string
all lists               list of the type of all items together
all objects             struct, or string with JSON text: no keys, very many keys, very deep
only nulls              string
any other mix           string: strings as they are, the rest as JSON text
"""

from collections.abc import Callable
from math import isinf
from typing import Any

import pyarrow as pa

from poolembed.io.json_rows import JsonNumber, json_text

MAX_STRUCT_KEYS = 100
MAX_STRUCT_DEPTH = 16

NULL, BOOL, INT, FLOAT, STRING, LIST, OBJECT, HUGE = (1 << bit for bit in range(8))

_KINDS: dict[type, int] = {
    type(None): NULL,
    bool: BOOL,
    int: INT,
    float: FLOAT,
    str: STRING,
    list: LIST,
    dict: OBJECT,
    JsonNumber: HUGE,
}
_EXACT_IN_DOUBLE = 2**53

Convert = Callable[[Any], Any]


class JsonShape:
    """What has been seen in one place of the records: a column, a list's items, an object's key.

    Attributes:
        kinds: bits of all kinds of values.
        num_present: how many values, nulls included.
    """

    __slots__ = ("_depth", "_fields", "_items", "_largest", "_smallest", "_wide", "kinds", "num_present")

    def __init__(self, depth: int = 0) -> None:
        self.kinds = 0
        self.num_present = 0
        self._smallest = 0
        self._largest = 0
        self._depth = depth
        self._wide = depth > MAX_STRUCT_DEPTH
        self._items: JsonShape | None = None
        self._fields: dict[str, JsonShape] = {}

    def observe(self, value: Any) -> None:  # noqa: ANN401 - any JSON value
        """Take one more value into account."""
        kind = _KINDS[type(value)]
        self.kinds |= kind
        self.num_present += 1
        if kind == INT:
            self._smallest = min(self._smallest, value)
            self._largest = max(self._largest, value)
        elif kind == FLOAT and isinf(value):
            self.kinds |= HUGE
        elif kind == LIST:
            self._observe_items(value)
        elif kind == OBJECT and not self._wide:
            self._observe_fields(value)

    def _observe_items(self, items: list[Any]) -> None:
        if self._items is None:
            self._items = JsonShape(self._depth + 1)
        for item in items:
            self._items.observe(item)

    def _observe_fields(self, record: dict[str, Any]) -> None:
        for key, value in record.items():
            shape = self._fields.get(key)
            if shape is None:
                shape = self._fields[key] = JsonShape(self._depth + 1)
            shape.observe(value)
        if len(self._fields) > MAX_STRUCT_KEYS:
            self._wide = True
            self._fields = {}

    @property
    def is_null(self) -> bool:
        """Whether no value but null was seen."""
        return self.kinds & ~NULL == 0

    @property
    def is_text(self) -> bool:
        """Whether strings were seen, and nothing else but nulls."""
        return self.kinds & ~NULL == STRING

    def arrow_type(self) -> pa.DataType:
        """Return the type that holds every value exactly."""
        kinds = self.kinds & ~NULL
        if kinds == BOOL:
            return pa.bool_()
        if kinds == INT:
            return self._integer_type()
        if kinds == FLOAT or (kinds == INT | FLOAT and self._is_exact_in_double()):
            return pa.float64()
        if kinds == LIST and self._items is not None:
            return pa.list_(self._items.arrow_type())
        if kinds == OBJECT and self._fields:
            return pa.struct([(key, shape.arrow_type()) for key, shape in self._fields.items()])
        return pa.string()

    def _integer_type(self) -> pa.DataType:
        if self._smallest >= -(2**63) and self._largest < 2**63:
            return pa.int64()
        if self._smallest >= 0 and self._largest < 2**64:
            return pa.uint64()
        return pa.string()

    def _is_exact_in_double(self) -> bool:
        return self._smallest >= -_EXACT_IN_DOUBLE and self._largest <= _EXACT_IN_DOUBLE

    def writes_numbers(self) -> bool:
        """Whether some number becomes text, so that its digits must be kept when it is read."""
        if pa.types.is_string(self.arrow_type()):
            return bool(self.kinds & ~(NULL | STRING | BOOL))
        below = [*self._fields.values(), *([self._items] if self._items is not None else [])]
        return any(shape.writes_numbers() for shape in below)

    def converter(self, *, exact: bool) -> Convert | None:
        """Return the function that makes a parsed value fit `arrow_type`; None where it fits already.

        Args:
            exact: numbers come as `JsonNumber`.
        """
        kind = self.arrow_type()
        if pa.types.is_string(kind):
            return None if self.kinds & ~(NULL | STRING) == 0 else _as_text
        if pa.types.is_list(kind) and self._items is not None:
            return _each_item(self._items.converter(exact=exact))
        if pa.types.is_struct(kind):
            return _each_field({key: shape.converter(exact=exact) for key, shape in self._fields.items()})
        if exact and not pa.types.is_boolean(kind):
            return _optional(int if pa.types.is_integer(kind) else float)
        return None


def _as_text(value: Any) -> str | None:  # noqa: ANN401 - any JSON value
    if value is None or type(value) is str:
        return value
    return json_text(value)


def _optional(convert: Convert) -> Convert:
    return lambda value: None if value is None else convert(value)


def _each_item(convert: Convert | None) -> Convert | None:
    if convert is None:
        return None
    return _optional(lambda items: [convert(item) for item in items])


def _each_field(converters: dict[str, Convert | None]) -> Convert | None:
    needed = {key: convert for key, convert in converters.items() if convert is not None}
    if not needed:
        return None

    def convert_fields(record: dict[str, Any]) -> dict[str, Any]:
        changed = {key: convert(record[key]) for key, convert in needed.items() if key in record}
        return {**record, **changed}

    return _optional(convert_fields)
