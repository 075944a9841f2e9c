"""Causal rows over the budget run in pieces, to the same result; no other row is cut."""

from dataclasses import replace

import numpy as np
import pytest

from poolembed.config import ModelConfig, PoolerConfig
from poolembed.runner.load import load_runner
from tests.runner.backbones import Pieces, with_backbone
from tests.runner.zoo import RAW, UNIT

PREFILLED = [
    ("qwen2-last", "embed"),
    ("qwen3-last", "embed"),
    ("llama-last", "embed"),
    ("mistral-last", "embed"),
    ("mistral-last", "token_embed"),
    ("gpt2-seqcls", "classify"),
    ("qwen2-rm", "classify"),
    ("qwen2-rm", "token_classify"),
    ("qwen2-prm", "token_classify"),
    ("qwen3-causal-reranker", "classify"),
]


@pytest.mark.parametrize("budget", [16, 64])
@pytest.mark.parametrize(("family", "task"), PREFILLED)
def test_long_causal_rows_run_in_pieces_and_give_the_same(own_runner, family, task, budget):
    own = own_runner(family)
    steps = "3 * 4 is 12.<extra_0>2 + 12 is 14.<extra_0>" if family == "qwen2-prm" else ""
    texts = [f"{steps}the cat sat on the mat. " * 12 + "end", "cat", f"how do I bake bread?{steps} " * 9]
    tokens = own.tokenizers.texts()(texts)
    params = own.params(task)
    whole = replace(own, batch_tokens=8192).pool(tokens, params)
    cut = with_backbone(replace(own, batch_tokens=budget), Pieces)
    found = cut.pool(tokens, params)
    long = [length for length in tokens.lengths.tolist() if length > budget]
    assert cut.backbone.rows == len(long) >= 2
    assert max(cut.backbone.pieces) == budget
    assert sum(cut.backbone.pieces) == sum(long)
    assert cut.backbone.path == "packed"
    np.testing.assert_allclose(found.values, whole.values, rtol=0, atol=RAW)
    assert (found.lengths is None) == (whole.lengths is None)
    if found.lengths is not None:
        assert found.lengths.tolist() == whole.lengths.tolist()


@pytest.mark.parametrize(
    ("family", "options"),
    [
        ("bert-mean", {}),
        ("bert-lasttoken", {}),
        ("gemma3-bidirectional", {}),
        ("qwen2-last", {"seq_pooling_type": "MEAN"}),
        ("qwen2-last", {"seq_pooling_type": "CLS+LAST"}),
    ],
)
def test_rows_that_see_what_follows_or_need_all_their_tokens_are_not_cut(models, family, options):
    own = load_runner(ModelConfig(model=str(models / family), device="cpu"), PoolerConfig(**options), 16)
    cut = with_backbone(own, Pieces)
    tokens = own.tokenizers.texts()(["the cat sat on the mat. " * 12])
    found = cut.pool(tokens, cut.params("embed"))
    assert cut.backbone.rows == 0
    whole = replace(own, batch_tokens=8192).pool(tokens, own.params("embed"))
    np.testing.assert_allclose(found.values, whole.values, rtol=0, atol=UNIT)


def test_a_causal_decoder_declared_bidirectional_is_not_cut(models):
    config = ModelConfig(model=str(models / "qwen2-last"), device="cpu", overrides=(("is_causal", "false"),))
    cut = with_backbone(load_runner(config, None, 16), Pieces)
    cut.pool(cut.tokenizers.texts()(["the cat sat on the mat. " * 12]), cut.params("embed"))
    assert cut.backbone.rows == 0
