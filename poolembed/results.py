"""Result columns as plain data: what they are called, what a row holds, and the arrays that hold it.

The language between those who compute results and those who write them; neither needs the other's
libraries.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class ResultColumn:
    """A column of results.

    Attributes:
        name: its name.
        dtype: numpy type of a value (`float32`), or `str`; ignored where there are fields.
        dim: length of every vector where a value is a vector; None where it is a single number.
        is_list: whether a row holds any number of values.
        fields: the parts of a value that is a record; only in lists.
    """

    name: str
    dtype: str = ""
    dim: int | None = None
    is_list: bool = False
    fields: tuple["ResultColumn", ...] = ()


Values = npt.NDArray[np.generic] | list[str]
"""One value a row: numbers (num_rows,), vectors (num_rows, dim), or strings."""


@dataclass(frozen=True, slots=True)
class Ragged:
    """Any number of values a row, end to end.

    Attributes:
        lengths: values of each row, shape (num_rows,), int64.
        values: the values of all rows in order, or of each field by name.
    """

    lengths: npt.NDArray[np.int64]
    values: Values | Mapping[str, Values]


ColumnData = Values | Ragged
"""The content of a `ResultColumn`."""


WINDOW_TOKENS = "window_tokens"
"""List of the tokens of each window; where windows become rows it takes the place of the row's own."""


def rows_where(data: ColumnData, wanted: npt.NDArray[np.bool_]) -> ColumnData:
    """Return the wanted rows of a column.

    Args:
        data: the column.
        wanted: shape (num_rows,).
    """
    if isinstance(data, Ragged):
        of_values = np.repeat(wanted, data.lengths)
        if isinstance(data.values, Mapping):
            fields = {name: _values_where(values, of_values) for name, values in data.values.items()}
            return Ragged(data.lengths[wanted], fields)
        return Ragged(data.lengths[wanted], _values_where(data.values, of_values))
    return _values_where(data, wanted)


def _values_where(values: Values, wanted: npt.NDArray[np.bool_]) -> Values:
    if isinstance(values, list):
        return [value for value, is_wanted in zip(values, wanted.tolist(), strict=True) if is_wanted]
    return values[wanted]
