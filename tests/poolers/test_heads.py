"""Sequence heads against float64 arithmetic written out here."""

import pytest
import torch
from torch import nn

from poolembed.errors import PoolingError
from poolembed.poolers import ClassifierPoolerHead, EmbeddingPoolerHead, PoolerClassify, PoolerNormalize
from tests.poolers.batches import FLOAT32, mixed_rows, packed, rows_of

HEADS = [EmbeddingPoolerHead, ClassifierPoolerHead]
TASKS = {EmbeddingPoolerHead: "embed", ClassifierPoolerHead: "classify"}


def linear(out, dtype=torch.float32):
    torch.manual_seed(3)
    return nn.Linear(8, out).requires_grad_(False).to(dtype)


def applied(layer, vectors):
    return vectors.double() @ layer.weight.double().T + layer.bias.double()


def unit(vectors):
    return vectors / vectors.square().sum(-1, keepdim=True).sqrt()


@pytest.mark.parametrize("head", HEADS)
def test_each_head_serves_its_own_task(head):
    assert head().get_supported_tasks() == {TASKS[head]}


@pytest.mark.parametrize("head", HEADS)
def test_without_parts_vectors_pass_as_they_are(head):
    vectors = packed([3], dtype=torch.bfloat16)
    assert head()(vectors, rows_of(3, TASKS[head])) is vectors


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("num_rows", [2, 4])
def test_there_must_be_a_vector_for_each_row(head, num_rows):
    with pytest.raises(ValueError, match=f"3 pooled entries for {num_rows} rows"):
        head()(packed([3]), rows_of(num_rows, TASKS[head]))
    with pytest.raises(ValueError, match=f"3 pooled entries for {num_rows} rows"):
        head()(list(packed([3])), rows_of(num_rows, TASKS[head]))


@pytest.mark.parametrize("head", HEADS)
def test_a_list_of_vectors_is_stacked(head):
    vectors = packed([3])
    assert torch.equal(head()(list(vectors), rows_of(3, TASKS[head])), vectors)


@pytest.mark.parametrize("head", HEADS)
def test_an_empty_list_has_no_width(head):
    with pytest.raises(PoolingError, match=r"pass a tensor of shape \(0, width\)"):
        head()([], rows_of(0, TASKS[head]))


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_vectors_are_cast_to_the_head_dtype(head, dtype):
    assert head(head_dtype=dtype)(packed([3], dtype=torch.bfloat16), rows_of(3, TASKS[head])).dtype == dtype


@pytest.mark.parametrize(
    ("head", "part"), [(EmbeddingPoolerHead, "projector"), (ClassifierPoolerHead, "classifier")]
)
def test_layers_run_in_the_head_dtype(head, part):
    """In bfloat16 the product would be off by 1e-2."""
    vectors = packed([3], dtype=torch.bfloat16)
    layer = linear(5)
    out = head(**{part: layer}, head_dtype=torch.float32)(vectors, rows_of(3, TASKS[head]))
    assert out.shape == (3, 5)
    torch.testing.assert_close(out.double(), applied(layer, vectors), **FLOAT32)


@pytest.mark.parametrize(
    ("head", "part"), [(EmbeddingPoolerHead, "projector"), (ClassifierPoolerHead, "classifier")]
)
@pytest.mark.parametrize("activation", [None, PoolerNormalize()])
def test_an_empty_batch_has_the_width_of_the_layer(head, part, activation):
    metadata = rows_of(0, TASKS[head])
    out = head(**{part: linear(5)}, activation=activation)(torch.zeros(0, 8), metadata)
    assert out.shape == (0, 5)
    assert head(activation=activation)(torch.zeros(0, 8), metadata).shape == (0, 8)
    half = head(activation=PoolerNormalize())(torch.zeros(0, 8, dtype=torch.float16), metadata)
    assert half.dtype == torch.float32


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("flag", [True, None])
def test_the_activation_is_applied_unless_refused(head, flag):
    vectors = packed([3])
    out = head(activation=PoolerNormalize())(vectors, rows_of(3, TASKS[head], use_activation=flag))
    assert isinstance(out, torch.Tensor)
    torch.testing.assert_close(out.double(), unit(vectors.double()), **FLOAT32)


@pytest.mark.parametrize("head", HEADS)
def test_the_activation_may_be_refused_by_all_rows(head):
    vectors = packed([3])
    assert (
        head(activation=PoolerNormalize())(vectors, rows_of(3, TASKS[head], use_activation=False)) is vectors
    )


@pytest.mark.parametrize("head", HEADS)
def test_the_activation_may_be_refused_by_some_rows(head):
    vectors = packed([3])
    metadata = mixed_rows(TASKS[head], {"use_activation": False}, {"use_activation": True}, {})
    out = head(activation=PoolerNormalize())(vectors, metadata)
    assert isinstance(out, list)
    assert torch.equal(out[0], vectors[0])
    for index in (1, 2):
        torch.testing.assert_close(out[index].double(), unit(vectors[index].double()), **FLOAT32)


def test_equal_dimensions_are_cut_at_once():
    vectors = packed([3])
    out = EmbeddingPoolerHead()(vectors, rows_of(3, dimensions=5))
    assert isinstance(out, torch.Tensor)
    assert torch.equal(out, vectors[:, :5])


def test_mixed_dimensions_give_a_list():
    vectors = packed([3])
    out = EmbeddingPoolerHead()(vectors, mixed_rows("embed", {"dimensions": 2}, {}, {"dimensions": 7}))
    assert isinstance(out, list)
    assert torch.equal(out[0], vectors[0, :2])
    assert torch.equal(out[1], vectors[1])
    assert torch.equal(out[2], vectors[2, :7])


def test_mixed_dimensions_are_activated_row_by_row():
    vectors = packed([3])
    metadata = mixed_rows("embed", {"dimensions": 2}, {}, {"dimensions": 7, "use_activation": False})
    out = EmbeddingPoolerHead(activation=PoolerNormalize())(vectors, metadata)
    torch.testing.assert_close(out[0].double(), unit(vectors[0, :2].double()), **FLOAT32)
    torch.testing.assert_close(out[1].double(), unit(vectors[1].double()), **FLOAT32)
    assert torch.equal(out[2], vectors[2, :7])
    all_on = mixed_rows("embed", {"dimensions": 2}, {}, {"dimensions": 7})
    out = EmbeddingPoolerHead(activation=PoolerNormalize())(vectors, all_on)
    assert [row.norm().item() for row in out] == pytest.approx([1.0] * 3)


def test_embeddings_are_projected_then_cut_then_normalised():
    vectors = packed([3])
    layer = linear(6)
    out = EmbeddingPoolerHead(layer, torch.float32, PoolerNormalize())(vectors, rows_of(3, dimensions=4))
    torch.testing.assert_close(out.double(), unit(applied(layer, vectors)[:, :4]), **FLOAT32)
    assert out.norm(dim=-1).tolist() == pytest.approx([1.0] * 3)


@pytest.mark.parametrize(
    ("mean", "sigma", "expected"),
    [
        (None, None, lambda x: x),
        (0.5, None, lambda x: x - 0.5),
        (None, 4.0, lambda x: x / 4.0),
        (0.5, -2.0, lambda x: (x - 0.5) / -2.0),
        (0.0, 1.0, lambda x: x),
    ],
)
def test_logits_are_calibrated(mean, sigma, expected):
    logits = packed([3], width=2)
    before = logits.clone()
    out = ClassifierPoolerHead(logit_mean=mean, logit_sigma=sigma)(logits, rows_of(3, "classify"))
    torch.testing.assert_close(out.double(), expected(before.double()), **FLOAT32)
    assert torch.equal(logits, before)


def test_logits_are_classified_then_calibrated_then_activated():
    vectors = packed([3])
    layer = linear(4)
    head = ClassifierPoolerHead(layer, 0.7, 3.0, torch.float32, PoolerClassify())
    out = head(vectors, rows_of(3, "classify"))
    scaled = (applied(layer, vectors) - 0.7) / 3.0
    powers = scaled.exp()
    torch.testing.assert_close(out.double(), powers / powers.sum(-1, keepdim=True), **FLOAT32)


@pytest.mark.parametrize("sigma", [0, 0.0])
def test_sigma_must_not_be_zero(sigma):
    with pytest.raises(ValueError, match="logit_sigma must not be 0"):
        ClassifierPoolerHead(logit_sigma=sigma)


def test_dimensions_do_not_cut_logits():
    logits = packed([2])
    assert ClassifierPoolerHead()(logits, rows_of(2, "classify", dimensions=3)).shape == (2, 8)
