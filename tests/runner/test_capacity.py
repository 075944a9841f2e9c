"""What does not fit is halved, what overflows is computed again, and one row fails alone."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch

from poolembed.runner.backbone import Backbone
from tests.runner.backbones import Overflowing, Small, rows_of, with_backbone
from tests.runner.zoo import UNIT

CPU = torch.device("cpu")
TEXTS = ["the cat sat on the mat", "", "how do I bake bread at home?", "the " * 40, "cat", "cat"]


def test_a_batch_that_does_not_fit_is_halved_until_it_does(own_runner):
    own = own_runner()
    tokens = own.tokenizers.texts()(TEXTS)
    params = own.params("embed")
    expected = own.pool(tokens, params)
    small = with_backbone(replace(own, batch_tokens=8192), Small, room=60)
    found = small.pool(tokens, params)
    assert found.failures == {}
    assert small.backbone.sizes[0] == tokens.lengths.sum() > 60
    assert max(size for size in small.backbone.sizes if size <= 60) > max(tokens.lengths.min(), 20)
    np.testing.assert_allclose(found.values, expected.values, rtol=0, atol=UNIT)


def test_a_row_that_does_not_fit_alone_is_a_failure_and_the_others_are_right(own_runner):
    own = own_runner()
    tokens = own.tokenizers.texts()(TEXTS)
    expected = own.pool(tokens, own.params("embed"))
    small = with_backbone(replace(own, batch_tokens=8192), Small, room=41)
    found = small.pool(tokens, own.params("embed"))
    longest = int(tokens.lengths.argmax())
    assert {row: failure.code for row, failure in found.failures.items()} == {longest: "too_large"}
    assert found.failures[longest].message == "42 tokens do not fit the memory of cpu"
    others = [row for row in range(len(TEXTS)) if row != longest]
    np.testing.assert_allclose(found.values[others], expected.values[others], rtol=0, atol=UNIT)


def test_failed_rows_of_token_tasks_have_no_values(own_runner):
    own = own_runner()
    tokens = own.tokenizers.texts()(TEXTS)
    small = with_backbone(replace(own, batch_tokens=8192), Small, room=41)
    found = small.pool(tokens, own.params("token_embed"))
    longest = int(tokens.lengths.argmax())
    expected = [0 if row == longest else length for row, length in enumerate(tokens.lengths.tolist())]
    assert found.lengths.tolist() == expected
    assert len(found.values) == sum(expected)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("task", ["embed", "token_embed"])
def test_a_row_that_overflows_is_computed_again_in_float32(own_runner, dtype, task):
    own = own_runner(dtype=dtype)
    before = {name: weight.clone() for name, weight in own.backbone.model.state_dict().items()}
    half = with_backbone(own, Overflowing)
    rows, params = rows_of([5, 6, 7], [5, 100, 7], [8, 101, 9], [9, 10, 11]), half.params(task)
    found = half.pool(rows, params)
    assert {row: failure.code for row, failure in found.failures.items()} == {2: "non_finite"}
    # The two that failed run again alone, and nobody else does.
    assert half.backbone.seen[-2:] == (("torch.float32", 1),) * 2
    assert len(half.backbone.seen) == 3
    after = half.backbone.model.state_dict()
    assert half.dtype == dtype
    assert all(torch.equal(after[name], weight) for name, weight in before.items())
    assert all(after[name].dtype == weight.dtype for name, weight in before.items())
    exact = replace(half, backbone=Backbone(copy.deepcopy(half.backbone.model).float(), CPU, "packed"))
    alone = exact.pool(rows_of([5, 100, 7]), params).values
    start, end = (1, 2) if task == "embed" else (3, 6)
    assert (np.abs(found.values[start:end] - alone) < UNIT).all()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_no_bit_of_a_model_is_changed_by_the_way_to_float32_and_back(own_runner, dtype):
    half = with_backbone(own_runner("llama-last", dtype=dtype), Overflowing)
    model, params = half.backbone.model, half.params("embed")

    def tensors():
        return {
            name: (tensor.dtype, tensor.clone())
            for name, tensor in (*model.named_parameters(), *model.named_buffers())
        }

    before, ordinary = tensors(), half.pool(rows_of([5, 6, 7]), params).values
    assert torch.float32 in {kind for kind, _ in before.values()}  # the frequencies of rotary positions
    half.pool(rows_of([5, 100, 7]), params)
    after = tensors()
    assert {name: kind for name, (kind, _) in after.items()} == {
        name: kind for name, (kind, _) in before.items()
    }
    assert all(torch.equal(after[name][1], tensor) for name, (_, tensor) in before.items())
    np.testing.assert_array_equal(half.pool(rows_of([5, 6, 7]), params).values, ordinary)


def test_rows_stay_failures_where_the_weights_do_not_fit_in_float32(own_runner):
    half = with_backbone(own_runner(dtype="bfloat16"), Overflowing)

    class Cramped(type(half.backbone.model)):
        def to(self, dtype):
            self.embeddings.to(dtype)
            raise torch.OutOfMemoryError("no room")

    half.backbone.model.__class__ = Cramped
    found = half.pool(rows_of([5, 100, 7], [5, 6]), half.params("embed"))
    assert {row: failure.code for row, failure in found.failures.items()} == {0: "non_finite"}
    assert {weight.dtype for weight in half.backbone.model.parameters()} == {torch.bfloat16}


def test_what_is_not_finite_in_float32_is_not_tried_again(own_runner):
    full = with_backbone(own_runner(), Overflowing)
    found = full.pool(rows_of([5, 101], [5, 6]), full.params("embed"))
    assert [(row, failure.code) for row, failure in found.failures.items()] == [(0, "non_finite")]
    assert len(full.backbone.seen) == 1


class Failing(Overflowing):
    """Breaks down in float32."""

    def forward(self, batch):
        if self.model.dtype == torch.float32:
            raise RuntimeError("broken")
        return super().forward(batch)


def test_the_precision_comes_back_also_after_an_error(own_runner):
    half = with_backbone(own_runner(dtype="bfloat16"), Failing)
    with pytest.raises(RuntimeError, match="broken"):
        half.pool(rows_of([5, 100, 7]), half.params("embed"))
    assert half.dtype == "bfloat16"


def test_kept_tokens_belong_to_their_rows_also_where_batches_are_halved(own_runner):
    own = own_runner("bert-colbert")
    tokens = own.tokenizers.role("document")(["a, b.", "cat. sat, on. the", "x", "...,,,", "the cat"])
    assert 0 < tokens.kept.sum() < len(tokens.kept)
    whole = own.pool(tokens, own.params("token_embed"))
    small = with_backbone(replace(own, batch_tokens=8192), Small, room=12)
    found = small.pool(tokens, own.params("token_embed"))
    ends = np.cumsum(tokens.lengths)[:-1]
    assert found.lengths.tolist() == [int(row.sum()) for row in np.split(tokens.kept, ends)]
    np.testing.assert_allclose(found.values, whole.values, rtol=0, atol=UNIT)
