"""Floating-point operations, against torch's own counter."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoConfig, AutoModel

from benchmarks.flops import flops

SIZES = {
    "vocab_size": 50,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
}


def counted(config, length):
    """What torch counts in the layers, one row alone; the pooler of BERT and embeddings left out."""
    model = AutoModel.from_config(config, attn_implementation="eager").eval()
    if getattr(model, "pooler", None) is not None:
        model.pooler = None
    with FlopCounterMode(display=False) as counter, torch.inference_mode():
        model(torch.arange(length)[None] % 50)
    return counter.get_total_flops()


@pytest.mark.parametrize("family", ["bert", "roberta", "electra"])
def test_plain_encoders_have_the_operations_that_torch_counts(family):
    # As wide as the layers, so that ELECTRA projects no embeddings: those are left out on purpose.
    narrow = {"embedding_size": 32} if family == "electra" else {}
    config = AutoConfig.for_model(family, **SIZES, **narrow)
    expected = sum(counted(config, length) for length in (3, 17))
    assert flops(config.to_dict(), [3, 17]) == expected


def test_gated_layers_and_shared_keys_are_counted_as_torch_does_but_for_the_causal_half():
    config = AutoConfig.for_model("qwen3", **SIZES, num_key_value_heads=2, head_dim=16)
    attention = 2 * 4 * (4 * 16) * 17 * 17
    # The counter may leave out the few operations of rotary positions.
    assert flops(config.to_dict(), [17]) == pytest.approx(counted(config, 17) - attention / 2, rel=0.01)


def test_a_family_that_is_not_known_is_refused():
    with pytest.raises(ValueError, match="mamba"):
        flops({"model_type": "mamba"}, [1])
