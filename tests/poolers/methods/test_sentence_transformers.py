"""The sequence methods against the Pooling module of sentence-transformers."""

import pytest
import torch
from torch.nn.utils.rnn import pad_sequence

from poolembed.poolers import get_seq_pooling_method
from tests.poolers.batches import FLOAT32, batch, packed

Pooling = pytest.importorskip("sentence_transformers.sentence_transformer.modules.pooling").Pooling

LENS = [9, 4, 23, 5]
MODES = {
    "CLS": "cls",
    "LAST": "lasttoken",
    "MEAN": "mean",
    "MAX": "max",
    "MEAN_SQRT_LEN": "mean_sqrt_len_tokens",
    "WEIGHTED_MEAN": "weightedmean",
    "CLS+MEAN": ("cls", "mean"),
    "MAX+LAST+MEAN_SQRT_LEN": ("max", "lasttoken", "mean_sqrt_len_tokens"),
}


def reference(mode, hidden, prompt_length, padding_side):
    rows = torch.split(hidden, LENS)
    mask = pad_sequence([torch.ones(n) for n in LENS], batch_first=True, padding_side=padding_side)
    features = {
        # Padding that would be noticed: it must not count.
        "token_embeddings": pad_sequence(
            rows, batch_first=True, padding_value=7.0, padding_side=padding_side
        ),
        "attention_mask": mask.long(),
    }
    if prompt_length is not None:
        features["prompt_length"] = prompt_length
    return Pooling(hidden.shape[1], mode, include_prompt=prompt_length is None)(features)[
        "sentence_embedding"
    ]


@pytest.mark.parametrize(("name", "mode"), MODES.items())
@pytest.mark.parametrize("padding_side", ["left", "right"])
@pytest.mark.parametrize("prompt_length", [None, 1, 3])
def test_it_equals_sentence_transformers(name, mode, padding_side, prompt_length):
    hidden = packed(LENS, width=16)
    excluded = None if prompt_length is None else [prompt_length] * len(LENS)
    pooled = get_seq_pooling_method(name)(hidden, batch(LENS, excluded=excluded))
    torch.testing.assert_close(pooled, reference(mode, hidden, prompt_length, padding_side), **FLOAT32)


@pytest.mark.parametrize(("name", "mode"), MODES.items())
def test_half_precision_is_at_least_as_good_as_theirs(name, mode):
    """They round the result to the dtype of the model, this layer does so only where it copies."""
    hidden = packed(LENS, width=16, dtype=torch.bfloat16)
    pooled = get_seq_pooling_method(name)(hidden, batch(LENS))
    theirs = reference(mode, hidden, None, "right")
    torch.testing.assert_close(pooled.float(), theirs.float(), rtol=2**-7, atol=2**-7)
