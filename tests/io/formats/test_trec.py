"""Rankings as TREC runs."""

import io

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolembed.errors import ConfigError, InputError
from poolembed.io.formats.trec import TrecRun

RANKING = pa.list_(pa.struct([("index", pa.int32()), ("id", pa.string()), ("score", pa.float32())]))


def run_of(ids, rankings, column="query_id", metadata=None):
    """The text of a run of rankings, each a list of (id, score)."""
    records = [
        [{"index": place, "id": name, "score": score} for place, (name, score) in enumerate(ranking)]
        for ranking in rankings
    ]
    schema = pa.schema([(column, pa.array(ids).type), ("ranking", RANKING)], metadata=metadata)
    table = pa.table([pa.array(ids), pa.array(records, RANKING)], schema=schema)
    handle = io.BytesIO()
    writer = TrecRun(handle, table.schema)
    for start in range(table.num_rows):
        writer.write(table.slice(start, 1))
    writer.finish()
    return handle.getvalue().decode()


def test_a_line_has_the_six_fields_of_the_format():
    text = run_of(["q1", "q2"], [[("b", 2.5), ("a", -1.0)], [("c", 0.0)]])
    assert text == "q1 Q0 b 1 2.5 poolembed\nq1 Q0 a 2 -1.0 poolembed\nq2 Q0 c 1 0.0 poolembed\n"


def test_the_tag_is_what_the_run_is_called():
    assert run_of(["q"], [[("a", 1.0)]], metadata={"poolembed.run_tag": "mine"}) == "q Q0 a 1 1.0 mine\n"


def test_ids_of_queries_may_be_numbers_in_a_column_of_another_name():
    assert run_of([7], [[("a", 1.0)]], column="qid") == "7 Q0 a 1 1.0 poolembed\n"


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_a_score_reads_back_as_the_very_float32(score):
    written = run_of(["q"], [[("a", score)]]).split()[4]
    assert np.float32(written).tobytes() == np.float32(score).tobytes()


@pytest.mark.parametrize(
    ("query", "document"), [("two words", "a"), ("q", "a\tb"), ("", "a"), (None, "a"), ("q", "")]
)
def test_an_id_that_is_no_word_is_refused(query, document):
    with pytest.raises(InputError, match="a TREC run cannot have the id"):
        run_of(pa.array([query], pa.string()), [[(document, 1.0)]])


@pytest.mark.parametrize("names", [["ranking"], ["query_id"], ["query", "ranking"]])
def test_a_table_without_ids_or_rankings_is_refused(names):
    with pytest.raises(ConfigError, match="needs rankings, and the id of each query"):
        TrecRun(io.BytesIO(), pa.schema([(name, pa.string()) for name in names]))
