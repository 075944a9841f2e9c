import logging
import math

import pytest
import torch

from poolembed.poolers import (
    LambdaPoolerActivation,
    PoolerClassify,
    PoolerIdentity,
    PoolerMultiLabelClassify,
    PoolerNormalize,
)
from tests.poolers.batches import FLOAT32, packed


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def softmax(row):
    powers = [math.exp(x - max(row)) for x in row]
    return [p / sum(powers) for p in powers]


def norm(row):
    return math.sqrt(sum(x * x for x in row))


def test_identity_returns_its_input_itself():
    logits = packed([3])
    assert PoolerIdentity()(logits) is logits
    (only,) = PoolerIdentity()([logits])
    assert only is logits


def test_normalize_gives_rows_of_length_one():
    vectors = packed([4]) * 5
    expected = [[x / norm(row) for x in row] for row in vectors.double().tolist()]
    torch.testing.assert_close(
        PoolerNormalize()(vectors).double(), torch.tensor(expected).double(), **FLOAT32
    )
    torch.testing.assert_close(
        PoolerNormalize()(vectors[0]).double(), torch.tensor(expected[0]).double(), **FLOAT32
    )


def test_normalize_leaves_zero_at_zero():
    assert PoolerNormalize()(torch.zeros(2, 3)).tolist() == [[0.0] * 3] * 2


def test_normalize_works_on_the_last_dimension_of_each_of_a_list():
    lengths = [part.norm(dim=-1) for part in PoolerNormalize()([packed([2]), packed([3], width=4)])]
    torch.testing.assert_close(lengths, [torch.ones(2), torch.ones(3)])


def test_multi_label_is_a_sigmoid_for_each_logit():
    logits = torch.tensor([[100.0, -100.0, 0.3]])
    high, low, middle = PoolerMultiLabelClassify()(logits)[0].tolist()
    assert high == pytest.approx(1.0)
    assert low == pytest.approx(0.0)
    assert middle == pytest.approx(sigmoid(0.3))


@pytest.mark.parametrize("num_labels", [None, 2, 5])
def test_classify_is_a_softmax_over_several_labels(num_labels):
    logits = packed([4], width=5)
    expected = torch.tensor([softmax(row) for row in logits.double().tolist()])
    torch.testing.assert_close(PoolerClassify(num_labels)(logits), expected.float(), **FLOAT32)


@pytest.mark.parametrize("num_labels", [None, 1])
def test_classify_is_a_sigmoid_for_one_label(num_labels):
    logits = torch.tensor([[0.3], [-2.0]])
    assert PoolerClassify(num_labels)(logits).flatten().tolist() == pytest.approx(
        [sigmoid(0.3), sigmoid(-2.0)]
    )


def test_classify_takes_a_single_row_and_a_batch_of_matrices():
    row, matrices = torch.tensor([0.3, -2.0]), packed([6], width=2).reshape(2, 3, 2)
    assert PoolerClassify()(row).tolist() == pytest.approx(softmax([0.3, -2.0]))
    assert PoolerClassify()(row[:1]).tolist() == pytest.approx([sigmoid(0.3)])
    torch.testing.assert_close(PoolerClassify()(matrices).sum(-1), torch.ones(2, 3))


def test_classify_decides_by_the_declared_number_of_labels():
    logits = torch.tensor([[0.3, -2.0]])
    assert PoolerClassify(1)(logits).flatten().tolist() == pytest.approx([sigmoid(0.3), sigmoid(-2.0)])
    assert PoolerClassify(2)(torch.tensor([[3.0]])).item() == 1.0


def test_zero_labels_are_logged_and_act_as_one(caplog):
    with caplog.at_level(logging.WARNING, logger="poolembed"):
        activation = PoolerClassify(0)
    assert "0 labels" in caplog.text
    assert [record.name for record in caplog.records] == ["poolembed.poolers.activations"]
    assert activation(torch.tensor([[0.3, 1.0]])).flatten().tolist() == pytest.approx(
        [sigmoid(0.3), sigmoid(1.0)]
    )


@pytest.mark.parametrize("num_labels", [None, 1, 2])
def test_other_numbers_of_labels_are_not_logged(num_labels, caplog):
    PoolerClassify(num_labels)
    assert caplog.text == ""


def test_the_number_of_labels_is_open_by_default():
    assert PoolerClassify().num_labels is None


def test_lambda_applies_its_function_to_each_tensor():
    double = LambdaPoolerActivation(lambda x: x * 2)
    assert double(torch.tensor([1.5])).tolist() == [3.0]
    assert [part.tolist() for part in double([torch.tensor([1.0]), torch.tensor([2.0])])] == [[2.0], [4.0]]


@pytest.mark.parametrize("activation", [PoolerClassify(), PoolerMultiLabelClassify(), PoolerNormalize()])
def test_lists_are_mapped_element_by_element(activation):
    parts = [packed([2]), packed([3], width=1)]
    for mapped, part in zip(activation(parts), parts, strict=True):
        assert torch.equal(mapped, activation(part))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize(
    "activation", [PoolerClassify(1), PoolerClassify(2), PoolerMultiLabelClassify(), PoolerNormalize()]
)
def test_half_precision_is_computed_and_returned_in_float32(activation, dtype):
    values = packed([6], dtype=dtype)
    assert activation(values).dtype == torch.float32
    assert torch.equal(activation(values), activation(values.float()))


def test_logits_of_half_precision_keep_apart():
    """A sigmoid in bfloat16 would give these logits a handful of scores."""
    logits = torch.linspace(3, 6, 64).bfloat16().unique()[:, None]
    assert len(PoolerClassify(1)(logits).unique()) == len(logits)


@pytest.mark.parametrize("activation", [PoolerClassify(), PoolerMultiLabelClassify(), PoolerNormalize()])
def test_wider_precision_is_kept(activation):
    assert activation(packed([2], dtype=torch.float64)).dtype == torch.float64
