"""Packed layers give the same numbers, and a model for which they would not stays as it is."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from poolembed.runner.packed_linear import (
    MAX_PACKED_BYTES,
    NO_POINTWISE,
    PackedLinear,
    has_operators,
    pack_linears,
    pays_here,
)
from poolembed.runner.packing import pack
from poolembed.runner.self_check import random_rows
from tests.runner.backbones import rows_of

pytestmark = pytest.mark.skipif(not has_operators(), reason="this build of torch has no oneDNN")

# Sums of a thousand float32 products in another order.
CLOSE = {"rtol": 1e-5, "atol": 1e-5}


class Net:
    """A backbone around any module; a batch's tokens are looked up in a table."""

    def __init__(self, model, dtype=torch.float32):
        self.model = model.eval().to(dtype)
        self.table = torch.randn(20, 8, generator=torch.Generator().manual_seed(1)).to(dtype)

    def forward(self, batch):
        with torch.inference_mode():
            return self.model(self.table[torch.from_numpy(batch.token_ids)][None])[0]


BATCH = pack(rows_of(tuple(range(20))), np.arange(1))


class Silly(nn.Module):
    def forward(self, x):
        return x.sin()


class Twice(nn.Module):
    """Uses what comes out of its layer before the activation as well."""

    def __init__(self):
        super().__init__()
        self.layer, self.act = nn.Linear(8, 8), nn.GELU()

    def forward(self, x):
        inner = self.layer(x)
        return self.act(inner) + inner


class Shared(nn.Module):
    """One activation behind two layers, and elsewhere."""

    def __init__(self, elsewhere):
        super().__init__()
        self.one, self.two, self.act, self.elsewhere = nn.Linear(8, 8), nn.Linear(8, 8), nn.GELU(), elsewhere

    def forward(self, x):
        y = self.act(self.two(self.act(self.one(x))))
        return self.act(y * 2) if self.elsewhere else y


def packed_layers(model):
    return [module for module in model.modules() if isinstance(module, PackedLinear)]


def fused(model):
    return [layer._pointwise[0] + layer._pointwise[2] for layer in packed_layers(model)]


@pytest.mark.parametrize(
    ("activation", "name"),
    [
        (nn.GELU(), "gelunone"),
        (nn.GELU(approximate="tanh"), "gelutanh"),
        (nn.ReLU(), "relu"),
        (nn.SiLU(), "swish"),
        (Silly(), "none"),
        (nn.Tanh(), "none"),
    ],
)
def test_an_activation_is_known_by_what_it_computes(activation, name):
    net = Net(nn.Sequential(nn.Linear(8, 16), activation, nn.Linear(16, 4, bias=False)))
    expected = net.forward(BATCH)
    assert pack_linears(net, BATCH) == 2
    assert fused(net.model) == [name, "none"]
    torch.testing.assert_close(net.forward(BATCH), expected, **CLOSE)


def test_what_is_used_before_its_activation_too_stays_as_it_is():
    net = Net(Twice())
    expected = net.forward(BATCH)
    assert pack_linears(net, BATCH) == 0
    assert type(net.model.layer) is nn.Linear
    assert type(net.model.act) is nn.GELU
    assert torch.equal(net.forward(BATCH), expected)


@pytest.mark.parametrize(("elsewhere", "names"), [(False, ["gelunone"] * 2), (True, ["none"] * 2)])
def test_an_activation_in_several_places_is_fused_in_all_or_none(elsewhere, names):
    net = Net(Shared(elsewhere))
    expected = net.forward(BATCH)
    assert pack_linears(net, BATCH) == 2
    assert fused(net.model) == names
    torch.testing.assert_close(net.forward(BATCH), expected, **CLOSE)


def test_a_layer_held_in_two_places_is_packed_in_both():
    layer = nn.Linear(8, 8)
    net = Net(nn.Sequential(layer, nn.ReLU(), layer, nn.ReLU()))
    expected = net.forward(BATCH)
    assert pack_linears(net, BATCH) == 1
    assert net.model[0] is net.model[2]
    torch.testing.assert_close(net.forward(BATCH), expected, **CLOSE)


class Odd(nn.Linear):
    def forward(self, x):
        return super().forward(x) + 1


def test_subclasses_of_linear_and_other_precisions_are_left_alone():
    net = Net(nn.Sequential(Odd(8, 8), nn.Linear(8, 8)))
    assert pack_linears(net, BATCH) == 1
    assert type(net.model[0]) is Odd
    assert pack_linears(Net(nn.Sequential(nn.Linear(8, 8)), torch.float64), BATCH) == 0
    assert pack_linears(Net(nn.Sequential(nn.Identity())), BATCH) == 0


def test_in_bfloat16_numbers_differ_by_rounding_alone():
    net = Net(nn.Sequential(nn.Linear(8, 64), nn.GELU(), nn.Linear(64, 8)), torch.bfloat16)
    expected = net.forward(BATCH)
    num_packed = pack_linears(net, BATCH)
    assert num_packed in (0, 2)  # 0 where oneDNN has no bfloat16 for this CPU
    assert len(packed_layers(net.model)) == num_packed
    torch.testing.assert_close(net.forward(BATCH), expected, rtol=0.02, atol=0.02)


def test_large_models_are_left_alone():
    with torch.device("meta"):
        layer = nn.Linear(1 << 14, MAX_PACKED_BYTES >> 15)
    assert pack_linears(SimpleNamespace(model=nn.Sequential(layer)), BATCH) == 0


def test_a_layer_in_another_precision_uses_its_own_weight():
    layer = nn.Linear(8, 8)
    packed = PackedLinear(layer, nn.ReLU(), ("relu", [], "")).double()
    x = torch.randn(3, 8, dtype=torch.float64)
    torch.testing.assert_close(packed(x), (x @ layer.weight.T.double() + layer.bias.double()).relu())


def test_leading_dimensions_stay():
    layer = nn.Linear(8, 4)
    with torch.inference_mode():
        x = torch.randn(2, 3, 8).transpose(0, 1)
        found = PackedLinear(layer, nn.Identity(), NO_POINTWISE)(x)
        torch.testing.assert_close(found, layer(x), **CLOSE)


FAMILIES = (
    "bert-mean",
    "deberta-v2-mean",
    "modernbert-cls",
    "nomic-bert-mean",
    "qwen3-last",
    "t5-encoder-mean",
)


@pytest.mark.parametrize("family", FAMILIES)
def test_models_of_the_zoo_keep_their_numbers(own_runner, family):
    backbone = own_runner(family).backbone
    rows = random_rows(backbone.model.get_input_embeddings().num_embeddings, 64, frozenset(range(10)))
    batches = [pack(rows, np.asarray([row])) for row in range(len(rows.lengths))]
    expected = [backbone.forward(batch) for batch in batches]
    # Two layers of at least six; ours have one product for queries, keys and values.
    assert pack_linears(backbone, batches[0]) >= (8 if backbone.model_impl == "poolembed" else 12)
    for batch, before in zip(batches, expected, strict=True):
        torch.testing.assert_close(backbone.forward(batch), before, **CLOSE)


def test_only_a_cpu_that_was_measured_is_taken_for_faster():
    assert not pays_here(torch.device("cuda"))
    assert pays_here(torch.device("cpu")) == (torch.backends.cpu.get_cpu_capability() == "AVX512")
