"""Packed pooling equals a loop over rows, whatever their lengths and dtype."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from poolembed.poolers import PoolingParams, get_seq_pooling_method, get_tok_pooling_method
from tests.poolers.batches import FLOAT32, batch, packed

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


def cls(row, skip):
    return row[skip]


def last(row, skip):
    return row[-1]


def mean(row, skip):
    return row[skip:].sum(0) / (len(row) - skip)


def mean_sqrt_len(row, skip):
    return row[skip:].sum(0) / math.sqrt(len(row) - skip)


def weighted_mean(row, skip):
    weights = [position + 1 for position in range(skip, len(row))]
    return sum(w * row[skip + i] for i, w in enumerate(weights)) / sum(weights)


def largest(row, skip):
    return torch.stack([column.max() for column in row[skip:].unbind(1)])


METHODS = {
    "CLS": cls,
    "LAST": last,
    "MEAN": mean,
    "MAX": largest,
    "MEAN_SQRT_LEN": mean_sqrt_len,
    "WEIGHTED_MEAN": weighted_mean,
}

ROWS = st.lists(
    st.integers(1, 300).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n - 1))),
    min_size=1,
    max_size=5,
)


def on(device, metadata):
    """The metadata with a cursor for another device."""
    lens = metadata.prompt_lens
    metadata.build_pooling_cursor(lens, lens, torch.device(device))
    if metadata.prompt_token_ids is not None:
        metadata.prompt_token_ids = metadata.prompt_token_ids.to(device)
    return metadata


def need(device):
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("name", "loop"), METHODS.items())
@settings(max_examples=25, deadline=None)
@given(
    rows=ROWS, dtype=st.sampled_from([torch.float32, torch.bfloat16, torch.float16]), exclude=st.booleans()
)
def test_sequence_methods_equal_a_loop_over_rows(device, name, loop, rows, dtype, exclude):
    need(device)
    lens = [length for length, _ in rows]
    skips = [skip if exclude else 0 for _, skip in rows]
    hidden = packed(lens, width=5, dtype=dtype)
    metadata = on(device, batch(lens, excluded=skips if exclude else None))
    pooled = get_seq_pooling_method(name)(hidden.to(device), metadata)
    parts = torch.split(hidden.double(), lens)
    expected = torch.stack([loop(part, skip) for part, skip in zip(parts, skips, strict=True)])
    torch.testing.assert_close(pooled.cpu().double(), expected, **FLOAT32)


@pytest.mark.parametrize("device", DEVICES)
@settings(max_examples=25, deadline=None)
@given(lens=st.lists(st.integers(1, 300), min_size=1, max_size=5), tag=st.sampled_from([None, 0, 1, 2]))
def test_token_methods_equal_a_loop_over_rows(device, lens, tag):
    need(device)
    hidden = packed(lens, width=5)
    ids = [[i % 3 for i in range(length)] for length in lens]
    params = [PoolingParams(task="token_embed", step_tag_id=tag, returned_token_ids=[4, 1]) for _ in lens]
    metadata = on(device, batch(lens, ids=ids, params=params))
    whole = get_tok_pooling_method("ALL")(hidden.to(device), metadata)
    steps = get_tok_pooling_method("STEP")(hidden.to(device), metadata)
    start = 0
    for length, row_ids, row, step in zip(lens, ids, whole, steps, strict=True):
        tokens = [hidden[start + i] for i in range(length)]
        assert torch.equal(row.cpu(), torch.stack(tokens))
        kept = [torch.stack([t[4], t[1]]) for t, i in zip(tokens, row_ids, strict=True) if tag in (None, i)]
        assert torch.equal(step.cpu(), torch.stack(kept) if kept else torch.empty(0, 2))
        start += length


@settings(max_examples=40, deadline=None)
@given(length=st.integers(1, 60), cuts=st.sets(st.integers(1, 59)))
def test_pieces_of_a_row_join_to_the_whole(length, cuts):
    hidden = packed([length], width=5)
    ends = [cut for cut in sorted(cuts) if cut < length] + [length]
    pool = get_tok_pooling_method("ALL")
    states = batch([length]).pooling_states
    start, results = 0, []
    for end in ends:
        metadata = batch([length], scheduled=[end - start], seq_lens=[end], states=states)
        results += pool(hidden[start:end], metadata)
        start = end
    assert results[:-1] == [None] * (len(ends) - 1)
    assert torch.equal(results[-1], hidden)
