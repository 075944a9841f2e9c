"""Rows can be taken out of a chunk, and are accounted for."""

import pyarrow as pa

from poolembed.io import Reject, RowChunk


def chunk() -> RowChunk:
    return RowChunk(
        index=3,
        table=pa.table({"id": [10, 11, 12]}),
        texts={"query": ["q0", "q1", "q" * 1000], "text": ["t0", "t1", "t2"]},
        rejects=(Reject("f.jsonl", 2, "null_text", "m", ""),),
        num_replaced=1,
        places=(("f.jsonl", 1), ("f.jsonl", 3), ("g.jsonl", 1)),
    )


def test_refused_rows_leave_every_part_of_the_chunk_and_become_rejects():
    rest = chunk().without({2: ("non_finite", "the vector is not finite"), 0: ("too_large", "too long")})
    assert rest.table["id"].to_pylist() == [11]
    assert rest.texts == {"query": ["q1"], "text": ["t1"]}
    assert rest.places == (("f.jsonl", 3),)
    assert rest.rejects == (
        Reject("f.jsonl", 2, "null_text", "m", ""),
        Reject("f.jsonl", 1, "too_large", "too long", "q0"),
        Reject("g.jsonl", 1, "non_finite", "the vector is not finite", "q" * 200),
    )
    assert (rest.index, rest.num_replaced, rest.num_rows) == (3, 1, 1)


def test_a_chunk_without_problems_stays_as_it_is():
    whole = chunk()
    assert whole.without({}) is whole


def test_all_rows_can_be_refused():
    rest = chunk().without({row: ("code", "message") for row in range(3)})
    assert rest.num_rows == 0
    assert rest.table.schema == chunk().table.schema
    assert len(rest.rejects) == 4
