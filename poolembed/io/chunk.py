"""What the room hands out: chunks of rows, the texts in them, and the rows that were refused."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

EXCERPT_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class TextRole:
    """A text that every row must bring, and where to look for it.

    Attributes:
        name: key of the role in `Source.fields` and `RowChunk.texts`.
        candidates: column names tried in this order when the user names none; those of several roles
            stand side by side, and are taken together or not at all.
        only_string_column: where no candidate exists, take the only string column of the input.
        is_list: a row brings a list of texts (`documents`), not one.
        is_column: the role is called as its column, which the user has named already.
    """

    name: str
    candidates: tuple[str, ...]
    only_string_column: bool = True
    is_list: bool = False
    is_column: bool = False

    @property
    def option(self) -> str:
        """The option that names its column."""
        return "--template" if self.is_column else f"--{self.name}-field"


@dataclass(frozen=True, slots=True)
class Reject:
    """A row that was refused, and why.

    Attributes:
        file: the input file as the user may find it; `<stdin>` for standard input.
        row: 1-based number of its (first) line in files of text, of the row in Parquet and Arrow.
        code: stable name of the reason, for programs.
        message: the reason in words, for people.
        excerpt: the beginning of the row or text, at most `EXCERPT_CHARACTERS` characters.
        id: the row's own name as text; None where it has none, or none that can be read.
    """

    file: str
    row: int
    code: str
    message: str
    excerpt: str
    id: str | None = None


@dataclass(frozen=True, slots=True)
class RowChunk:
    """Consecutive rows of the input, in its order.

    Attributes:
        index: 0-based position of the chunk in the input.
        table: the kept columns of the good rows.
        texts: role name -> one text a good row, so `len(texts[role]) == table.num_rows`; for a role of
            lists, one list of (id, text) a good row.
        rejects: the rows that stood between them and are not in `table`.
        num_replaced: rows in which lone surrogates or bytes that are not UTF-8 were replaced by U+FFFD.
        places: file and row number of every good row, numbered as in `Reject`.
        ids: the id of every good row as text, None where it is null; None where no input has ids.
        absent: positions of good rows that have no text to compute, and whose results are null; their
            texts are empty.
    """

    index: int
    table: pa.Table
    texts: dict[str, list[Any]]
    rejects: tuple[Reject, ...] = ()
    num_replaced: int = 0
    places: tuple[tuple[str, int], ...] = ()
    ids: tuple[str | None, ...] | None = None
    absent: frozenset[int] = frozenset()

    @property
    def num_rows(self) -> int:
        """Good rows in this chunk."""
        return int(self.table.num_rows)

    def without(self, problems: Mapping[int, tuple[str, str]]) -> "RowChunk":
        """Return this chunk without some of its rows, which become rejects.

        Args:
            problems: position in the chunk -> (code, message).
        """
        if not problems:
            return self
        keep = [row for row in range(self.num_rows) if row not in problems]
        ids = self.ids
        refused = tuple(
            Reject(*self.places[row], *problems[row], excerpt_of(self.texts, row), ids[row] if ids else None)
            for row in sorted(problems)
        )
        return replace(
            self,
            table=drop_rows(self.table, sorted(problems)),
            texts={role: [texts[row] for row in keep] for role, texts in self.texts.items()},
            rejects=self.rejects + refused,
            places=tuple(self.places[row] for row in keep),
            ids=None if ids is None else tuple(ids[row] for row in keep),
            absent=frozenset(new for new, row in enumerate(keep) if row in self.absent),
        )


def excerpt_of(texts: Mapping[str, Sequence[Any]], row: int) -> str:
    """Return the beginning of a row's first text; nothing for a list of texts.

    Args:
        texts: role name -> one text a row.
        row: which row.
    """
    first = next(iter(texts.values()), ())[row:]
    return first[0][:EXCERPT_CHARACTERS] if first and isinstance(first[0], str) else ""


def drop_rows(table: pa.Table, rows: Sequence[int]) -> pa.Table:
    """Return a table without some rows, sharing its memory.

    Slices are used because pyarrow cannot filter every type (string_view).

    Args:
        table: any columns.
        rows: positions to leave out, ascending.
    """
    starts = [0, *(row + 1 for row in rows)]
    stops = [*rows, table.num_rows]
    kept = [
        table.slice(start, stop - start) for start, stop in zip(starts, stops, strict=True) if start < stop
    ]
    return pa.concat_tables(kept) if kept else table.slice(0, 0)
