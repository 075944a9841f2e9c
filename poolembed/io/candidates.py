"""Candidates: which documents may fit which query, from tables of ids or lines of text."""

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import pyarrow as pa

from poolembed.config import InputConfig
from poolembed.errors import InputError
from poolembed.io.chunk import Reject
from poolembed.io.id_columns import IdKind, check_ids, ids_in, is_list
from poolembed.io.pair_lines import CandidateRow, is_lines, pair_lines
from poolembed.io.source import open_source

CHUNK_ROWS = 8192
CHUNK_BYTES = 16 * 2**20
_ROW_BITS = 44


@dataclass(slots=True)
class OneQuery:
    """The candidates of one query.

    Attributes:
        named: where the query is named first, as `Candidates.place` reads it.
        documents: their ids, in order.
        places: where each of them stands, as `Candidates.place` reads it.
    """

    named: int
    documents: list[str] = field(default_factory=list)
    places: "array[int]" = field(default_factory=lambda: array("q"))


@dataclass(slots=True)
class Candidates:
    """All pairs of ids, by query.

    A pair takes some 16 bytes, an id some 60 once, whatever the number of its pairs.

    Attributes:
        queries: the candidates of each query, by its id.
        rejects: rows that hold no pair.
        known: each id of a document by itself, so that equal ones are one string.
        files: names of the files.
    """

    queries: dict[str, OneQuery] = field(default_factory=dict)
    rejects: list[Reject] = field(default_factory=list)
    known: dict[str, str] = field(default_factory=dict)
    files: list[str] = field(default_factory=list)

    def add(self, row: CandidateRow | Reject) -> None:
        """Take one more row; one without documents still names its query."""
        if isinstance(row, Reject):
            self.rejects.append(row)
            return
        if not self.files or self.files[-1] != row.file:
            self.files.append(row.file)
        place = ((len(self.files) - 1) << _ROW_BITS) | row.row
        query = self.queries.setdefault(row.query, OneQuery(place))
        for document in row.documents:
            query.documents.append(self.known.setdefault(document, document))
            query.places.append(place)

    def place(self, number: int) -> tuple[str, int]:
        """Return the file and the row that a number of `OneQuery.places` stands for."""
        return self.files[number >> _ROW_BITS], number & ((1 << _ROW_BITS) - 1)


def read_candidates(config: InputConfig, query: IdKind, document: IdKind) -> Candidates:
    """Read all candidates.

    Args:
        config: names the file.
        query: the ids of queries.
        document: the ids of documents.

    Returns:
        The pairs, and the rows that hold none.

    Raises:
        InputError: the file cannot be read, or has no columns of ids.
    """
    assert config.candidates is not None
    candidates = Candidates()
    rows = (
        pair_lines(config.candidates, frozenset((*query.foreign_names, *query.own_names)))
        if is_lines(config.candidates)
        else _table_rows(config, query, document)
    )
    for row in rows:
        candidates.add(row)
    return candidates


def _table_rows(config: InputConfig, query: IdKind, document: IdKind) -> Iterator[CandidateRow | Reject]:
    with open_source(alone(config, config.candidates), ()) as source:
        columns = _columns(source.schema, str(config.candidates), query, document)
        for chunk in source.keeping(columns).chunks(CHUNK_ROWS, CHUNK_BYTES):
            yield from chunk.rejects
            queries, documents = ids_in(chunk.table, columns[0]), chunk.table.column(columns[1]).to_pylist()
            for one, its_own, (file, row) in zip(queries, documents, chunk.places, strict=True):
                found = its_own if isinstance(its_own, list) else [its_own]
                if one is None or None in found:
                    yield Reject(file, row, "null_id", "an id is null", "")
                else:
                    yield CandidateRow(one, tuple(map(str, found)), file, row)


def _columns(schema: pa.Schema, label: str, query: IdKind, document: IdKind) -> tuple[str, str]:
    """Return the columns of both ids: those of known names, or else the only two there are."""
    found = query.foreign_column(schema), document.foreign_column(schema)
    if None in found and len(schema.names) == 2 and found == (None, None):
        found = schema.names[0], schema.names[1]
    for kind, name in zip((query, document), found, strict=True):
        if name is None:
            raise kind.missing(kind.foreign_names, schema, label)
        check_ids(schema.field(name), label, may_be_list=kind is document)
    first, second = found
    assert first is not None
    assert second is not None
    if is_list(schema.field(first).type):
        raise InputError(f"{label}: the column {first!r} holds lists, not the id of one query")
    return first, second


def alone(config: InputConfig, path: str | None) -> InputConfig:
    """Return how one of the inputs of a join is read: by itself, with all its rows and columns.

    Args:
        config: the join.
        path: the input.
    """
    return replace(
        config,
        paths=() if path is None else (path,),
        queries=None,
        documents=None,
        candidates=None,
        columns=None,
        limit=None,
    )
