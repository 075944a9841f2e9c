"""Names of rows: as text, and whether they stood before.

A name is compared as text, so `7` in one file and `"7"` in another are the same.
"""

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np
import pyarrow as pa

from poolembed.io.arrow_texts import is_text, texts_of
from poolembed.io.json_rows import json_text

HASH_BYTES = 16
"""What a row costs in memory while duplicates are looked for; merging takes as much again for a moment."""


def json_id(value: object) -> str | None:
    """Return the name in a JSON value: a string as it is, anything else as JSON text, None for null."""
    if value is None or type(value) is str:
        return value
    return str(value) if type(value) is int else json_text(value)


def column_ids(array: pa.Array) -> list[str | None]:
    """Return the names in a column of any type.

    Bytes that are not UTF-8 are escaped, so that names stay different.
    """
    if is_text(array.type):
        return texts_of(array, errors="backslashreplace")
    if _is_number(array.type):
        return list(array.cast(pa.string()).to_pylist())
    return [None if value is None else str(value) for value in array.to_pylist()]


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind))


class SeenIds:
    """The names of all rows so far, as 128-bit hashes in sorted runs.

    Two different names are taken for one with a probability of n**2 / 2**129 among n: below 1e-18 among
    ten billion. Runs double in length and are merged as they come, so that there are few to look into.
    """

    def __init__(self) -> None:
        self._runs: list[np.ndarray] = []

    @property
    def num_bytes(self) -> int:
        """Memory held, `HASH_BYTES` a name."""
        return sum(run.nbytes for run in self._runs)

    def add(self, names: Sequence[str | None]) -> list[int]:
        """Take more names; None is no name, and equal to nothing.

        Args:
            names: one a row.

        Returns:
            Positions of those that stood before: in an earlier call, or earlier in this one.
        """
        rows = np.array([row for row, name in enumerate(names) if name is not None], dtype=np.int64)
        if not len(rows):
            return []
        hashes = np.array([_hash(name) for name in names if name is not None], dtype=f"S{HASH_BYTES}")
        distinct, first = np.unique(hashes, return_index=True)
        is_new = np.ones(len(distinct), dtype=bool)
        for run in self._runs:
            at = np.minimum(np.searchsorted(run, distinct), len(run) - 1)
            is_new &= run[at] != distinct
        if is_new.any():
            self._keep(distinct[is_new])
        before = np.ones(len(hashes), dtype=bool)
        before[first[is_new]] = False
        return [int(row) for row in rows[before]]

    def _keep(self, run: np.ndarray) -> None:
        while self._runs and len(self._runs[-1]) < 2 * len(run):
            run = np.concatenate([self._runs.pop(), run])
            run.sort(kind="stable")
        self._runs.append(run)


def _hash(name: str) -> bytes:
    return blake2b(name.encode("utf-8", "surrogatepass"), digest_size=HASH_BYTES).digest()
