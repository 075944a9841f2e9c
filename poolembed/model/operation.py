"""What a model does with rows of text, in two phases, so that they can overlap."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from poolembed.results import ColumnData, ResultColumn, rows_not_finite
from poolembed.runner import RowFailure

OnBatch = Callable[[int, int], None]
"""Called after each batch with its numbers of rows and of tokens."""

Texts = Mapping[str, Sequence[str]]
"""The texts of every row by role (`text`; `query` and `document`), all of one length."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The results of some rows, in their order.

    Attributes:
        columns: content of every result column; at a failed row it means nothing.
        num_tokens: tokens computed for each row, shape (num_rows,), int32.
        truncated: whether a row lost text to the maximum length, shape (num_rows,), bool.
        failures: the rows without a result, by row number.
    """

    columns: Mapping[str, ColumnData]
    num_tokens: npt.NDArray[np.int32]
    truncated: npt.NDArray[np.bool_]
    failures: Mapping[int, RowFailure] = field(default_factory=dict)

    def only_finite(self) -> "Outcome":
        """Return the same with every row a failure that has a number that is NaN or infinite."""
        bad = np.zeros(len(self.num_tokens), np.bool_)
        for data in self.columns.values():
            bad |= rows_not_finite(data)
        failure = RowFailure("non_finite", "the model gave numbers that are not finite")
        found = dict.fromkeys(np.flatnonzero(bad).tolist(), failure)
        return replace(self, failures={**found, **self.failures}) if found else self


class Operation(Protocol):
    """One thing that a model does: texts in, result columns out.

    `tokenize` runs ahead in a thread of its own, so it may use the tokenizer only; `compute` may not use it.
    """

    @property
    def columns(self) -> Sequence[ResultColumn]:
        """The columns that every outcome has."""

    @property
    def metadata(self) -> Mapping[str, str]:
        """All that decides a result beside the texts."""

    @property
    def explodes(self) -> bool:
        """Whether columns are lists, all of a row equally long, whose values become rows of their own."""
        return False

    def tokenize(self, texts: Texts) -> Any:  # noqa: ANN401 - whatever `compute` of the same operation takes
        """Turn the texts of some rows into tokens."""

    def compute(self, tokens: Any, on_batch: OnBatch | None = None) -> Outcome:  # noqa: ANN401
        """Compute the results of the rows that `tokenize` was given.

        Args:
            tokens: what `tokenize` made of them.
            on_batch: told after each batch how many rows and tokens it had.

        Returns:
            One result a row, in the order of the rows.
        """
