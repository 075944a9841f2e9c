"""Keys of texts, and an index from keys to the places of their results."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

KEY_BYTES = 16
KEY_TYPE = np.dtype(f"S{KEY_BYTES}")

NO_KEY = b""
"""Stands for a row without a text: sixteen zeros, which numpy shows as nothing; no known text has it."""

Keys = npt.NDArray[np.bytes_]
"""One key a row, shape (num_rows,), `KEY_TYPE`."""

IntArray = npt.NDArray[np.int64]


def text_keys(texts: Mapping[str, Sequence[Any]]) -> Keys:
    """Return what tells rows of other texts apart: 128 bits of BLAKE2b.

    Args:
        texts: by role a string a row, or a list of strings and lists; all of one length.
    """
    return np.array(
        [
            hashlib.blake2b(b"".join(_encoded(row)), digest_size=KEY_BYTES).digest()
            for row in zip(*texts.values(), strict=True)
        ],
        KEY_TYPE,
    )


def _encoded(value: Any) -> Iterator[bytes]:  # noqa: ANN401 - strings in sequences in sequences
    """Yield bytes that no other value yields: each string and sequence stands behind its length."""
    if isinstance(value, str):
        data = value.encode("utf-8", "surrogatepass")
        yield b"s%d:" % len(data)
        yield data
        return
    yield b"l%d:" % len(value)
    for item in value:
        yield from _encoded(item)


MAX_RUN = 2**19
"""Keys of a sorted array that is not merged any more, so that merging needs little memory at a time."""


class KeyIndex:
    """Where the results of keys are: 24 bytes of memory a key.

    Sorted arrays of doubling sizes up to `MAX_RUN`, each of which is searched.
    """

    def __init__(self) -> None:
        self._runs: list[tuple[Keys, IntArray]] = []

    def add(self, keys: Keys, places: IntArray) -> None:
        """Add keys that are not in the index.

        Args:
            keys: the keys, each once.
            places: the place of each, not negative.
        """
        if not len(keys):
            return
        order = np.argsort(keys, kind="stable")
        keys, places = keys[order], places[order]
        while self._runs and len(self._runs[-1][0]) <= min(MAX_RUN, 2 * len(keys)):
            # Inserted, not sorted again, which would hold everything three times.
            known, known_places = self._runs.pop()
            at = np.searchsorted(known, keys)
            keys, places = np.insert(known, at, keys), np.insert(known_places, at, places)
        self._runs.append((keys, places))

    def find(self, keys: Keys) -> IntArray:
        """Return the place of each key, -1 for those that are not there."""
        found = np.full(len(keys), -1, np.int64)
        for known, places in self._runs:
            at = np.searchsorted(known, keys)
            at[at == len(known)] = 0
            hit = known[at] == keys
            found[hit] = places[at[hit]]
        return found


def first_of_each(keys: Keys) -> IntArray:
    """Return the positions of the first row of each key, ascending."""
    _, first = np.unique(keys, return_index=True)
    return np.sort(first).astype(np.int64)
