"""Queries, documents and candidates joined to rows: a query with its candidates, as one file would have them.

In memory are the ids of all pairs and the texts of those documents that a candidate names; queries pass by.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np
import pyarrow as pa

from poolembed.config import InputConfig
from poolembed.errors import ConfigError, InputError
from poolembed.io.candidates import CHUNK_BYTES, CHUNK_ROWS, Candidates, alone, read_candidates
from poolembed.io.chunk import Reject, RowChunk, TextRole, drop_rows
from poolembed.io.id_columns import IdKind, ids_in
from poolembed.io.pieces import Piece
from poolembed.io.plan import ReadPlan, refused
from poolembed.io.policy import RowPolicy
from poolembed.io.source import Source, open_source

QUERY_ID = "query_id"
"""The column of the output with the query's id, whatever it is called in the input."""

QUERY = TextRole("query", ("query", "text", "question"), only_string_column=False)
DOCUMENT = TextRole("documents", ("text", "document", "passage", "contents"), only_string_column=False)

_QUERY_IDS = ("query_id", "query-id", "qid")
_DOCUMENT_IDS = ("document_id", "document-id", "doc_id", "docid", "corpus-id", "corpus_id", "pid")
_OWN_IDS = ("id", "_id")
_LISTS = ("documents", "document_ids", "doc_ids", "docids", "candidates")


@dataclass(slots=True, kw_only=True)
class JoinReader:
    """The joined rows, in the order of the queries, as a reader of one file would give them.

    Attributes:
        label: the file of the queries.
        num_rows: queries that will be yielded, and rows that were refused.
        source: the queries, with the columns that are kept; the first is the id.
        wanted: the ids of the queries to yield.
        candidates: the documents of each query.
        texts: the text of each document, by its id.
        rejects: what was refused.
    """

    label: str
    num_rows: int
    source: Source
    wanted: frozenset[str]
    candidates: Candidates
    texts: Mapping[str, str]
    rejects: Sequence[Reject]

    def first_problem(self, plan: ReadPlan) -> Reject | None:
        """Return the first row that was refused; `plan` changes nothing."""
        del plan
        return self.rejects[0] if self.rejects else None

    def pieces(self, plan: ReadPlan) -> Iterator[Piece]:
        """Yield what was refused, and then the rows.

        Raises:
            InputError: the queries are no longer what they were.
        """
        if self.rejects:
            refused_rows = tuple(enumerate(self.rejects))
            weights = np.zeros(len(refused_rows), np.int64)
            nothing: dict[str, list[object]] = {role: [] for role in plan.fields}
            yield Piece(plan.schema.empty_table(), nothing, [], weights, refused_rows)
        left = set(self.wanted)
        for chunk in self.source.chunks(CHUNK_ROWS // 16, CHUNK_BYTES):
            if not left:
                return
            piece = self._piece(chunk, plan, left)
            if piece.num_rows:
                yield piece

    def _piece(self, chunk: RowChunk, plan: ReadPlan, left: set[str]) -> Piece:
        """Return the wanted rows of some queries, each when it comes for the first time."""
        rows, names = [], []
        for row, name in enumerate(ids_in(chunk.table, self.source.schema.names[0])):
            if name is not None and name in left:
                rows.append(row)
                names.append(name)
                left.remove(name)
        documents = [self._documents(name) for name in names]
        kept = drop_rows(chunk.table, sorted(set(range(chunk.num_rows)) - set(rows)))
        columns = [pa.array(names, pa.string()), *kept.columns[1:]]
        return Piece(
            table=pa.Table.from_arrays(columns, schema=plan.schema),
            texts={QUERY.name: [chunk.texts[QUERY.name][row] for row in rows], DOCUMENT.name: documents},
            places=[chunk.places[row] for row in rows],
            row_bytes=np.asarray([sum(len(text) for _, text in its_own) for its_own in documents], np.int64),
        )

    def _documents(self, query: str) -> list[tuple[str, str]]:
        named = dict.fromkeys(self.candidates.queries[query].documents)
        return [(name, self.texts[name]) for name in named if name in self.texts]


def open_join(config: InputConfig, stdin: BinaryIO | None = None) -> Source:
    """Read candidates and documents, and look through the queries.

    Args:
        config: the three inputs; `limit` counts queries that have candidates.
        stdin: what `-` stands for.

    Returns:
        The open input: a row for each query that a candidate names, in the order of the queries, with the
        texts `query` and `documents`. Its columns are `query_id` and those of the queries. Refused are
        candidates of unknown queries or documents, and all but the first of equal ids or pairs.

    Raises:
        InputError: something cannot be read, ids are not found, or a row is refused and `on_error` is `fail`.
        ConfigError: a column of the queries is called as the id is in the output.
    """
    query = IdKind("query", (*_QUERY_IDS, *_OWN_IDS), _QUERY_IDS, config.query_id_field)
    document = IdKind(
        "document", (*_DOCUMENT_IDS, *_OWN_IDS), (*_DOCUMENT_IDS, *_LISTS), config.document_id_field
    )
    with ExitStack() as opened:
        candidates = read_candidates(config, query, document)
        queries = opened.enter_context(open_source(alone(config, config.queries), (QUERY,), stdin))
        id_column = query.own_column(queries.schema, str(config.queries))
        kept = _kept(queries.schema, id_column, config.columns)
        rejects = list(candidates.rejects)
        known, repeated = _query_ids(queries.keeping((id_column,)), candidates)
        wanted = known[: config.limit]
        texts, unusable = _texts(config, document, candidates, wanted, stdin)
        rejects += [*repeated, *unusable, *_unknown(candidates, known, wanted, texts)]
        if rejects and config.on_error == "fail":
            raise refused(rejects[0])
        reader = JoinReader(
            label=str(config.queries),
            num_rows=len(wanted) + len(rejects),
            source=queries.keeping((id_column, *kept)),
            wanted=frozenset(wanted),
            candidates=candidates,
            texts=texts,
            rejects=rejects,
        )
        schema = pa.schema([(QUERY_ID, pa.string()), *(queries.schema.field(name) for name in kept)])
        fields = {QUERY.name: queries.fields[QUERY.name], DOCUMENT.name: DOCUMENT.name}
        plan = ReadPlan(schema, fields, frozenset({DOCUMENT.name}), policy=RowPolicy.of(config))
        return Source(
            [reader], plan, on_duplicate_id="keep", skipped=queries.skipped, opened=opened.pop_all()
        )


def _kept(schema: pa.Schema, id_column: str, columns: tuple[str, ...] | None) -> list[str]:
    """Return the columns that a row has beside its id."""
    names = list(schema.names) if columns is None else list(columns)
    for name in names:
        if name not in schema.names:
            raise InputError(
                f"no column of the queries is named {name!r}", f"columns: {', '.join(schema.names)}"
            )
    others = [name for name in names if name not in (id_column, QUERY_ID)]
    if QUERY_ID in names and id_column != QUERY_ID:
        raise ConfigError(
            f"the queries have a column {QUERY_ID!r} beside the id in {id_column!r}",
            f"leave it out with --columns {','.join(others) or id_column}",
        )
    return others


def _query_ids(queries: Source, candidates: Candidates) -> tuple[list[str], list[Reject]]:
    """Return the ids of the queries that have candidates, in order, and what is wrong with the rows."""
    known: dict[str, None] = {}
    rejects: list[Reject] = []
    column = queries.schema.names[0]
    for chunk in queries.chunks(CHUNK_ROWS, CHUNK_BYTES):
        rejects += chunk.rejects
        for name, (file, row) in zip(ids_in(chunk.table, column), chunk.places, strict=True):
            if name is None:
                rejects.append(Reject(file, row, "null_id", f"the id in {column!r} is null", ""))
            elif name in known:
                rejects.append(_repeated(file, row, "query", name))
            elif name in candidates.queries:
                known[name] = None
    return list(known), rejects


def _texts(
    config: InputConfig,
    document: IdKind,
    candidates: Candidates,
    wanted: Sequence[str],
    stdin: BinaryIO | None,
) -> tuple[dict[str, str], list[Reject]]:
    """Return the texts of the documents that the wanted queries need, and what is wrong with the rows."""
    needed = {name for query in wanted for name in candidates.queries[query].documents}
    texts: dict[str, str] = {}
    rejects: list[Reject] = []
    with open_source(alone(config, config.documents), (DOCUMENT,), stdin) as source:
        column = document.own_column(source.schema, str(config.documents))
        for chunk in source.keeping((column,)).chunks(CHUNK_ROWS, CHUNK_BYTES):
            rejects += chunk.rejects
            rows = zip(ids_in(chunk.table, column), chunk.texts[DOCUMENT.name], chunk.places, strict=True)
            for name, text, (file, row) in rows:
                if name is None:
                    rejects.append(Reject(file, row, "null_id", f"the id in {column!r} is null", ""))
                elif name in texts:
                    rejects.append(_repeated(file, row, "document", name))
                elif name in needed:
                    texts[candidates.known[name]] = text
    return texts, rejects


def _repeated(file: str, row: int, noun: str, name: str) -> Reject:
    return Reject(file, row, "repeated_id", f"the id {name!r} of a {noun} stands twice", name)


def _unknown(
    candidates: Candidates, known: Sequence[str], wanted: Sequence[str], texts: Mapping[str, str]
) -> Iterator[Reject]:
    """Yield the candidates that name nothing, or what was named before."""
    of_known, of_wanted = set(known), set(wanted)
    for name, query in candidates.queries.items():
        if name in of_known and name not in of_wanted:
            continue  # beyond the limit
        if name not in of_known and not query.documents:
            place = candidates.place(query.named)
            yield Reject(*place, "unknown_query", f"no query has the id {name!r}", name)
        seen: set[str] = set()
        for document, number in zip(query.documents, query.places, strict=True):
            place = candidates.place(number)
            if name not in of_wanted:
                yield Reject(*place, "unknown_query", f"no query has the id {name!r}", f"{name} {document}")
            elif document not in texts:
                yield Reject(
                    *place, "unknown_document", f"no document has the id {document!r}", f"{name} {document}"
                )
            elif document in seen:
                message = f"the document {document!r} was named for the query {name!r} before"
                yield Reject(*place, "repeated_candidate", message, f"{name} {document}")
            seen.add(document)
