"""Token heads against float64 arithmetic written out here."""

import pytest
import torch
from torch import nn

from poolembed.poolers import (
    LateChunkingParams,
    PoolerClassify,
    PoolerNormalize,
    PoolingParams,
    TokenClassifierPoolerHead,
    TokenEmbeddingPoolerHead,
)
from poolembed.poolers.token_heads import chunk_means
from tests.poolers.batches import FLOAT32, mixed_rows, packed, rows_of

HEADS = [TokenEmbeddingPoolerHead, TokenClassifierPoolerHead]
TASKS = {TokenEmbeddingPoolerHead: "token_embed", TokenClassifierPoolerHead: "token_classify"}


def linear(out):
    torch.manual_seed(3)
    return nn.Linear(8, out).requires_grad_(False)


def applied(layer, vectors):
    return vectors.double() @ layer.weight.double().T + layer.bias.double()


def unit(vectors):
    return vectors / vectors.square().sum(-1, keepdim=True).sqrt()


def one(head, vectors, **params):
    (out,) = head([vectors], rows_of(1, TASKS[type(head)], **params))
    return out


@pytest.mark.parametrize("head", HEADS)
def test_each_head_serves_its_own_task(head):
    assert head().get_supported_tasks() == {TASKS[head]}


@pytest.mark.parametrize("head", HEADS)
def test_without_parts_vectors_pass_as_they_are(head):
    vectors = packed([3], dtype=torch.bfloat16)
    out = one(head(), vectors)
    assert out.dtype == torch.bfloat16
    assert torch.equal(out, vectors)


@pytest.mark.parametrize("head", HEADS)
def test_unfinished_rows_stay_none(head):
    vectors = packed([3])
    assert head().forward_chunk(None, PoolingParams(task=TASKS[head])) is None
    out = head(activation=PoolerNormalize())([None, vectors, None], rows_of(3, TASKS[head]))
    assert out[0] is None
    assert out[2] is None
    torch.testing.assert_close(out[1].double(), unit(vectors.double()), **FLOAT32)


@pytest.mark.parametrize("head", HEADS)
def test_there_must_be_an_entry_for_each_row(head):
    with pytest.raises(ValueError, match="1 pooled entries for 2 rows"):
        head()([packed([3])], rows_of(2, TASKS[head]))


@pytest.mark.parametrize("head", HEADS)
def test_an_empty_batch_gives_nothing(head):
    assert head()([], rows_of(0, TASKS[head])) == []


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_vectors_are_cast_to_the_head_dtype(head, dtype):
    assert one(head(head_dtype=dtype), packed([3], dtype=torch.bfloat16)).dtype == dtype


@pytest.mark.parametrize(
    ("head", "part"), [(TokenEmbeddingPoolerHead, "projector"), (TokenClassifierPoolerHead, "classifier")]
)
def test_layers_run_in_the_head_dtype(head, part):
    vectors = packed([3], dtype=torch.bfloat16)
    layer = linear(5)
    out = one(head(**{part: layer}, head_dtype=torch.float32), vectors)
    torch.testing.assert_close(out.double(), applied(layer, vectors), **FLOAT32)


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("flag", [True, None])
def test_the_activation_is_applied_unless_refused(head, flag):
    vectors = packed([3])
    out = one(head(activation=PoolerNormalize()), vectors, use_activation=flag)
    torch.testing.assert_close(out.double(), unit(vectors.double()), **FLOAT32)
    assert torch.equal(one(head(activation=PoolerNormalize()), vectors, use_activation=False), vectors)


@pytest.mark.parametrize("head", HEADS)
def test_each_row_decides_for_itself(head):
    vectors = packed([3])
    metadata = mixed_rows(TASKS[head], {"use_activation": False}, {})
    off, on = head(activation=PoolerNormalize())([vectors, vectors], metadata)
    assert torch.equal(off, vectors)
    torch.testing.assert_close(on.double(), unit(vectors.double()), **FLOAT32)


def test_dimensions_are_cut_row_by_row():
    vectors = packed([3])
    out = TokenEmbeddingPoolerHead()([vectors] * 2, mixed_rows("token_embed", {"dimensions": 2}, {}))
    assert torch.equal(out[0], vectors[:, :2])
    assert torch.equal(out[1], vectors)


def test_embeddings_are_projected_then_cut_then_normalised():
    vectors = packed([3])
    layer = linear(6)
    out = one(TokenEmbeddingPoolerHead(layer, torch.float32, PoolerNormalize()), vectors, dimensions=4)
    torch.testing.assert_close(out.double(), unit(applied(layer, vectors)[:, :4]), **FLOAT32)


@pytest.mark.parametrize(
    ("mean", "sigma", "expected"),
    [
        (0.5, None, lambda x: x - 0.5),
        (None, 4.0, lambda x: x / 4.0),
        (0.5, -2.0, lambda x: (x - 0.5) / -2.0),
    ],
)
def test_logits_are_calibrated(mean, sigma, expected):
    logits = packed([3], width=2)
    out = one(TokenClassifierPoolerHead(logit_mean=mean, logit_sigma=sigma), logits)
    torch.testing.assert_close(out.double(), expected(logits.double()), **FLOAT32)


def test_logits_are_classified_then_calibrated_then_activated():
    vectors = packed([3])
    layer = linear(4)
    out = one(TokenClassifierPoolerHead(layer, 0.7, 3.0, torch.float32, PoolerClassify()), vectors)
    powers = ((applied(layer, vectors) - 0.7) / 3.0).exp()
    torch.testing.assert_close(out.double(), powers / powers.sum(-1, keepdim=True), **FLOAT32)


@pytest.mark.parametrize("sigma", [0, 0.0])
def test_sigma_must_not_be_zero(sigma):
    with pytest.raises(ValueError, match="logit_sigma must not be 0"):
        TokenClassifierPoolerHead(logit_sigma=sigma)


def grouped(vectors, size):
    """Means of consecutive groups in float64, written out."""
    tokens = vectors.double().tolist()
    means = []
    for start in range(0, len(tokens), size):
        group = tokens[start : start + size]
        means.append([sum(column) / len(group) for column in zip(*group, strict=True)])
    return torch.tensor(means, dtype=torch.float64).reshape(len(means), vectors.shape[1])


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8, 100, 2**62])
@pytest.mark.parametrize("num_tokens", [1, 6, 7, 8])
def test_chunks_are_means_of_consecutive_tokens(size, num_tokens):
    vectors = packed([num_tokens], dtype=torch.bfloat16)
    means = chunk_means(vectors, LateChunkingParams(size))
    assert means.dtype == torch.float32
    torch.testing.assert_close(means.double(), grouped(vectors, size), **FLOAT32)


def test_no_tokens_make_no_chunks():
    assert chunk_means(torch.zeros(0, 8), LateChunkingParams(3)).shape == (0, 8)


@pytest.mark.parametrize(
    ("head_dtype", "expected"),
    [(None, torch.bfloat16), (torch.float32, torch.float32), (torch.float16, torch.float16)],
)
def test_chunks_come_back_in_the_dtype_of_the_row_or_head(head_dtype, expected):
    vectors = packed([7], dtype=torch.bfloat16)
    out = one(
        TokenEmbeddingPoolerHead(head_dtype=head_dtype), vectors, late_chunking_params=LateChunkingParams(3)
    )
    assert out.dtype == expected
    assert torch.equal(out, grouped(vectors, 3).to(torch.float32).to(expected))


def test_chunks_are_made_before_projection_and_normalisation():
    vectors = packed([7])
    layer = nn.Sequential(linear(6), nn.Tanh())
    head = TokenEmbeddingPoolerHead(layer, torch.float32, PoolerNormalize())
    out = one(head, vectors, late_chunking_params=LateChunkingParams(3), dimensions=4)
    expected = unit(applied(layer[0], grouped(vectors, 3)).tanh()[:, :4])
    torch.testing.assert_close(out.double(), expected, **FLOAT32)
