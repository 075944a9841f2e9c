"""Small records and natural shapes, made of the columns of an outcome for Python callers."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from poolembed.model.operation import Outcome
from poolembed.results import ColumnData, Ragged


@dataclass(frozen=True, slots=True, kw_only=True)
class Classification:
    """The class of one text.

    Attributes:
        label: name of the best class.
        score: its probability (without activation: its logit).
        probs: probabilities of all classes in the order of the model's labels, shape (num_labels,),
            float32 (without activation: logits).
        labels: for models of several labels, every class from the threshold up; None for others.
    """

    label: str
    score: float
    probs: npt.NDArray[np.float32]
    labels: tuple[str, ...] | None = None


def classifications(outcome: Outcome) -> Iterator[Classification]:
    """Yield the class of each row of an outcome of `Classify` that gives all probabilities."""
    columns: Mapping[str, Any] = outcome.columns
    probs = columns["probs"] if "probs" in columns else columns["logits"]
    chosen = (
        [tuple(part) for part in _slices(columns["labels"])] if "labels" in columns else [None] * len(probs)
    )
    for label, score, row, labels in zip(columns["label"], columns["score"], probs, chosen, strict=True):
        yield Classification(label=label, score=float(score), probs=row, labels=labels)


def weights_by_token(outcome: Outcome) -> Iterator[dict[str, float]]:
    """Yield the weights of each row of an outcome of `Sparse`, heaviest first."""
    data = outcome.columns["sparse"]
    assert isinstance(data, Ragged)
    assert isinstance(data.values, Mapping)
    weights: Any = data.values["weight"]
    for token_part, weight_part in zip(
        _slices(Ragged(data.lengths, data.values["token"])),
        _slices(Ragged(data.lengths, weights)),
        strict=True,
    ):
        yield dict(zip(token_part, weight_part.tolist(), strict=True))


def column_of(name: str) -> Callable[[Outcome], Iterator[npt.NDArray[np.float32]]]:
    """Return a function that yields what each row of an outcome has in a column.

    Args:
        name: the column; a row of it is a number, a vector, or a list of either as an array.
    """

    def read(outcome: Outcome) -> Iterator[npt.NDArray[np.float32]]:
        data: Any = outcome.columns[name]
        yield from (_slices(data) if isinstance(data, Ragged) else data)

    return read


def _slices(data: ColumnData) -> Iterator[Any]:
    """Yield the part of the values that belongs to each row."""
    assert isinstance(data, Ragged)
    assert not isinstance(data.values, Mapping)
    for start, end in pairwise([0, *np.cumsum(data.lengths).tolist()]):
        yield data.values[start:end]
