"""A store gives every row the result of its text, computed once, whoever computed it."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolembed.io.store.keys import NO_KEY
from poolembed.io.store.results import ResultStore
from tests.io.store.conftest import keys_of, results_of

WORDS = st.lists(st.sampled_from(["a", "bb", "ccc", "dd", "é", ""]), max_size=12)


class MemoryBlock:
    """Results that were known before."""

    def __init__(self, table):
        self.num_rows = table.num_rows
        self.table = table

    def take(self, rows):
        return self.table.take(pa.array(rows))


def through(store, texts, failing=(), absent=frozenset()):
    """Take some rows through a store as a run does; return results, lookup, and the texts computed."""
    lookup = store.find(keys_of(texts), absent)
    new = [texts[row] for row in lookup.new]
    if new:
        failures = {row: ("bad", text) for row, text in enumerate(new) if text in failing}
        store.add(lookup, results_of(new), failures)
    good = [row for row in range(len(texts)) if row not in store.failures(lookup)]
    return store.take(lookup.places[good]), lookup, new


@given(st.lists(WORDS, max_size=6), WORDS)
def test_every_row_gets_the_result_of_its_text_and_no_text_is_computed_twice(chunks, before):
    store = ResultStore(results_of([]).schema)
    store.know(MemoryBlock(results_of(before)), keys_of(before), in_output=True)
    computed = []
    for texts in chunks:
        results, lookup, new = through(store, texts)
        assert results.equals(results_of(texts))
        assert lookup.num_known == sum(text in before for text in texts)
        computed += new
    wanted = {text for texts in chunks for text in texts}
    assert sorted(computed) == sorted(wanted - set(before))
    assert store.num_unused == sum(text not in wanted for text in before)


def test_rows_of_a_text_without_a_result_all_fail_with_its_reason(schema):
    store = ResultStore(schema)
    results, lookup, _ = through(store, ["a", "bad", "b", "bad"], failing=["bad"])
    assert results.equals(results_of(["a", "b"]))
    assert store.failures(lookup) == {1: ("bad", "bad"), 3: ("bad", "bad")}
    _, again, new = through(store, ["bad", "a"])
    assert new == []
    assert store.failures(again) == {0: ("bad", "bad")}


def test_rows_without_a_text_have_nulls_and_are_not_computed(schema):
    store = ResultStore(schema)
    results, lookup, new = through(store, ["", "a", "", "a"], absent=frozenset([0, 2]))
    assert new == ["a"]
    assert results["embedding"].to_pylist()[0] is None
    assert results.slice(1, 1).equals(results_of(["a"]))
    assert results["tokens"].to_pylist() == [None, ["a"], None, ["a"]]
    assert [key == NO_KEY for key in lookup.keys] == [True, False, True, False]
    (empty, _, new) = through(store, [""])
    assert new == [""]
    assert empty.equals(results_of([""]))


def test_chunks_may_be_looked_up_ahead(schema):
    store = ResultStore(schema)
    first, second = store.find(keys_of(["a", "b"])), store.find(keys_of(["b", "c", "a"]))
    assert second.new.tolist() == [1]
    store.add(first, results_of(["a", "b"]), {})
    assert store.take(first.places).equals(results_of(["a", "b"]))
    store.add(second, results_of(["c"]), {})
    assert store.take(second.places).equals(results_of(["b", "c", "a"]))


def test_adding_in_another_order_is_a_bug(schema):
    store = ResultStore(schema)
    store.find(keys_of(["a"]))
    second = store.find(keys_of(["b"]))
    with pytest.raises(AssertionError, match="another order"):
        store.add(second, results_of(["b"]), {})


def test_results_of_a_chunk_of_new_texts_are_not_copied(schema):
    store = ResultStore(schema)
    lookup = store.find(keys_of(["a", "b"]))
    table = results_of(["a", "b"])
    store.add(lookup, table, {})
    given = table["embedding"].chunk(0).values.buffers()[1].address
    assert store.take(lookup.places)["embedding"].chunk(0).values.buffers()[1].address == given


def test_no_rows_have_empty_results(schema):
    store = ResultStore(schema)
    assert store.take(np.zeros(0, np.int64)).equals(results_of([]))
    assert store.take(np.asarray([-1])).num_rows == 1
