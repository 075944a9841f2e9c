"""JSON Lines, gzipped or not: a row is an object with every column, in order."""

import gzip
import json
from collections.abc import Sequence
from contextlib import suppress
from typing import BinaryIO

import numpy as np
import pyarrow as pa

from poolembed.errors import ConfigError
from poolembed.io.formats.json_text import joined, json_texts, text
from poolembed.io.formats.meta import read_meta, write_meta
from poolembed.io.formats.writer import META_SUFFIX, Format
from poolembed.results import ResultColumn

# What is turned into text at once; the text of a vector takes about three times its bytes.
SLICE_BYTES = 4 * 2**20


class JsonLines:
    """A file of JSON Lines.

    Args:
        handle: where the lines go.
        meta: where the metadata goes.
        schema: the columns.
        inner: what stands between the lines and `handle`, and is closed before `meta` is written.

    Raises:
        ConfigError: a column has no form in JSON.
    """

    def __init__(
        self, handle: BinaryIO, meta: BinaryIO, schema: pa.Schema, inner: gzip.GzipFile | None = None
    ) -> None:
        _check(schema)
        self._lines = handle if inner is None else inner
        self._inner = inner
        self._meta = meta
        self._schema = schema
        self._keys = [json.dumps(name, ensure_ascii=False) + ":" for name in schema.names]
        self._num_rows = 0

    def write(self, table: pa.Table) -> None:
        """Add rows; a few megabytes of them are turned into text at a time."""
        rows_at_once = max(1, SLICE_BYTES * table.num_rows // max(1, table.nbytes))
        for start in range(0, table.num_rows, rows_at_once):
            self._lines.write(self._text(table.slice(start, rows_at_once)))
        self._num_rows += table.num_rows

    def _text(self, table: pa.Table) -> memoryview:
        parts: list[pa.Array | pa.Scalar] = []
        for index, (key, column) in enumerate(zip(self._keys, table.columns, strict=True)):
            values = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
            parts += [text(("," if index else "{") + key), json_texts(values)]
        lines = joined(*parts, text("}\n"))
        _, offsets, content = lines.buffers()
        end = int(np.frombuffer(offsets, np.int64)[len(lines)])
        return memoryview(content)[:end]

    def finish(self) -> None:
        """Write what stands beside the lines; the handles stay open."""
        if self._inner is not None:
            self._inner.close()
        write_meta(self._meta, self._schema, self._num_rows)

    def abandon(self) -> None:
        """Give up the file, whatever state it is in."""
        if self._inner is not None:
            with suppress(OSError, ValueError):  # the handle may be closed already
                self._inner.close()


def _check(schema: pa.Schema) -> None:
    problems = []
    for field, column in zip(schema, schema.empty_table().columns, strict=True):
        try:
            json_texts(column.combine_chunks())
        except (TypeError, pa.ArrowException):
            problems.append(f"{field.name} ({field.type})")
    if problems:
        raise ConfigError(
            f"columns without a form in JSON Lines: {', '.join(problems)}",
            "leave them out with --columns, or write Parquet",
        )


def _open(handles: Sequence[BinaryIO], schema: pa.Schema, results: Sequence[ResultColumn]) -> JsonLines:
    del results
    lines, meta = handles
    return JsonLines(lines, meta, schema)


def _open_gz(handles: Sequence[BinaryIO], schema: pa.Schema, results: Sequence[ResultColumn]) -> JsonLines:
    del results
    lines, meta = handles
    # Without a name and a time, so that the same rows are the same bytes.
    inner = gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=lines, mtime=0)
    return JsonLines(lines, meta, schema, inner)


JSONL = Format(
    name="jsonl", suffixes=(".jsonl", ".ndjson"), open=_open, metadata=read_meta, beside=(META_SUFFIX,)
)
JSONL_GZ = Format(
    name="jsonl.gz",
    suffixes=(".jsonl.gz", ".ndjson.gz"),
    open=_open_gz,
    metadata=read_meta,
    beside=(META_SUFFIX,),
)
