"""Results stand where their rows are, and a number that is not finite is no result."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from poolembed.runner.results import RowFailure
from poolembed.runner.row_collector import RowCollector


def array(values):
    return np.asarray(values, np.int64)


@given(st.permutations(range(7)), st.integers(1, 6))
def test_results_of_batches_end_up_in_the_order_of_the_rows(order, cut):
    collector = RowCollector(7, 2, per_token=False)
    for rows in (order[:cut], order[cut:]):
        collector.place(array(rows), torch.tensor([[row, -row] for row in rows]))
    pooled = collector.finish()
    assert pooled.values.tolist() == [[row, -row] for row in range(7)]
    assert pooled.values.dtype == np.float32
    assert pooled.lengths is None
    assert pooled.failures == {}


@given(st.permutations(range(5)), st.lists(st.integers(0, 4), min_size=5, max_size=5))
def test_token_outputs_of_batches_end_up_in_the_order_of_the_rows(order, lengths):
    collector = RowCollector(5, 3, per_token=True)
    for row in order:
        collector.place(array([row]), [torch.full((lengths[row], 3), float(row))])
    pooled = collector.finish()
    assert pooled.lengths is not None
    assert pooled.lengths.tolist() == lengths
    assert pooled.values.tolist() == [[row] * 3 for row in range(5) for _ in range(lengths[row])]
    assert pooled.values.dtype == np.float32


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_a_row_with_a_number_that_is_not_finite_fails(value):
    collector = RowCollector(3, 2, per_token=False)
    collector.place(array([2, 0, 1]), torch.tensor([[1.0, 2.0], [3.0, value], [5.0, 6.0]]))
    pooled = collector.finish()
    assert list(pooled.failures) == [0]
    assert pooled.failures[0].code == "non_finite"
    assert pooled.values.tolist() == [[0, 0], [5, 6], [1, 2]]


def test_a_row_with_a_token_that_is_not_finite_fails_whole():
    collector = RowCollector(2, 1, per_token=True)
    collector.place(array([1, 0]), [torch.tensor([[1.0], [float("nan")]]), torch.tensor([[7.0]])])
    pooled = collector.finish()
    assert list(pooled.failures) == [1]
    assert pooled.lengths is not None
    assert pooled.lengths.tolist() == [1, 0]
    assert pooled.values.tolist() == [[7.0]]


def test_half_precision_becomes_float32():
    collector = RowCollector(1, 2, per_token=False)
    collector.place(array([0]), torch.tensor([[1.5, -2.25]], dtype=torch.bfloat16))
    pooled = collector.finish()
    assert pooled.values.dtype == np.float32
    assert pooled.values.tolist() == [[1.5, -2.25]]


@pytest.mark.parametrize("per_token", [True, False])
def test_failures_of_rows_that_were_not_computed_are_kept(per_token):
    collector = RowCollector(2, 4, per_token=per_token)
    collector.failures[1] = RowFailure("no_tokens", "the text has no tokens")
    pooled = collector.finish()
    assert pooled.failures == {1: RowFailure("no_tokens", "the text has no tokens")}
    assert pooled.values.shape == ((0, 4) if per_token else (2, 4))


def test_a_chunk_without_rows_has_results_of_the_right_width():
    for per_token in (True, False):
        assert RowCollector(0, 5, per_token=per_token).finish().values.shape == (0, 5)


def test_tokens_that_are_not_wanted_are_left_out_and_harm_nothing():
    collector = RowCollector(2, 1, per_token=True)
    wanted = [torch.tensor([True, False, True]), torch.tensor([False])]
    collector.place(
        array([1, 0]), [torch.tensor([[1.0], [float("nan")], [3.0]]), torch.tensor([[9.0]])], wanted
    )
    pooled = collector.finish()
    assert pooled.lengths is not None
    assert pooled.lengths.tolist() == [0, 2]
    assert pooled.values.tolist() == [[1.0], [3.0]]
    assert pooled.failures == {}


def test_one_weight_a_token_may_come_without_its_second_dimension():
    collector = RowCollector(1, 1, per_token=True)
    collector.place(array([0]), [torch.tensor([1.0, 2.0])])
    assert collector.finish().values.tolist() == [[1.0], [2.0]]
