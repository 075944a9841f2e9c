"""A head that was taken off its model gives, for a hidden state, what the whole model gives."""

import copy

import pytest
import torch

from poolembed.runner.heads import ModelHead, detach_decoder
from tests.runner.tiny import CONFIGS, tiny

IDS = torch.tensor([[5, 17, 23, 42, 11, 9, 30]])

# Where the vector that the head reads stands in a row.
FIRST = [
    "Albert",
    "Bert",
    "DebertaV2",
    "DistilBert",
    "Electra",
    "MPNet",
    "ModernBert",
    "Roberta",
    "XLMRoberta",
]
LAST = ["GPT2", "Gemma", "Llama", "Mistral", "Phi", "Qwen2", "Qwen3"]


@torch.no_grad()
def whole(model):
    """Logits of the whole model, and hidden states of the transformer in it."""
    mask = torch.ones_like(IDS)
    return (
        model(input_ids=IDS, attention_mask=mask).logits[0],
        model.base_model(input_ids=IDS, attention_mask=mask).last_hidden_state[0],
    )


def test_every_family_here_is_tried():
    assert sorted(FIRST + LAST) == sorted(CONFIGS)


@pytest.mark.parametrize("family", FIRST + LAST)
@torch.no_grad()
def test_a_classification_head(family):
    model = tiny(family, "ForSequenceClassification", num_labels=3)
    expected, hidden_states = whole(model)
    place = 0 if family in FIRST else -1
    found = ModelHead(model)(hidden_states[[place, 2, place]])
    assert found.shape == (3, 3)
    torch.testing.assert_close(found[[0, 2]], expected.expand(2, 3), rtol=0, atol=1e-6)
    assert (found[1] - expected).abs().max() > 1e-3


@torch.no_grad()
def test_a_head_that_averages_gets_the_average():
    model = tiny("ModernBert", "ForSequenceClassification", num_labels=3, classifier_pooling="mean")
    expected, hidden_states = whole(model)
    found = ModelHead(model)(hidden_states.mean(dim=0, keepdim=True))
    torch.testing.assert_close(found[0], expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    "family",
    [
        "Albert",
        "Bert",
        "DebertaV2",
        "DistilBert",
        "Electra",
        "GPT2",
        "Llama",
        "MPNet",
        "ModernBert",
        "Roberta",
    ],
)
@torch.no_grad()
def test_a_token_classification_head(family):
    model = tiny(family, "ForTokenClassification", num_labels=5)
    expected, hidden_states = whole(model)
    found = ModelHead(model, with_pooler=False)(hidden_states)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("family", ["Bert", "DistilBert", "ModernBert", "Roberta", "Electra"])
@torch.no_grad()
def test_a_language_model_head_ends_before_its_decoder(family):
    model = tiny(family, "ForMaskedLM")
    expected, hidden_states = whole(model)
    decoder = detach_decoder(model)
    features = ModelHead(model, with_pooler=False)(hidden_states)
    logits = features @ decoder.weight.T + (0 if decoder.bias is None else decoder.bias)
    torch.testing.assert_close(logits, expected, rtol=0, atol=1e-5)


@torch.no_grad()
def test_heads_run_in_float32_whatever_the_model_runs_in():
    model = tiny("Bert", "ForSequenceClassification", num_labels=3)
    reference = ModelHead(copy.deepcopy(model).bfloat16().float())
    half = ModelHead(model.bfloat16())
    states = torch.randn(2, 32, generator=torch.Generator().manual_seed(1))
    found = half(states)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, reference(states), rtol=0, atol=0)


@torch.no_grad()
def test_a_model_without_a_padding_token_has_a_head_all_the_same():
    model = tiny("Qwen3", "ForSequenceClassification", num_labels=2, pad_token_id=None)
    assert model.config.pad_token_id is None
    expected, hidden_states = whole(model)
    torch.testing.assert_close(ModelHead(model)(hidden_states[-1:])[0], expected, rtol=0, atol=1e-6)
