"""Layers of eight bits: exact products of rounded numbers, a row at a time, close to float32."""

import math
from collections import Counter

import numpy as np
import pytest
import torch
from torch import nn

from poolembed.config import ModelConfig
from poolembed.errors import ConfigError
from poolembed.runner import int8_linear, load_runner
from poolembed.runner.int8_linear import Int8Linear, SharedInput, most_activation, quantize_linears
from poolembed.runner.packing import pack
from tests.runner.backbones import rows_of

# Least cosine to float32; T5 has no norm that keeps its activations together.
FAMILIES = {
    "bert-mean": 0.99,
    "roberta-mean": 0.99,
    "modernbert-cls": 0.99,
    "qwen3-last": 0.99,
    "mpnet-mean": 0.99,
    "t5-encoder-mean": 0.95,
}


@pytest.fixture
def rng():
    return np.random.default_rng(3)


def layer_of(weight, bias):
    layer = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None)
    with torch.no_grad():
        layer.weight.copy_(torch.from_numpy(weight))
        if bias is not None:
            layer.bias.copy_(torch.from_numpy(bias))
    return layer


def by_definition(x, weight, bias, most):
    """One number after the other, in float64: a scale a row, a scale and an offset a token."""
    result = np.zeros((len(x), len(weight)))
    for i, token in enumerate(x.astype(np.float64)):
        step = (token.max() - token.min()) / most
        steps = [math.floor((value - token.min()) / step + 0.5) for value in token]
        for j, row in enumerate(weight.astype(np.float64)):
            scale = np.abs(row).max() / 127
            total = sum(
                (token.min() + step * count) * scale * round(w / scale)
                for count, w in zip(steps, row, strict=True)
            )
            result[i, j] = total + (0 if bias is None else bias[j])
    return result


@pytest.mark.parametrize("with_bias", [True, False])
@pytest.mark.parametrize("shift", [0.0, 5.0, -0.2])
def test_a_layer_is_its_definition(rng, with_bias, shift):
    x = (rng.standard_normal((5, 48)) + shift).astype(np.float32)
    weight = rng.standard_normal((7, 48)).astype(np.float32)
    bias = rng.standard_normal(7).astype(np.float32) if with_bias else None
    most = most_activation()
    with torch.inference_mode():
        found = Int8Linear(layer_of(weight, bias), most)(torch.from_numpy(x)[None])[0].numpy()
    expected = by_definition(x, weight, bias, most)
    # A value that lies between two steps may be rounded to either in float32: one step of one input.
    one_step = np.ptp(x, axis=1).max() / most * np.abs(weight).max()
    assert np.abs(found - expected).max() < one_step
    assert np.median(np.abs(found - expected)) < 1e-4
    plain = x @ weight.T + (0 if bias is None else bias)
    assert np.linalg.norm(found - plain) < 0.03 * np.linalg.norm(plain)


def test_a_token_is_not_changed_by_those_beside_it(rng):
    layer = Int8Linear(layer_of(rng.standard_normal((9, 32)).astype(np.float32), None), most_activation())
    x = torch.from_numpy(rng.standard_normal((4, 32)).astype(np.float32))
    x[3] *= 1000
    with torch.inference_mode():
        together = layer(x)
        for i in range(4):
            assert torch.equal(layer(x[i : i + 1])[0], together[i])


def test_numbers_without_a_range_are_kept(rng):
    weight = rng.standard_normal((3, 16)).astype(np.float32)
    weight[1] = 0
    layer = Int8Linear(layer_of(weight, np.ones(3, np.float32)), most_activation())
    x = torch.stack([torch.zeros(16), torch.full((16,), 2.5)])
    with torch.inference_mode():
        found = layer(x).numpy()
    np.testing.assert_allclose(found[0], 1, rtol=0, atol=0)
    np.testing.assert_allclose(found[1], 2.5 * weight.sum(1) + 1, rtol=0, atol=0.05)
    assert found[1, 1] == 1


def test_layers_that_read_one_input_round_it_once_and_another_anew(rng):
    weights = [rng.standard_normal((4, 32)).astype(np.float32) for _ in range(3)]
    most = most_activation()
    shared = SharedInput(3)
    together = [Int8Linear(layer_of(weight, None), most, shared) for weight in weights]
    alone = [Int8Linear(layer_of(weight, None), most) for weight in weights]
    first, second = (torch.from_numpy(rng.standard_normal((5, 32)).astype(np.float32)) for _ in range(2))
    with torch.inference_mode():
        # The second is read before the third layer has read the first.
        order = [(0, first), (1, first), (0, second), (1, second), (2, second), (2, first), (0, first)]
        for layer, x in order:
            assert torch.equal(together[layer](x), alone[layer](x))
        # After its last reader nothing is kept, so that a tensor whose numbers change is read anew.
        for layer in together:
            layer(second)
        second += 1
        assert torch.equal(together[0](second), alone[0](second))


def test_a_transformers_query_key_and_value_share_their_input(models):
    model = ModelConfig(model=str(models / "nomic-bert-mean"), device="cpu", dtype="int8")
    layers = [
        module
        for module in load_runner(model, None, 512).backbone.model.modules()
        if isinstance(module, Int8Linear)
    ]
    sizes = Counter(Counter(id(layer._shared) for layer in layers).values())
    # Two layers, each of a group of three, one of two (a gate and what it lets through) and two layers alone.
    assert sizes == {3: 2, 2: 2, 1: 4}


@pytest.mark.parametrize(("family", "least"), FAMILIES.items())
def test_vectors_are_close_to_float32(models, runner_of, family, least):
    runner = load_runner(ModelConfig(model=str(models / family), device="cpu", dtype="int8"), None, 512)
    assert runner.dtype == "int8"
    assert runner.int8_cosine > least
    exact = runner_of(family)
    texts = ["one two three", "four", "five six seven eight nine " * 5]
    tokenized = exact.tokenizers.texts("")(texts)
    found = torch.from_numpy(runner.pool(tokenized, runner.params("embed")).values)
    expected = torch.from_numpy(exact.pool(tokenized, exact.params("embed")).values)
    assert not torch.equal(found, expected)
    assert torch.cosine_similarity(found, expected).min() > least


def test_heads_stay_in_float32(models):
    model = ModelConfig(model=str(models / "bert-seqcls"), device="cpu", dtype="int8")
    runner = load_runner(model, None, 512)
    assert not [each for each in runner.pooler.modules() if isinstance(each, Int8Linear)]
    assert [each for each in runner.backbone.model.modules() if isinstance(each, Int8Linear)]
    assert runner.describe(runner.params("classify"))["int8_cosine"].startswith("0.99")


def test_products_that_are_cut_off_are_given_up(monkeypatch):
    def cut(steps, packed, scales, zero_points):
        pairs = steps.long()[:, None, :] * packed.long()[None]
        pairs = pairs.unflatten(-1, (-1, 2)).sum(-1).clamp(-(2**15), 2**15 - 1)
        return pairs.sum(-1).float()

    monkeypatch.setattr(int8_linear, "_product", cut)
    monkeypatch.setattr(torch.ops.onednn, "qlinear_prepack", lambda weight, _: weight)
    most_activation.cache_clear()
    assert most_activation() == 127
    most_activation.cache_clear()


@pytest.mark.parametrize("error", [None, RuntimeError("no such kernel"), AttributeError("no such operator")])
def test_a_machine_without_exact_products_is_refused(monkeypatch, error):
    def product(*_):
        if error is not None:
            raise error
        return torch.zeros(1)

    monkeypatch.setattr(int8_linear, "_product", product)
    most_activation.cache_clear()
    with pytest.raises(ConfigError, match="has no exact products of eight bits"):
        most_activation()
    most_activation.cache_clear()


def test_a_model_without_linear_layers_is_refused():
    class Plain:
        model = nn.Identity()

        def forward(self, batch):
            return torch.ones(batch.num_tokens, 4)

    with pytest.raises(ConfigError, match="no linear layers"):
        quantize_linears(Plain(), pack(rows_of((5, 6)), np.arange(1)), nn.Identity())
