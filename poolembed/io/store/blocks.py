"""Where results lie: in memory, in a file of the run, or in an earlier output."""

from collections import OrderedDict
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from poolembed.io.atomic import AtomicFile, translated
from poolembed.io.store.keys import KEY_BYTES, KEY_TYPE, IntArray, Keys

KEY_COLUMN = "key"
OPEN_GROUPS = 4
"""Row groups of an earlier output that are held in memory; one has about 64 MiB."""


class Block(Protocol):
    """Some results.

    Attributes:
        num_rows: how many.
    """

    num_rows: int

    def take(self, rows: IntArray) -> pa.Table:
        """Return some of them.

        Args:
            rows: ascending positions, each once; at least one.
        """


class FreshBlock:
    """Results that this run has computed: in memory until they are saved, in a file from then on.

    Args:
        keys: the key of each row; `NO_KEY` for those without a result.
        table: the results.
    """

    def __init__(self, keys: Keys, table: pa.Table) -> None:
        self.num_rows = len(keys)
        self._keys: Keys | None = keys
        self._table: pa.Table | None = table
        self._saved: SavedBlock | None = None

    def take(self, rows: IntArray) -> pa.Table:
        """Return some results, see `Block.take`."""
        # In this order: the thread that saves gives up the table last.
        table = self._table
        if table is not None:
            return take_rows(table, rows)
        assert self._saved is not None
        return self._saved.take(rows)

    def save(self, path: Path) -> None:
        """Write the results to a file, and hold them in memory no longer.

        Raises:
            OutputError: the disk is full or fails.
        """
        assert self._table is not None
        assert self._keys is not None
        _write_block(path, self._keys, self._table)
        self._saved = SavedBlock(path)
        self._table = self._keys = None


class SavedBlock:
    """Results in a file of this run, or of an interrupted one.

    Args:
        path: the file.

    Raises:
        OSError: it cannot be read.
        pyarrow.ArrowException: it is damaged.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.num_rows = self._read().num_rows

    @property
    def schema(self) -> pa.Schema:
        """The columns of results."""
        return self._read().drop_columns([KEY_COLUMN]).schema

    def keys(self) -> Keys:
        """Return the key of each row; `NO_KEY` for rows without a result."""
        (column,) = self._read()[KEY_COLUMN].chunks
        return np.frombuffer(column.buffers()[1], KEY_TYPE, self.num_rows).copy()

    def take(self, rows: IntArray) -> pa.Table:
        """Return some results, see `Block.take`."""
        return take_rows(self._read().drop_columns([KEY_COLUMN]), rows)

    def _read(self) -> pa.Table:
        # Mapped, not read: only what is taken comes into memory, and nothing stays open between calls.
        with pa.memory_map(str(self._path)) as mapped:
            return pa.ipc.open_file(mapped).read_all()


def _write_block(path: Path, keys: Keys, table: pa.Table) -> None:
    column = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(KEY_BYTES), len(keys), [None, pa.py_buffer(keys.tobytes())]
    )
    keyed = table.combine_chunks().append_column(KEY_COLUMN, column)
    file = AtomicFile(path, may_replace=True)
    try:
        with translated(path), pa.ipc.new_file(file.handle, keyed.schema) as writer:
            writer.write_table(keyed)
        file.finish()
        file.place()
    finally:
        file.discard()


class GroupCache:
    """The row groups of earlier outputs that were asked for last.

    Args:
        schema: the columns of results.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._groups: OrderedDict[tuple[Path, int], pa.Table] = OrderedDict()

    def get(self, path: Path, group: int) -> pa.Table:
        """Return the results in row group number `group` of the file at `path`."""
        key = path, group
        if key not in self._groups:
            with pq.ParquetFile(path) as file:
                found = file.read_row_group(group, self._schema.names).select(self._schema.names)
            # In an output results may be nullable; those of rows without a text are not asked for.
            self._groups[key] = pa.Table.from_arrays(found.columns, schema=self._schema)
        self._groups.move_to_end(key)
        while len(self._groups) > OPEN_GROUPS:
            self._groups.popitem(last=False)
        return self._groups[key]


class EarlierOutput:
    """The results in an earlier output.

    Args:
        path: a Parquet file.
        cache: reads its row groups.

    Raises:
        OSError: it cannot be read.
        pyarrow.ArrowException: it is damaged.
    """

    def __init__(self, path: Path, cache: GroupCache) -> None:
        metadata = pq.read_metadata(path)
        sizes = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
        self.num_rows = metadata.num_rows
        self._ends = np.cumsum(sizes, dtype=np.int64)
        self._path = path
        self._cache = cache

    def take(self, rows: IntArray) -> pa.Table:
        """Return some results, see `Block.take`."""
        tables = []
        group_of = np.searchsorted(self._ends, rows, side="right")
        for group in np.unique(group_of).tolist():
            start = int(self._ends[group - 1]) if group else 0
            tables.append(take_rows(self._cache.get(self._path, group), rows[group_of == group] - start))
        return pa.concat_tables(tables)


def take_rows(table: pa.Table, rows: IntArray) -> pa.Table:
    """Return some rows of a table, sharing its memory where they are neighbours.

    Args:
        table: results.
        rows: ascending positions, each once; at least one.
    """
    first, last = int(rows[0]), int(rows[-1])
    if last - first + 1 == len(rows):
        return table.slice(first, len(rows))
    return table.take(pa.array(rows))
