"""Prefixes are found where rows begin alike and it pays, and batches count them once."""

from itertools import product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from poolembed.runner.packing import pack, segments_of
from poolembed.runner.prefix import MIN_SHARED_TOKENS, WORTH_IT, find_prefixes, plan_prefix_batches
from tests.runner.backbones import rows_of

INSTRUCTION = list(range(100, 150))
QUERY = list(range(200, 230))


def block(number):
    """Tokens that no other block begins with, as many as the shortest prefix that is looked for."""
    return [number] * MIN_SHARED_TOKENS


# Rows of nested prefixes: up to three blocks out of two, and an end of their own.
ROWS = st.lists(
    st.tuples(st.lists(st.integers(1, 2), max_size=3), st.lists(st.integers(3, 5), min_size=1, max_size=60)),
    min_size=1,
    max_size=6,
).map(lambda rows: [[token for number in start for token in block(number)] + end for start, end in rows])


def in_common(rows):
    """Tokens that all of some rows begin with, compared one by one; each row keeps one for itself."""
    shortest = min(map(len, rows)) - 1
    return next((i for i in range(shortest) if len({row[i] for row in rows}) > 1), shortest)


def saved_by(rows, groups):
    """Tokens that groups save; a group that begins with too little alike saves none."""
    total = 0
    for number in set(groups):
        members = [row for row, group in zip(rows, groups, strict=True) if group == number]
        length = in_common(members)
        if length >= max(MIN_SHARED_TOKENS, WORTH_IT * max(map(len, members))):
            total += (len(members) - 1) * length
    return total


def partitions(size):
    """Every way to put so many rows into groups, each written as the group of every row."""
    return (groups for groups in product(range(size), repeat=size) if groups[0] == 0)


@settings(max_examples=100, deadline=None)
@given(ROWS)
def test_rows_of_a_group_begin_alike_and_keep_a_token_of_their_own(rows):
    found = find_prefixes(rows_of(*rows))
    if found is None:
        return
    assert ((found.lengths > 0) == (found.groups >= 0)).all()
    for number in set(found.groups.tolist()) - {-1}:
        members = np.flatnonzero(found.groups == number).tolist()
        (length,) = set(found.lengths[members].tolist())
        assert len(members) > 1
        assert MIN_SHARED_TOKENS <= length <= in_common([rows[row] for row in members])


@settings(max_examples=25, deadline=None)
@given(ROWS.filter(lambda rows: len(rows) <= 5))
def test_the_groups_save_nearly_as_much_as_any(rows):
    found = find_prefixes(rows_of(*rows))
    saved = 0
    if found is not None:
        sizes = np.bincount(found.groups[found.groups >= 0])
        saved = found.lengths.sum() - sum(
            found.lengths[found.groups == number].max() for number in np.flatnonzero(sizes)
        )
    best = max(saved_by(rows, groups) for groups in partitions(len(rows)))
    assert best / 2 <= saved <= best


def test_a_query_with_many_documents_is_shared_with_its_instruction():
    rows = [[*INSTRUCTION, *QUERY, 300 + document, 7] for document in range(9)]
    found = find_prefixes(rows_of(*rows))
    assert found.lengths.tolist() == [80] * 9
    assert len(set(found.groups.tolist())) == 1


def test_queries_with_one_document_share_the_instruction_beside_a_query_with_many():
    many = [[*INSTRUCTION, *QUERY, 300 + document] for document in range(9)]
    single = [[*INSTRUCTION, 400 + query, 8] for query in range(3)]
    found = find_prefixes(rows_of(*single, *many))
    assert found.lengths.tolist() == [50] * 3 + [80] * 9
    assert [len(set(found.groups[rows].tolist())) for rows in (slice(3), slice(3, 12), slice(12))] == [
        1,
        1,
        2,
    ]


def test_equal_rows_compute_all_but_their_last_token_once():
    found = find_prefixes(rows_of(INSTRUCTION, [5, 6], INSTRUCTION))
    assert found.lengths.tolist() == [49, 0, 49]


def test_a_row_that_is_the_prefix_itself_keeps_its_last_token():
    found = find_prefixes(rows_of(INSTRUCTION, [*INSTRUCTION, 1, 2]))
    assert found.lengths.tolist() == [49, 49]


def test_short_prefixes_and_those_of_long_rows_are_not_worth_it():
    short = [1] * (MIN_SHARED_TOKENS - 1)
    assert find_prefixes(rows_of([*short, 2, 3], [*short, 4, 5])) is None
    long = list(range(600, 600 + int(50 / WORTH_IT)))
    assert find_prefixes(rows_of([*INSTRUCTION, *long], [*INSTRUCTION, 5, *long])) is None
    assert find_prefixes(rows_of(INSTRUCTION)) is None
    assert find_prefixes(rows_of()) is None
    assert find_prefixes(rows_of([], [])) is None


@settings(max_examples=100, deadline=None)
@given(ROWS, st.sampled_from([1, 40, 130, 1000]), st.integers(0, 5))
def test_every_row_is_in_one_batch_that_computes_no_more_than_the_budget(rows, budget, left_out):
    tokens = rows_of(*rows)
    found = find_prefixes(tokens)
    if found is None:
        return
    lengths = tokens.lengths.copy()
    lengths[left_out : left_out + 1] = 0
    shared = rows_of(*rows, shared_lengths=found.lengths)
    planned = list(plan_prefix_batches(lengths, found, budget))
    assert sorted(np.concatenate(planned).tolist()) == np.flatnonzero(lengths).tolist()
    for batch in planned:
        assert len(batch) == 1 or len(segments_of(pack(shared, batch)).token_index) <= budget


def test_a_prefix_is_computed_once_in_each_batch_that_needs_it():
    rows = [[*INSTRUCTION, 300 + row, 1, 2, 3, 4] for row in range(20)]
    found = find_prefixes(rows_of(*rows))
    shared = rows_of(*rows, shared_lengths=found.lengths)
    planned = list(plan_prefix_batches(shared.lengths, found, 50 + 8 * 5))
    assert [len(batch) for batch in planned] == [8, 8, 4]
    assert [len(segments_of(pack(shared, batch)).token_index) for batch in planned] == [90, 90, 70]


def test_longer_rows_come_first_within_a_group():
    rows = [[*INSTRUCTION, *[number] * length] for number, length in enumerate((1, 3, 2, 3), start=1)]
    (batch,) = plan_prefix_batches(*_planned(rows), 1000)
    assert batch.tolist() == [1, 3, 2, 0]


def _planned(rows):
    tokens = rows_of(*rows)
    return tokens.lengths, find_prefixes(tokens)
