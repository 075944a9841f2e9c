"""Similarities and MaxSim of pairs against loops in float64."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from poolembed.runner import pair_scores
from poolembed.runner.pair_scores import Pairs, maxsim_scores, similarities
from poolembed.runner.results import PooledRows


def pairs_of(*pairs):
    query_of, document_of = np.asarray(pairs, np.int64).reshape(-1, 2).T
    return Pairs(query_of, document_of)


def vectors(num_texts, dim=5, seed=0):
    return np.random.default_rng(seed).normal(size=(num_texts, dim)).astype(np.float32)


def dot(left, right):
    return math.fsum(float(a) * float(b) for a, b in zip(left, right, strict=True))


def by_hand(name, left, right):
    if name == "dot":
        return dot(left, right)
    if name == "cosine":
        return dot(left, right) / math.sqrt(dot(left, left) * dot(right, right))
    differences = [abs(float(a) - float(b)) for a, b in zip(left, right, strict=True)]
    return -math.fsum(differences) if name == "manhattan" else -math.hypot(*differences)


@pytest.mark.parametrize("name", ["cosine", "dot", "euclidean", "manhattan"])
def test_a_similarity_is_that_of_its_formula(name):
    values = vectors(4)
    pairs = [(0, 1), (2, 3), (3, 0), (1, 1)]
    found = similarities(name, PooledRows(values), pairs_of(*pairs))
    wanted = [by_hand(name, values[query], values[document]) for query, document in pairs]
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
    assert found.dtype == np.float32


def test_many_pairs_of_few_texts_are_compared_in_blocks():
    dim = pair_scores.MAX_BLOCK_NUMBERS // 2
    values = np.zeros((2, dim), np.float32)
    values[:, 0] = (2, 3)
    found = similarities("dot", PooledRows(values), pairs_of((0, 0), (0, 1), (1, 1), (1, 0), (0, 0)))
    assert found.tolist() == [4, 6, 9, 6, 4]


def test_a_vector_without_direction_has_cosine_0():
    values = np.asarray([[0, 0], [1, 0]], np.float32)
    assert similarities("cosine", PooledRows(values), pairs_of((0, 1), (0, 0))).tolist() == [0, 0]


def test_no_pairs_have_no_scores():
    empty = PooledRows(np.zeros((0, 3), np.float32), np.zeros(0, np.int64))
    assert similarities("cosine", empty, pairs_of()).shape == (0,)
    assert maxsim_scores(empty, pairs_of(), torch.device("cpu")).shape == (0,)


@settings(max_examples=30, deadline=None)
@given(lengths=st.lists(st.integers(1, 6), min_size=1, max_size=6), seed=st.integers(0, 9), data=st.data())
def test_maxsim_is_the_sum_of_the_best_products(lengths, seed, data):
    values = vectors(sum(lengths), seed=seed)
    ends = np.cumsum(lengths)
    matrices = [values[end - length : end] for end, length in zip(ends, lengths, strict=True)]
    text = st.integers(0, len(lengths) - 1)
    pairs = data.draw(st.lists(st.tuples(text, text), max_size=8))
    found = maxsim_scores(
        PooledRows(values, np.asarray(lengths, np.int64)), pairs_of(*pairs), torch.device("cpu")
    )
    wanted = [
        math.fsum(max(dot(token, other) for other in matrices[document]) for token in matrices[query])
        for query, document in pairs
    ]
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)
