"""TREC runs, the text format of rankings: `QUERY Q0 DOCUMENT RANK SCORE TAG`, a line for each document."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa

from poolembed.errors import ConfigError, InputError
from poolembed.io.formats.writer import Format
from poolembed.results import ResultColumn

DEFAULT_TAG = "poolembed"
TAG_KEY = b"poolembed.run_tag"
"""Where the schema's metadata has the last field of every line."""

QUERY_COLUMNS = ("query_id", "qid", "query-id", "id", "_id")


class TrecRun:
    """A TREC run that is written table by table.

    Ranks count from 1. Scores have the digits that give back the same float32. Programs that sort by score
    alone (trec_eval) may order equal scores otherwise than the lines do.

    Args:
        handle: where it is written.
        schema: columns of the tables: the id of the query in one of `QUERY_COLUMNS`, and `ranking`.

    Raises:
        ConfigError: such a column is missing.
    """

    def __init__(self, handle: BinaryIO, schema: pa.Schema) -> None:
        self._handle = handle
        self._query_column = next((name for name in QUERY_COLUMNS if name in schema.names), None)
        if self._query_column is None or "ranking" not in schema.names:
            raise ConfigError(
                "a TREC run needs rankings, and the id of each query",
                f"`poolembed rerank` gives rankings; the id stands in {', '.join(QUERY_COLUMNS)}",
            )
        metadata: Mapping[bytes, bytes] = schema.metadata or {}
        self._tag = metadata.get(TAG_KEY, DEFAULT_TAG.encode()).decode()

    def write(self, table: pa.Table) -> None:
        """Add the rankings of some queries.

        Raises:
            InputError: an id is null, or is no single word.
        """
        queries, rankings = table.column(self._query_column), table.column("ranking")
        for query, ranking in zip(queries.to_pylist(), rankings.to_pylist(), strict=True):
            name = _word(query, "query")
            lines = [
                f"{name} Q0 {_word(one['id'], 'document')} {rank} {_digits(one['score'])} {self._tag}\n"
                for rank, one in enumerate(ranking, 1)
            ]
            self._handle.write("".join(lines).encode())

    def finish(self) -> None:
        """Do nothing: a run ends with its last line, and the handle stays open."""

    def abandon(self) -> None:
        """Do nothing: no line waits in memory."""


def _word(value: object, noun: str) -> str:
    text = "" if value is None else str(value)
    if text.split() != [text]:
        raise InputError(
            f"a TREC run cannot have the id {value!r} of a {noun}", "write Parquet, or use ids without spaces"
        )
    return text


def _digits(score: float) -> str:
    """Return the fewest digits that make the same float32."""
    return np.format_float_positional(np.float32(score), trim="0")


def _open(handles: Sequence[BinaryIO], schema: pa.Schema, results: Sequence[ResultColumn]) -> TrecRun:
    del results
    return TrecRun(handles[0], schema)


def _metadata(path: Path) -> Mapping[bytes, bytes]:
    raise ValueError("a TREC run has no metadata")


TREC = Format(name="trec", suffixes=(".trec", ".run"), open=_open, metadata=_metadata)
