"""Rows laid end to end are the rows that went in, and every row is in exactly one batch."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolembed.runner.packing import (
    TokenizedRows,
    equal_length_runs,
    joined,
    pack,
    plan_batches,
    positions_in_rows,
    segments_of,
)

LENGTHS = st.lists(st.integers(0, 40), max_size=60)
SOME_LENGTHS = st.lists(st.integers(1, 40), min_size=1, max_size=60)


def array(values):
    return np.asarray(values, np.int64)


def rows_of(lengths, *, types=False, prompts=False):
    """Rows whose tokens tell where they stand: 1000 * row + position."""
    ids = [1000 * row + position for row, length in enumerate(lengths) for position in range(length)]
    return TokenizedRows(
        token_ids=array(ids),
        lengths=array(lengths),
        truncated=np.zeros(len(lengths), np.bool_),
        token_type_ids=array([token % 2 for token in ids]) if types else None,
        prompt_lengths=array([length // 2 for length in lengths]) if prompts else None,
    )


@given(LENGTHS, st.integers(1, 100), st.booleans())
def test_a_plan_has_every_row_with_tokens_exactly_once(lengths, budget, equal):
    planned = [row for rows in plan_batches(array(lengths), budget, equal_lengths=equal) for row in rows]
    assert sorted(planned) == [row for row, length in enumerate(lengths) if length]


@given(LENGTHS, st.integers(1, 100), st.booleans())
def test_a_batch_keeps_its_budget_unless_it_is_a_single_row(lengths, budget, equal):
    for rows in plan_batches(array(lengths), budget, equal_lengths=equal):
        assert len(rows) == 1 or sum(lengths[row] for row in rows) <= budget


@given(LENGTHS, st.integers(1, 100))
def test_no_batch_could_have_taken_the_next_row_too(lengths, budget):
    batches = list(plan_batches(array(lengths), budget))
    for rows, following in itertools.pairwise(batches):
        assert sum(lengths[row] for row in rows) + lengths[following[0]] > budget


@given(LENGTHS, st.integers(1, 100), st.booleans())
def test_rows_come_longest_first_and_equal_ones_in_the_inputs_order(lengths, budget, equal):
    planned = [row for rows in plan_batches(array(lengths), budget, equal_lengths=equal) for row in rows]
    assert planned == sorted(planned, key=lambda row: (-lengths[row], row))


@given(LENGTHS, st.integers(1, 100))
def test_a_plan_of_equal_lengths_mixes_none(lengths, budget):
    for rows in plan_batches(array(lengths), budget, equal_lengths=True):
        assert len({lengths[row] for row in rows}) == 1


def test_no_rows_need_no_batches():
    assert list(plan_batches(array([]), 10)) == []
    assert list(plan_batches(array([0, 0]), 10)) == []


@given(SOME_LENGTHS, st.randoms(use_true_random=False))
def test_packing_then_splitting_gives_back_each_row(lengths, random):
    chosen = random.sample(range(len(lengths)), random.randint(1, len(lengths)))
    batch = pack(rows_of(lengths, types=True, prompts=True), array(chosen))
    split = np.split(batch.token_ids, np.cumsum(batch.lengths)[:-1])
    expected = [[1000 * row + position for position in range(lengths[row])] for row in chosen]
    assert [row.tolist() for row in split] == expected
    assert batch.rows.tolist() == chosen
    assert batch.num_tokens == sum(lengths[row] for row in chosen)
    assert batch.token_type_ids is not None
    assert batch.token_type_ids.tolist() == [token % 2 for row in expected for token in row]
    assert batch.prompt_lengths is not None
    assert batch.prompt_lengths.tolist() == [lengths[row] // 2 for row in chosen]


def test_what_rows_do_not_have_a_batch_does_not_have():
    batch = pack(rows_of([2, 3]), array([1]))
    assert batch.token_type_ids is None
    assert batch.prompt_lengths is None


@given(SOME_LENGTHS)
def test_positions_start_at_zero_in_every_row(lengths):
    expected = [position for length in lengths for position in range(length)]
    assert positions_in_rows(array(lengths)).tolist() == expected


def test_no_rows_have_no_positions():
    assert positions_in_rows(array([])).tolist() == []


@pytest.mark.parametrize(
    ("lengths", "runs"),
    [
        ([5], [(1, 5)]),
        ([5, 5, 5], [(3, 5)]),
        ([9, 5, 5, 2], [(1, 9), (2, 5), (1, 2)]),
        ([4, 3, 4], [(1, 4), (1, 3), (1, 4)]),
    ],
)
def test_neighbours_of_equal_length_are_a_run(lengths, runs):
    assert equal_length_runs(array(lengths)) == runs


@given(LENGTHS, LENGTHS, st.booleans(), st.booleans())
def test_joined_rows_are_those_of_the_first_then_those_of_the_second(first, second, types, prompts):
    left, right = rows_of(first, types=types), rows_of(second, prompts=prompts)
    both = joined(left, right)
    assert both.lengths.tolist() == first + second
    assert both.token_ids.tolist() == [*left.token_ids.tolist(), *right.token_ids.tolist()]
    if types:
        assert both.token_type_ids.tolist() == [*left.token_type_ids.tolist(), *[0] * sum(second)]
    else:
        assert both.token_type_ids is None
    if prompts:
        assert both.prompt_lengths.tolist() == [*[0] * len(first), *right.prompt_lengths.tolist()]
    else:
        assert both.prompt_lengths is None


def test_joining_keeps_what_one_side_says_of_seen_and_kept_tokens():
    left = rows_of([2, 1])
    right = replace(rows_of([3]), seen_lengths=array([1]), kept=np.asarray([True, False, True]))
    both = joined(left, right)
    assert both.seen_lengths.tolist() == [2, 1, 1]
    assert both.kept.tolist() == [True, True, True, True, False, True]


def shared_rows(rows, shared):
    return TokenizedRows(
        token_ids=array([token for row in rows for token in row]),
        lengths=array([len(row) for row in rows]),
        truncated=np.zeros(len(rows), np.bool_),
        shared_lengths=array(shared),
    )


def test_a_prefix_that_neighbours_share_is_one_segment_before_all_rows():
    rows = [[9], [1, 2, 3, 4], [1, 2, 3, 5, 6], [7, 8, 3], [7, 8, 4]]
    batch = pack(shared_rows(rows, [0, 3, 3, 2, 2]), np.arange(5))
    segments = segments_of(batch)
    ends = np.cumsum(segments.lengths)[:-1]
    tokens = [part.tolist() for part in np.split(batch.token_ids[segments.token_index], ends)]
    assert tokens == [[1, 2, 3], [7, 8], [9], [4], [5, 6], [3], [4]]
    assert segments.prefix_of.tolist() == [-1, -1, -1, 0, 0, 1, 1]
    assert segments.num_prefixes == 2
    assert batch.own_lengths.tolist() == [1, 1, 2, 1, 1]


def test_rows_that_do_not_begin_as_they_are_said_to_are_computed_whole():
    rows = [[1, 2, 3, 4], [1, 2, 9, 4], [1, 2, 3, 4]]
    batch = pack(shared_rows(rows, [3, 3, 3]), np.arange(3))
    assert batch.shared_lengths is None
    assert batch.own_lengths.tolist() == [4, 4, 4]
    segments = segments_of(batch)
    assert segments.token_index.tolist() == list(range(12))
    assert (segments.lengths.tolist(), segments.num_prefixes) == ([4, 4, 4], 0)


def test_a_row_without_its_neighbours_is_computed_whole():
    tokens = shared_rows([[1, 2, 3, 4], [1, 2, 3], [8, 1, 2], [8, 5]], [2, 2, 1, 1])
    assert pack(tokens, array([1])).shared_lengths is None
    assert pack(tokens, array([1, 2, 3])).shared_lengths.tolist() == [0, 1, 1]


def test_a_run_of_equal_lengths_has_one_prefix():
    assert equal_length_runs(array([3, 2, 2, 2]), array([-1, 0, 0, 1])) == [(1, 3), (2, 2), (1, 2)]
