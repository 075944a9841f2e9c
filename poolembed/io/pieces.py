"""Pieces, the runs of rows that a file reader yields, and how they are gathered into chunks.

Where a chunk ends depends only on the rows and the two limits, never on how a reader cut its pieces.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa

from poolembed.io.chunk import Reject, RowChunk, drop_rows, excerpt_of


@dataclass(frozen=True, slots=True)
class Piece:
    """Some consecutive rows of one file; positions count good and refused rows alike.

    Attributes:
        table: the kept columns of the good rows.
        texts: role name -> one text a good row, or one list of (id, text).
        places: file and row number of every good row.
        row_bytes: what each row weighs, shape (num_rows,), int64.
        rejects: the refused rows by position, in order.
        replaced: positions of the rows in which characters were replaced.
        ids: the id of every good row as text; None where the file has none.
        absent: which good rows have no text to compute, counting good rows alone, ascending.
    """

    table: pa.Table
    texts: dict[str, list[Any]]
    places: Sequence[tuple[str, int]]
    row_bytes: np.ndarray
    rejects: tuple[tuple[int, Reject], ...] = ()
    replaced: tuple[int, ...] = ()
    ids: Sequence[str | None] | None = None
    absent: tuple[int, ...] = ()

    @property
    def num_rows(self) -> int:
        """Rows of this piece, refused ones included."""
        return len(self.row_bytes)

    def slice(self, start: int, stop: int) -> "Piece":
        """Return the rows from position `start` up to `stop`, without copying columns."""
        refused = [position for position, _ in self.rejects]
        before, until = bisect_left(refused, start), bisect_left(refused, stop)
        good = slice(start - before, stop - until)
        return Piece(
            table=self.table.slice(good.start, good.stop - good.start),
            texts={role: texts[good] for role, texts in self.texts.items()},
            places=self.places[good],
            row_bytes=self.row_bytes[start:stop],
            rejects=tuple((position - start, reject) for position, reject in self.rejects[before:until]),
            replaced=tuple(position - start for position in self.replaced if start <= position < stop),
            ids=None if self.ids is None else self.ids[good],
            absent=tuple(row - good.start for row in self.absent if good.start <= row < good.stop),
        )

    def without(self, problems: Mapping[int, tuple[str, str]]) -> "Piece":
        """Return this piece with some of its good rows refused.

        Args:
            problems: which good row, counting good rows alone -> (code, message).
        """
        if not problems:
            return self
        refused = {position for position, _ in self.rejects}
        positions = [position for position in range(self.num_rows) if position not in refused]
        keep = [row for row in range(len(positions)) if row not in problems]
        ids = self.ids
        rejects = [
            (
                positions[row],
                Reject(
                    *self.places[row],
                    *problems[row],
                    excerpt_of(self.texts, row),
                    None if ids is None else ids[row],
                ),
            )
            for row in problems
        ]
        gone = {positions[row] for row in problems}
        return replace(
            self,
            table=drop_rows(self.table, sorted(problems)),
            texts={role: [texts[row] for row in keep] for role, texts in self.texts.items()},
            places=[self.places[row] for row in keep],
            rejects=tuple(sorted([*self.rejects, *rejects], key=itemgetter(0))),
            replaced=tuple(position for position in self.replaced if position not in gone),
            ids=None if ids is None else [ids[row] for row in keep],
            absent=tuple(new for new, row in enumerate(keep) if row in set(self.absent)),
        )


def gather(pieces: Iterator[Piece], max_rows: int, max_bytes: int) -> Iterator[RowChunk]:
    """Yield the rows of all pieces as chunks, in order, each as full as the limits allow.

    Args:
        pieces: the rows; an empty piece adds nothing.
        max_rows: most rows of a chunk, refused ones included.
        max_bytes: most bytes of a chunk; a larger row is a chunk of its own.
    """
    index, num_rows, num_bytes = 0, 0, 0
    pending: list[Piece] = []
    for piece in pieces:
        start = 0
        ends = np.cumsum(piece.row_bytes)
        while start < piece.num_rows:
            done = int(ends[start - 1]) if start else 0
            fitting = int(np.searchsorted(ends, done + max_bytes - num_bytes, side="right"))
            stop = min(fitting, start + max_rows - num_rows, piece.num_rows)
            if stop <= start and not pending:
                stop = start + 1
            if stop > start:
                pending.append(piece.slice(start, stop))
                num_rows += stop - start
                num_bytes += int(ends[stop - 1]) - done
                start = stop
            if start < piece.num_rows:
                yield _join(index, pending)
                index, num_rows, num_bytes, pending = index + 1, 0, 0, []
    if pending:
        yield _join(index, pending)


def _join(index: int, pieces: Sequence[Piece]) -> RowChunk:
    starts = accumulate((len(piece.places) for piece in pieces), initial=0)
    return RowChunk(
        index=index,
        table=pa.concat_tables([piece.table for piece in pieces]),
        texts={role: [text for piece in pieces for text in piece.texts[role]] for role in pieces[0].texts},
        rejects=tuple(reject for piece in pieces for _, reject in piece.rejects),
        num_replaced=sum(len(piece.replaced) for piece in pieces),
        places=tuple(place for piece in pieces for place in piece.places),
        ids=_joined_ids(pieces),
        absent=frozenset(
            start + row for start, piece in zip(starts, pieces, strict=False) for row in piece.absent
        ),
    )


def _joined_ids(pieces: Sequence[Piece]) -> tuple[str | None, ...] | None:
    if all(piece.ids is None for piece in pieces):
        return None
    return tuple(
        name
        for piece in pieces
        for name in (piece.ids if piece.ids is not None else [None] * len(piece.places))
    )
