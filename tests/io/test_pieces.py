"""Chunks hold all rows in order, whatever the limits and however the readers cut their pieces."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from poolembed.io.chunk import Reject
from poolembed.io.pieces import Piece, gather

ROWS = st.lists(st.tuples(st.integers(0, 50), st.booleans(), st.booleans()), max_size=40)


def piece(rows, first: int) -> Piece:
    """A piece from (weight, is good, is repaired) triples; the text is the row's number."""
    good = [first + at for at, (_, is_good, _) in enumerate(rows) if is_good]
    return Piece(
        table=pa.table({"number": pa.array(good, pa.int64())}),
        texts={"text": [str(number) for number in good]},
        places=[("f", number) for number in good],
        row_bytes=np.array([weight for weight, _, _ in rows], dtype=np.int64),
        rejects=tuple(
            (at, Reject("f", first + at, "code", "message", "")) for at, row in enumerate(rows) if not row[1]
        ),
        replaced=tuple(at for at, (_, is_good, is_repaired) in enumerate(rows) if is_good and is_repaired),
    )


def cut(rows, sizes) -> list[Piece]:
    pieces, start = [], 0
    for size in [*sizes, len(rows)]:
        pieces.append(piece(rows[start : start + size], start))
        start = min(start + size, len(rows))
    return pieces


def greedy(rows, max_rows: int, max_bytes: int) -> list[list[int]]:
    """Row numbers of each chunk by the plainest loop."""
    chunks: list[list[int]] = []
    weight = 0
    for number, (row_bytes, _, _) in enumerate(rows):
        if not chunks or len(chunks[-1]) == max_rows or weight + row_bytes > max_bytes:
            chunks.append([])
            weight = 0
        chunks[-1].append(number)
        weight += row_bytes
    return chunks


@given(ROWS, st.lists(st.integers(0, 7), max_size=8), st.integers(1, 12), st.integers(1, 120))
def test_chunks_are_those_of_a_plain_loop_however_the_pieces_are_cut(rows, sizes, max_rows, max_bytes):
    chunks = list(gather(iter(cut(rows, sizes)), max_rows, max_bytes))
    expected = greedy(rows, max_rows, max_bytes)
    assert [chunk.index for chunk in chunks] == list(range(len(expected)))
    for chunk, numbers in zip(chunks, expected, strict=True):
        good = [number for number in numbers if rows[number][1]]
        assert chunk.table["number"].to_pylist() == good
        assert chunk.texts["text"] == [str(number) for number in good]
        assert chunk.places == tuple(("f", number) for number in good)
        assert [reject.row for reject in chunk.rejects] == [
            number for number in numbers if not rows[number][1]
        ]
        assert chunk.num_replaced == sum(rows[number][2] for number in good)
        assert chunk.num_rows == len(good)


def test_a_row_over_the_limit_is_a_chunk_of_its_own():
    chunks = gather(iter([piece([(5, True, False), (500, True, False), (5, True, False)], 0)]), 10, 100)
    assert [chunk.texts["text"] for chunk in chunks] == [["0"], ["1"], ["2"]]


def test_no_pieces_give_no_chunks():
    assert list(gather(iter([]), 10, 10)) == []
