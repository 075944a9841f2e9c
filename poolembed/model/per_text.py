"""Texts of which each may ask for something else: one operation for those that ask for the same."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from poolembed.errors import ConfigError, InputError
from poolembed.model.calls import CHUNK_TEXTS, chunks_of
from poolembed.model.operation import Operation, Outcome
from poolembed.runner import PoolingParams

R = TypeVar("R")

Given = PoolingParams | Sequence[PoolingParams] | None
"""What is asked of the pooler: the same for all texts, or a record for each."""

Make = Callable[[PoolingParams | None], Operation]


class PerText:
    """The operation of each text.

    Args:
        make: makes an operation of what is asked of the pooler, and refuses what the model cannot do.
        given: what is asked.

    Raises:
        ConfigError: the model cannot do one of them.
    """

    def __init__(self, make: Make, given: Given) -> None:
        self._number_of: list[int] | None = None
        if not isinstance(given, Sequence):
            self._operations = [make(given)]
            return
        distinct: list[PoolingParams] = []
        self._number_of = []
        for params in given:
            if params not in distinct:
                distinct.append(params)
            self._number_of.append(distinct.index(params))
        self._operations = [make(params) for params in distinct]

    def groups(self, first: int, num_texts: int) -> Iterator[tuple[Operation, list[int]]]:
        """Yield each operation that some consecutive texts need, with their places among them.

        Args:
            first: number of the first of them, counted over the whole call.
            num_texts: how many they are.

        Raises:
            ConfigError: fewer records were given.
        """
        if self._number_of is None:
            yield self._operations[0], list(range(num_texts))
            return
        if first + num_texts > len(self._number_of):
            raise _miscounted(len(self._number_of), f"at least {first + num_texts}")
        own = self._number_of[first : first + num_texts]
        for number in sorted(set(own)):
            places = [place for place, operation in enumerate(own) if operation == number]
            yield self._operations[number], places

    def check_count(self, num_texts: int) -> None:
        """See that every record belonged to a text.

        Args:
            num_texts: texts of the whole call.

        Raises:
            ConfigError: more records were given.
        """
        if self._number_of is not None and len(self._number_of) != num_texts:
            raise _miscounted(len(self._number_of), str(num_texts))


def _miscounted(num_params: int, num_texts: str) -> ConfigError:
    return ConfigError(
        f"pooling_params has {num_params} records for {num_texts} texts", "give one for all, or one for each"
    )


def results_of(
    make: Make,
    read: Callable[[Outcome], Iterable[R]],
    texts: Iterable[str],
    given: Given,
    max_texts: int = CHUNK_TEXTS,
) -> list[R]:
    """Return the result of each text, in order.

    Args:
        make: makes an operation on the role `text`.
        read: gives the results of an outcome, one a text.
        texts: any iterable of strings.
        given: what is asked of the pooler.
        max_texts: most texts of a chunk.

    Raises:
        ConfigError: the model cannot do what is asked, or there are not as many records as texts.
        InputError: a text is no string, or has no result; its number is named.
    """
    operations = PerText(make, given)
    results: list[R] = []
    for first, chunk in chunks_of(texts, max_texts):
        found: dict[int, R] = {}
        for operation, places in operations.groups(first, len(chunk)):
            outcome = operation.compute(operation.tokenize({"text": [chunk[place] for place in places]}))
            if outcome.failures:
                row = min(outcome.failures)
                raise InputError(f"text {first + places[row]}: {outcome.failures[row].message}")
            found.update(zip(places, read(outcome), strict=True))
        results += [found[place] for place in range(len(chunk))]
    operations.check_count(len(results))
    return results
