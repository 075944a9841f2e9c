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


def rows_not_finite(data: ColumnData) -> npt.NDArray[np.bool_]:
    """Return which rows of a column hold a number that is NaN or infinite, shape (num_rows,)."""
    if not isinstance(data, Ragged):
        return _values_not_finite(data)
    fields = data.values.values() if isinstance(data.values, Mapping) else [data.values]
    num_rows = len(data.lengths)
    row_of_value = np.repeat(np.arange(num_rows), data.lengths)
    bad = np.zeros(num_rows, np.bool_)
    for values in fields:
        bad[row_of_value[_values_not_finite(values)]] = True
    return bad


def _values_not_finite(values: Values) -> npt.NDArray[np.bool_]:
    if isinstance(values, list) or not np.issubdtype(values.dtype, np.floating):
        return np.zeros(len(values), np.bool_)
    bad: npt.NDArray[np.bool_] = np.logical_not(np.isfinite(values))
    return bad if bad.ndim == 1 else np.any(bad, axis=1, keepdims=True)[:, 0]
