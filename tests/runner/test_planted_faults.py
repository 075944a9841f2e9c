"""Faults in what a layer asks for, planted in the packed path alone, make the self-check refuse it."""

import pytest
import torch
from transformers import AttentionInterface, AutoModel

from poolembed.runner.attention_interface import packed_attention
from poolembed.runner.backbone import Backbone
from poolembed.runner.self_check import random_rows, self_check

CPU = torch.device("cpu")


class Faulty(Backbone):
    """Runs packed batches with one thing that layers ask for replaced."""

    replaced = {}  # noqa: RUF012 - each fault is a class of its own

    def use_path(self, path):
        super().use_path(path)
        if path == "packed":
            name = "faulty-" + "-".join(f"{key}-{value}" for key, value in self.replaced.items())
            AttentionInterface.register(name, self.attend)
            self.model.set_attn_implementation(name)

    @classmethod
    def attend(cls, module, query, key, value, attention_mask, **asked):
        asked |= {name: change(asked.get(name)) for name, change in cls.replaced.items()}
        return packed_attention(module, query, key, value, attention_mask, **asked)


class AsAsked(Faulty):
    pass


class CausalFlagDropped(Faulty):
    replaced = {"is_causal": lambda _: False}  # noqa: RUF012


class CausalWhereItIsNot(Faulty):
    replaced = {"is_causal": lambda _: True}  # noqa: RUF012


class WindowIgnored(Faulty):
    replaced = {"sliding_window": lambda _: None}  # noqa: RUF012


class WindowOffByOne(Faulty):
    replaced = {"sliding_window": lambda window: window and window + 1}  # noqa: RUF012


class ScaleIgnored(Faulty):
    replaced = {"scaling": lambda scale: 2 * scale}  # noqa: RUF012


CAUSAL = ["qwen2-last", "qwen3-last", "llama-last", "mistral-last", "gpt2-seqcls"]
BIDIRECTIONAL = ["bert-mean", "modernbert-cls", "gemma3-bidirectional", "nomic-bert-mean"]
WINDOWED = ["mistral-last", "modernbert-cls", "gemma3-bidirectional"]


@pytest.fixture
def check_of(models):
    def check(family, kind):
        model = AutoModel.from_pretrained(models / family).eval()
        vocabulary = model.get_input_embeddings().num_embeddings
        return self_check(kind(model, CPU), random_rows(vocabulary, 512, frozenset(range(5))))

    return check


@pytest.mark.parametrize("family", sorted({*CAUSAL, *BIDIRECTIONAL}))
def test_without_a_fault_every_family_is_packed(check_of, family):
    check = check_of(family, AsAsked)
    assert check.path == "packed"
    assert check.max_difference < 1e-5


@pytest.mark.parametrize(
    ("family", "fault"),
    [
        *((family, CausalFlagDropped) for family in CAUSAL),
        *((family, CausalWhereItIsNot) for family in BIDIRECTIONAL),
        *((family, WindowIgnored) for family in WINDOWED),
        *((family, WindowOffByOne) for family in WINDOWED),
        *((family, ScaleIgnored) for family in ("bert-mean", "llama-last")),
    ],
)
def test_a_planted_fault_is_refused(check_of, family, fault):
    check = check_of(family, fault)
    assert check.path == "equal-length"
    assert "differ from single rows" in check.reason
    assert check.max_difference > 1e-4
