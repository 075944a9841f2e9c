"""From the class probabilities of tokens to entities, by the strategies that transformers' pipeline has."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from poolembed.config import Aggregation

OUTSIDE = "O"
"""The label of tokens that belong to no entity."""

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Units:
    """Tokens, words or entities of some texts, in order.

    Attributes:
        text_of: number of the text each stands in, shape (num_units,), int64.
        starts: first character of each, shape (num_units,), int64.
        ends: the character after its last, shape (num_units,), int64.
        scores: probability of every class, shape (num_units, num_labels), or of the chosen one,
            shape (num_units,); float32.
    """

    text_of: IntArray
    starts: IntArray
    ends: IntArray
    scores: npt.NDArray[np.float32]

    def __len__(self) -> int:
        """Number of units."""
        return len(self.text_of)

    def where(self, wanted: npt.NDArray[np.bool_]) -> "Units":
        """Return some of them."""
        return Units(self.text_of[wanted], self.starts[wanted], self.ends[wanted], self.scores[wanted])

    def merged(self, first: IntArray, scores: npt.NDArray[np.float32]) -> "Units":
        """Return runs of neighbours as one unit each.

        Args:
            first: number of the first unit of each run, ascending from 0.
            scores: what the runs score.
        """
        last = np.append(first[1:], len(self)) - 1
        return Units(self.text_of[first], self.starts[first], self.ends[last], scores)


def find_entities(
    tokens: Units, continues: npt.NDArray[np.bool_], labels: Sequence[str], aggregation: Aggregation
) -> tuple[Units, list[str]]:
    """Return the entities of some texts and the label of each.

    Args:
        tokens: the tokens with the probability of every class.
        continues: whether a token goes on with the word of the token before, shape (num_tokens,).
        labels: name of each class; `B-` begins an entity, `I-` or nothing goes on with it.
        aggregation: `none`: every token is an entity. `simple`: neighbours of one label are one.
            `first`, `average`, `max`: the same over words, which take the class of their first token, of
            the mean of their tokens, or of their surest token.

    Source:
        transformers 5.24 `TokenClassificationPipeline.aggregate`.
    """
    if not len(tokens):
        return replace(tokens, scores=tokens.scores.max(axis=1, initial=0)), []
    units = tokens if aggregation in ("none", "simple") else _words(tokens, continues, aggregation)
    classes = units.scores.argmax(axis=1)
    chosen = replace(units, scores=units.scores[np.arange(len(units)), classes])
    if aggregation == "none":
        names = [labels[index] for index in classes.tolist()]
    else:
        chosen, names = _runs(chosen, classes, labels)
    inside = np.asarray([name != OUTSIDE for name in names], np.bool_)
    return chosen.where(inside), [name for name in names if name != OUTSIDE]


def _words(tokens: Units, continues: npt.NDArray[np.bool_], aggregation: Aggregation) -> Units:
    first = np.flatnonzero(~continues | _is_other_text(tokens))
    if aggregation == "first":
        return tokens.merged(first, tokens.scores[first])
    if aggregation == "average":
        return tokens.merged(first, _means(tokens.scores, first))
    # The surest token of each word, the first of them where several are equally sure.
    word_of = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(tokens))))
    order = np.lexsort((-tokens.scores.max(axis=1), word_of))
    return tokens.merged(first, tokens.scores[order[first]])


def _runs(units: Units, classes: IntArray, labels: Sequence[str]) -> tuple[Units, list[str]]:
    """Join neighbours of one label, where the later does not begin an entity of its own."""
    tags = [label[2:] if label.startswith(("B-", "I-")) else label for label in labels]
    numbers = {tag: number for number, tag in enumerate(dict.fromkeys(tags))}
    tag_of = np.asarray([numbers[tag] for tag in tags], np.int64)[classes]
    begins = np.asarray([label.startswith("B-") for label in labels], np.bool_)[classes]
    is_new = begins | _is_other_text(units) | np.append(True, tag_of[1:] != tag_of[:-1])
    first = np.flatnonzero(is_new)
    names = [labels[index].split("-", 1)[-1] for index in classes[first].tolist()]
    return units.merged(first, _means(units.scores, first)), names


def _is_other_text(units: Units) -> npt.NDArray[np.bool_]:
    return np.append(np.True_, units.text_of[1:] != units.text_of[:-1])


def _means(scores: npt.NDArray[np.float32], first: IntArray) -> npt.NDArray[np.float32]:
    """Return the mean over runs of rows, summed in float64."""
    counts = np.diff(np.append(first, len(scores)))
    sums = np.add.reduceat(scores.astype(np.float64), first, axis=0)
    return (sums / counts.reshape(-1, *[1] * (scores.ndim - 1))).astype(np.float32)
