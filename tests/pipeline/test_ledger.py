"""No row is lost, and no more are spoiled than the user allows."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolembed.config import LimitConfig
from poolembed.errors import RejectBudgetError
from poolembed.io import Reject
from poolembed.pipeline.ledger import Ledger

BAD = Reject("a.jsonl", 7, "null_text", "the text in 'text' is null", "{}")


@dataclass
class LyingSource:
    """Says it has some rows, and yields others."""

    num_rows: int
    chunks: tuple[int, ...]


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5))))
def test_rows_out_and_rejects_are_the_rows_in(chunks):
    ledger = Ledger(LimitConfig(), sum(map(sum, chunks)))
    for good, bad in chunks:
        ledger.add(good, [BAD] * bad, 0)
    ledger.close()
    assert ledger.num_left == 0


@pytest.mark.parametrize("source", [LyingSource(5, (2, 2)), LyingSource(3, (2, 2)), LyingSource(1, ())])
def test_a_source_that_yields_other_rows_than_it_counted_is_a_bug(source):
    ledger = Ledger(LimitConfig(), source.num_rows)
    for num_rows in source.chunks:
        ledger.add(num_rows, [], 0)
    with pytest.raises(AssertionError, match=f"{source.num_rows} rows in, but {sum(source.chunks)} rows out"):
        ledger.close()


def test_the_first_reject_over_a_number_stops_the_run():
    ledger = Ledger(LimitConfig(max_rejects="2"), 1000)
    ledger.add(10, [BAD, BAD], 0)
    with pytest.raises(RejectBudgetError) as caught:
        ledger.add(0, [Reject("a.jsonl", 9, "too_large", "9 tokens", "")], 0)
    assert caught.value.message == (
        "3 of 1,000 rows are rejected by now (2 null_text, 1 too_large), --max-rejects allows 2"
    )
    assert caught.value.hint == "the first is a.jsonl:7: the text in 'text' is null"


@given(st.integers(1, 400), st.integers(0, 100), st.randoms())
def test_a_share_stops_the_run_when_all_other_rows_could_not_save_it(rows, percent, random):
    ledger = Ledger(LimitConfig(max_truncated=f"{percent}%"), rows)
    allowed = percent * rows // 100
    order = [True] * min(rows, allowed + 1) + [False] * max(0, rows - allowed - 1)
    random.shuffle(order)
    num_cut = 0
    for is_cut in order:
        num_cut += is_cut
        if num_cut > allowed:
            with pytest.raises(RejectBudgetError, match="--max-truncated allows"):
                ledger.add(1, [], 1)
            return
        ledger.add(1, [], int(is_cut))
    ledger.close()


def test_no_reject_at_all_can_be_asked_for():
    ledger = Ledger(LimitConfig(max_rejects="0"), 2)
    ledger.add(1, [], 0)
    with pytest.raises(RejectBudgetError):
        ledger.add(0, [BAD], 0)
