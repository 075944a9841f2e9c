"""The results of a run by key: what was known at its beginning, and what it computes.

Two threads use a store: one looks up, in the order of the rows and ahead; the other adds and takes.
"""

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from poolembed.io.store.blocks import Block, FreshBlock
from poolembed.io.store.keys import NO_KEY, IntArray, KeyIndex, Keys, first_of_each

Failure = tuple[str, str]
"""Why a row has no result: a stable code, and the reason in words."""


@dataclass(frozen=True, slots=True)
class Lookup:
    """Where the results of some rows are, or will be.

    Attributes:
        keys: key of each row, `NO_KEY` where it has no text.
        places: place of each row's result in the store, shape (num_rows,), int64; -1 where it has no text.
        new: positions of the rows that must be computed, ascending, int64.
        num_known: rows whose results were known before the run.
    """

    keys: Keys
    places: IntArray
    new: IntArray
    num_known: int


class ResultStore:
    """Results by key.

    Args:
        schema: the columns of results.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self._index = KeyIndex()
        self._blocks: list[Block] = []
        self._starts: list[int] = []
        self._reserved = 0
        # By place: rows of the old output that have the result, until somebody asks for it.
        self._unused = np.zeros(0, np.int64)
        self._failures: dict[int, Failure] = {}

    def know(self, block: Block, keys: Keys, *, in_output: bool) -> None:
        """Add results that were known before the run.

        Args:
            block: the results.
            keys: key of each row, `NO_KEY` for those without a result.
            in_output: whether the rows stand in the output that the run replaces.
        """
        start = self._append(block)
        self._reserved = start + block.num_rows
        usable = np.flatnonzero(keys != NO_KEY)
        first = usable[first_of_each(keys[usable])]
        first = first[self._index.find(keys[first]) < 0]
        self._index.add(keys[first], start + first)
        unused = np.concatenate([self._unused, np.zeros(block.num_rows, np.int64)])
        if in_output:
            np.add.at(unused, self._index.find(keys[usable]), 1)
        self._unused = unused

    @property
    def num_unused(self) -> int:
        """Rows of the output that the run replaces whose text has not been looked up."""
        return int(self._unused.sum())

    def find(self, keys: Keys, absent: frozenset[int] = frozenset()) -> Lookup:
        """Find the results of rows; those that nobody has are reserved, so that they are computed once.

        Args:
            keys: key of each row.
            absent: positions of rows without a text.

        Returns:
            Where the result of each row is, or will be once the new ones are added.
        """
        if absent:
            keys = keys.copy()
            keys[list(absent)] = NO_KEY
        first = first_of_each(keys)
        unknown = first[(self._index.find(keys[first]) < 0) & (keys[first] != NO_KEY)]
        self._index.add(keys[unknown], self._reserved + np.arange(len(unknown)))
        self._reserved += len(unknown)
        places = self._index.find(keys)
        known = places[(places >= 0) & (places < len(self._unused))]
        self._unused[known] = 0
        return Lookup(keys, places, unknown, len(known))

    def add(self, lookup: Lookup, table: pa.Table, failures: Mapping[int, Failure]) -> FreshBlock:
        """Add what was computed for the new rows of a lookup; lookups come in their order.

        Args:
            lookup: what `find` returned.
            table: the results of its new rows, in their order.
            failures: the new rows without a result, by position among the new rows.

        Returns:
            The block, to be saved.
        """
        keys = lookup.keys[lookup.new]
        for row in failures:
            keys[row] = NO_KEY
        block = FreshBlock(keys, table)
        start = self._append(block)
        assert block.num_rows == 0 or start == lookup.places[lookup.new[0]], "lookups came in another order"
        self._failures.update({start + row: failure for row, failure in failures.items()})
        return block

    def failures(self, lookup: Lookup) -> dict[int, Failure]:
        """Return the rows whose text has no result, by position."""
        if not self._failures:
            return {}
        found = ((row, self._failures.get(place)) for row, place in enumerate(lookup.places.tolist()))
        return {row: failure for row, failure in found if failure is not None}

    def take(self, places: IntArray) -> pa.Table:
        """Return results.

        Args:
            places: place of each row, -1 for a row of nulls.
        """
        if not len(places):
            return self.schema.empty_table()
        distinct, row_of = np.unique(places, return_inverse=True)
        has_absent = distinct[0] < 0
        table = self._distinct(distinct[1:] if has_absent else distinct)
        if not has_absent and len(distinct) == len(places) and bool((np.diff(places) > 0).all()):
            return table
        rows = row_of.astype(np.int64) - int(has_absent)
        return table.combine_chunks().take(pa.array(rows, mask=rows < 0))

    def _distinct(self, places: IntArray) -> pa.Table:
        tables = []
        start = 0
        while start < len(places):
            number = bisect_right(self._starts, int(places[start])) - 1
            block, first = self._blocks[number], self._starts[number]
            stop = int(np.searchsorted(places, first + block.num_rows))
            tables.append(block.take(places[start:stop] - first))
            start = stop
        return pa.concat_tables(tables) if tables else self.schema.empty_table()

    def _append(self, block: Block) -> int:
        start = self._starts[-1] + self._blocks[-1].num_rows if self._blocks else 0
        self._blocks.append(block)
        self._starts.append(start)
        return start
