"""Pieces, the runs of rows that a file reader yields, and how they are gathered into chunks.

Where a chunk ends depends only on the rows and the two limits, never on how a reader cut its pieces.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from poolembed.io.chunk import Reject, RowChunk


@dataclass(frozen=True, slots=True)
class Piece:
    """Some consecutive rows of one file; positions count good and refused rows alike.

    Attributes:
        table: the kept columns of the good rows.
        texts: role name -> one text a good row, or one list of (id, text).
        places: file and row number of every good row.
        row_bytes: what each row weighs, shape (num_rows,), int64.
        rejects: the refused rows by position, in order.
        replaced: positions of the rows in which lone surrogates were replaced.
    """

    table: pa.Table
    texts: dict[str, list[Any]]
    places: Sequence[tuple[str, int]]
    row_bytes: np.ndarray
    rejects: tuple[tuple[int, Reject], ...] = ()
    replaced: tuple[int, ...] = ()

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
    return RowChunk(
        index=index,
        table=pa.concat_tables([piece.table for piece in pieces]),
        texts={role: [text for piece in pieces for text in piece.texts[role]] for role in pieces[0].texts},
        rejects=tuple(reject for piece in pieces for _, reject in piece.rejects),
        num_replaced=sum(len(piece.replaced) for piece in pieces),
        places=tuple(place for piece in pieces for place in piece.places),
    )
