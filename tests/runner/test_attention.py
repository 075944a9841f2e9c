"""Packed attention is each row's own attention, written out in float64 for one row and head at a time."""

import math
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from transformers import AttentionInterface

from poolembed.runner.attention import (
    SHORT_TOKENS,
    SMALL_HEAD,
    AttentionLayer,
    PackedRows,
    PackingError,
    RowKeys,
    _varlen,
    _varlen_kernel,
)
from poolembed.runner.attention_interface import PACKED_ATTENTION, packed_attention

HEAD_SIZE = 8

# Sums of a few dozen float64 products in another order.
FLOAT64 = {"rtol": 1e-12, "atol": 1e-12}


class Layer(nn.Module):
    """An attention layer, as far as an attention function looks at it."""

    def __init__(self, *, is_causal=None, config=None):
        super().__init__()
        if is_causal is not None:
            self.is_causal = is_causal
        if config is not None:
            self.config = config


def packed_rows(lengths, **changes):
    runs = []
    for length in lengths:
        if runs and runs[-1][1] == length:
            runs[-1] = (runs[-1][0] + 1, length)
        else:
            runs.append((1, length))
    return PackedRows(**{"runs": runs, "cu_seq_lens": None, "max_length": max(lengths)} | changes)


def states(lengths, heads=4, kv_heads=4, *, seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    shapes = [(1, count, sum(lengths), HEAD_SIZE) for count in (heads, kv_heads, kv_heads)]
    return [torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype) for shape in shapes]


def sees(query, key, causal, window, num_seen):
    """Whether a token of a row sees another one."""
    near = window is None or abs(query - key) < window
    return near and key < num_seen and (key <= query or not causal)


def after_prefixes(lengths, prefix_of, window=None):
    """What each token of a batch sees where row number `prefix_of` of it is the beginning of a row."""
    starts = [sum(lengths[:row]) for row in range(len(lengths))]
    seen = []
    for row, prefix in enumerate(prefix_of):
        before = [] if prefix is None else list(range(starts[prefix], starts[prefix] + lengths[prefix]))
        for position in range(lengths[row]):
            keys = [*before, *range(starts[row], starts[row] + position + 1)]
            seen.append(keys if window is None else keys[-window:])
    return seen


def over_keys(q, k, v, seen, *, scale=HEAD_SIZE**-0.5, softcap=None):
    """Attention of each token and head over the keys that it sees."""
    output = torch.zeros(1, q.shape[2], q.shape[1], HEAD_SIZE, dtype=torch.float64)
    for head in range(q.shape[1]):
        kv_head = head * k.shape[1] // q.shape[1]
        for token, keys in enumerate(seen):
            scores = k[0, kv_head, keys].double() @ q[0, head, token].double() * scale
            if softcap is not None:
                scores = torch.tanh(scores / softcap) * softcap
            output[0, token, head] = scores.softmax(0) @ v[0, kv_head, keys].double()
    return output


def written_out(
    q, k, v, lengths, *, scale=HEAD_SIZE**-0.5, causal=False, window=None, softcap=None, num_seen=None
):
    """Attention of each token of each row and head, as its definition says."""
    heads, kv_heads = q.shape[1], k.shape[1]
    output = torch.zeros(1, sum(lengths), heads, HEAD_SIZE, dtype=torch.float64)
    start = 0
    for length, limit in zip(lengths, num_seen or lengths, strict=True):
        for head in range(heads):
            kv_head = head * kv_heads // heads
            for i in range(length):
                keys = [j for j in range(length) if sees(i, j, causal, window, limit)]
                scores = [float(q[0, head, start + i] @ k[0, kv_head, start + j]) * scale for j in keys]
                if softcap is not None:
                    scores = [math.tanh(score / softcap) * softcap for score in scores]
                weights = torch.tensor(scores, dtype=torch.float64).softmax(0)
                output[0, start + i, head] = sum(
                    weight * v[0, kv_head, start + j].double()
                    for weight, j in zip(weights, keys, strict=True)
                )
        start += length
    return output


# Two prefixes, rows behind them (two of one length), and one on its own.
BEHIND = ([5, 3, 2, 2, 4, 1, 4], [None, None, 0, 0, 0, 1, None])


def rows_behind(**changes):
    lengths, _ = BEHIND
    prefixes = [None, None, slice(0, 5), slice(0, 5), slice(5, 8), None]
    runs = [(1, 5), (1, 3), (2, 2), (1, 4), (1, 1), (1, 4)]
    return packed_rows(lengths, runs=runs, prefixes=prefixes, **changes)


LENGTHS = st.lists(st.integers(1, 9), min_size=1, max_size=5)


@settings(max_examples=60, deadline=None)
@given(
    lengths=LENGTHS,
    heads=st.sampled_from([(4, 4), (4, 2), (4, 1)]),
    causal=st.booleans(),
    window=st.sampled_from([None, 1, 3, 8, 100]),
    seed=st.integers(0, 99),
)
def test_each_row_attends_to_itself_alone(lengths, heads, causal, window, seed):
    q, k, v = states(lengths, *heads, seed=seed)
    output, weights = packed_attention(
        Layer(), q, k, v, None, packed_rows=packed_rows(lengths), is_causal=causal, sliding_window=window
    )
    torch.testing.assert_close(output, written_out(q, k, v, lengths, causal=causal, window=window), **FLOAT64)
    assert weights is None


@settings(max_examples=30, deadline=None)
@given(
    lengths=LENGTHS,
    heads=st.sampled_from([(4, 4), (4, 2)]),
    causal=st.booleans(),
    window=st.sampled_from([None, 3]),
)
def test_scores_are_capped_softly(lengths, heads, causal, window):
    q, k, v = states(lengths, *heads)
    output, _ = packed_attention(
        Layer(),
        q,
        k,
        v,
        None,
        packed_rows=packed_rows(lengths),
        is_causal=causal,
        sliding_window=window,
        softcap=0.5,
    )
    expected = written_out(q, k, v, lengths, causal=causal, window=window, softcap=0.5)
    # The softmax of capped scores runs in float32 whatever the states are, as transformers does.
    torch.testing.assert_close(output, expected, rtol=1e-5, atol=1e-5)


@settings(max_examples=30, deadline=None)
@given(
    lengths=LENGTHS,
    causal=st.booleans(),
    softcap=st.sampled_from([None, 2.0]),
    random=st.randoms(use_true_random=False),
)
def test_tokens_that_are_not_to_be_seen_are_not(lengths, causal, softcap, random):
    num_seen = [random.randint(1, length) for length in lengths]
    q, k, v = states(lengths)
    rows = packed_rows(lengths, seen_lengths=torch.tensor(num_seen))
    output, _ = packed_attention(Layer(), q, k, v, None, packed_rows=rows, is_causal=causal, softcap=softcap)
    expected = written_out(q, k, v, lengths, causal=causal, softcap=softcap, num_seen=num_seen)
    tolerance = FLOAT64 if softcap is None else {"rtol": 1e-5, "atol": 1e-5}
    torch.testing.assert_close(output, expected, **tolerance)


def test_a_window_and_unseen_tokens_hold_together():
    q, k, v = states([9, 9])
    rows = packed_rows([9, 9], seen_lengths=torch.tensor([6, 9]))
    output, _ = packed_attention(Layer(), q, k, v, None, packed_rows=rows, is_causal=False, sliding_window=4)
    expected = written_out(q, k, v, [9, 9], window=4, num_seen=[6, 9])
    torch.testing.assert_close(output, expected, **FLOAT64)


def test_a_layers_own_scale_is_used():
    q, k, v = states([5, 3])
    output, _ = packed_attention(
        Layer(), q, k, v, None, packed_rows=packed_rows([5, 3]), is_causal=False, scaling=0.7
    )
    torch.testing.assert_close(output, written_out(q, k, v, [5, 3], scale=0.7), **FLOAT64)


@pytest.mark.parametrize(
    ("layer", "causal"),
    [
        (Layer(), True),
        (Layer(is_causal=True), True),
        (Layer(is_causal=False), False),
        (Layer(is_causal=True, config=SimpleNamespace(is_causal=False)), False),
        (Layer(is_causal=True, config=SimpleNamespace(is_causal=None)), True),
        (Layer(is_causal=False, config=SimpleNamespace(is_causal=True)), False),
    ],
    ids=["nothing said", "causal", "not causal", "config says no", "config says nothing", "config says yes"],
)
def test_the_layer_says_whether_it_is_causal_where_the_call_does_not(layer, causal):
    q, k, v = states([6])
    output, _ = packed_attention(layer, q, k, v, None, packed_rows=packed_rows([6]))
    torch.testing.assert_close(output, written_out(q, k, v, [6], causal=causal), **FLOAT64)


def test_the_call_wins_over_the_layer():
    q, k, v = states([6])
    output, _ = packed_attention(
        Layer(is_causal=True), q, k, v, None, packed_rows=packed_rows([6]), is_causal=False
    )
    torch.testing.assert_close(output, written_out(q, k, v, [6], causal=False), **FLOAT64)


def test_every_call_is_counted():
    q, k, v = states([2, 2, 1])
    rows = packed_rows([2, 2, 1])
    for _ in range(3):
        packed_attention(Layer(), q, k, v, None, packed_rows=rows)
    assert rows.num_calls == 3


def test_a_model_that_drops_the_boundaries_is_refused():
    q, k, v = states([4])
    with pytest.raises(PackingError, match="boundaries"):
        packed_attention(Layer(), q, k, v, None)


def test_a_model_that_makes_a_batch_of_several_is_refused():
    q, k, v = (state.expand(2, -1, -1, -1) for state in states([4]))
    with pytest.raises(PackingError, match="boundaries"):
        packed_attention(Layer(), q, k, v, None, packed_rows=packed_rows([4]))


@pytest.mark.parametrize("name", ["position_bias", "s_aux", "head_mask"])
def test_a_layer_with_a_bias_of_its_own_is_refused(name):
    q, k, v = states([4])
    with pytest.raises(PackingError, match=name):
        packed_attention(Layer(), q, k, v, None, packed_rows=packed_rows([4]), **{name: torch.zeros(4)})


def test_a_model_with_a_mask_of_its_own_is_refused():
    q, k, v = states([4])
    with pytest.raises(PackingError, match="mask of its own"):
        packed_attention(Layer(), q, k, v, torch.zeros(1, 1, 4, 4), packed_rows=packed_rows([4]))


def test_transformers_finds_the_function_by_its_name():
    assert AttentionInterface()[PACKED_ATTENTION] is packed_attention


@pytest.mark.parametrize("window", [None, 1, 3, 6, 100])
@pytest.mark.parametrize("kv_heads", [4, 2, 1])
def test_rows_behind_a_prefix_see_it_and_themselves(window, kv_heads):
    lengths, prefix_of = BEHIND
    q, k, v = states(lengths, 4, kv_heads)
    output, _ = packed_attention(
        Layer(), q, k, v, None, packed_rows=rows_behind(), is_causal=True, sliding_window=window
    )
    expected = over_keys(q, k, v, after_prefixes(lengths, prefix_of, window))
    torch.testing.assert_close(output, expected, **FLOAT64)


@pytest.mark.parametrize("window", [None, 3])
@pytest.mark.parametrize("kv_heads", [4, 2])
def test_scores_of_a_prefix_are_capped_softly_too(window, kv_heads):
    lengths, prefix_of = BEHIND
    q, k, v = states(lengths, 4, kv_heads)
    output, _ = packed_attention(
        Layer(), q, k, v, None, packed_rows=rows_behind(), is_causal=True, sliding_window=window, softcap=0.5
    )
    expected = over_keys(q, k, v, after_prefixes(lengths, prefix_of, window), softcap=0.5)
    torch.testing.assert_close(output, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_prefixes_in_half_precision_agree_with_the_definition(dtype):
    lengths, prefix_of = BEHIND
    q, k, v = states(lengths, 4, 2, dtype=dtype)
    output, _ = packed_attention(Layer(), q, k, v, None, packed_rows=rows_behind(), is_causal=True)
    expected = over_keys(q, k, v, after_prefixes(lengths, prefix_of))
    assert output.dtype == dtype
    # Half precision has 8 (bfloat16) or 11 significant bits.
    torch.testing.assert_close(output.double(), expected, rtol=2e-2, atol=2e-2)


def test_a_layer_whose_tokens_see_what_follows_has_no_prefixes():
    q, k, v = states(BEHIND[0])
    with pytest.raises(PackingError, match="shared prefix"):
        packed_attention(Layer(), q, k, v, None, packed_rows=rows_behind(), is_causal=False)


def varlen_kernel(q, k, v, cu_q, cu_k, max_q, max_k, *, scale, window_size, enable_gqa, seqused_k):
    """What torch documents for `varlen_attn`, for one window; -1 is no limit on that side."""
    assert (max_q, max_k) == (int(cu_q.diff().max()), int(cu_k.diff().max()))
    assert (int(cu_q[-1]), int(cu_k[-1])) == (len(q), len(k))
    assert enable_gqa == (q.shape[1] != k.shape[1])
    k, v = (states.repeat_interleave(q.shape[1] // k.shape[1], dim=1) for states in (k, v))
    scores = torch.einsum("qhd,khd->hqk", q, k) * scale
    query, key = torch.arange(len(q)), torch.arange(len(k))
    row, key_row = torch.bucketize(query, cu_q[1:], right=True), torch.bucketize(key, cu_k[1:], right=True)
    # Distances are counted from the ends of a row's queries and keys, which belong together.
    distance = (key - cu_k[1:][key_row])[None, :] - (query - cu_q[1:][row])[:, None]
    left, right = (side if side >= 0 else len(k) for side in window_size)
    allowed = (row[:, None] == key_row[None, :]) & (distance >= -left) & (distance <= right)
    if seqused_k is not None:
        allowed &= (key[None, :] - cu_k[row][:, None]) < seqused_k[row][:, None]
    return torch.einsum("hqk,khd->qhd", scores.masked_fill(~allowed, float("-inf")).softmax(-1), v)


def row_keys(device="cpu"):
    """The keys of `rows_behind`, row by row."""
    lengths, prefix_of = BEHIND
    index, bounds = [], [0]
    for row, prefix in enumerate(prefix_of):
        for part in ([] if prefix is None else [prefix]) + [row]:
            index += range(sum(lengths[:part]), sum(lengths[: part + 1]))
        bounds.append(len(index))
    return RowKeys(
        index=torch.tensor(index, device=device),
        cu_seq_lens=torch.tensor(bounds, dtype=torch.int32, device=device),
        max_length=9,
    )


@pytest.mark.parametrize("window", [None, 1, 3, 6])
@pytest.mark.parametrize("kv_heads", [4, 2])
def test_a_kernel_for_unequal_rows_is_given_the_keys_of_prefixes(window, kv_heads):
    lengths, prefix_of = BEHIND
    q, k, v = states(lengths, 4, kv_heads)
    bounds = torch.tensor([0, 5, 8, 10, 12, 16, 17, 21], dtype=torch.int32)
    rows = rows_behind(cu_seq_lens=bounds, keys=row_keys())
    layer = AttentionLayer(scale=0.3, causal=True, window=window, softcap=None)
    output = _varlen(varlen_kernel, tuple(state[0].transpose(0, 1) for state in (q, k, v)), rows, layer)
    expected = over_keys(q, k, v, after_prefixes(lengths, prefix_of, window), scale=0.3)
    torch.testing.assert_close(output[None], expected, **FLOAT64)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("window", [None, 3])
def test_the_kernel_for_unequal_rows_agrees_with_the_definition_behind_prefixes(dtype, window):
    lengths, prefix_of = BEHIND
    on_cpu = states(lengths, 4, 2, dtype=dtype)
    bounds = torch.tensor([0, 5, 8, 10, 12, 16, 17, 21], dtype=torch.int32, device="cuda")
    rows = rows_behind(cu_seq_lens=bounds, keys=row_keys("cuda"))
    output, _ = packed_attention(
        Layer(),
        *(state.cuda() for state in on_cpu),
        None,
        packed_rows=rows,
        is_causal=True,
        sliding_window=window,
    )
    expected = over_keys(*on_cpu, after_prefixes(lengths, prefix_of, window))
    # Half precision has 8 (bfloat16) or 11 significant bits.
    torch.testing.assert_close(output.cpu().double(), expected, rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("window", [None, 1, 3])
@pytest.mark.parametrize("kv_heads", [4, 2])
def test_a_kernel_for_unequal_rows_is_told_what_the_layer_asks_for(causal, window, kv_heads):
    lengths = [7, 7, 4, 1]
    bounds = torch.tensor([0, 7, 14, 18, 19], dtype=torch.int32)
    q, k, v = states(lengths, 4, kv_heads)
    layer = AttentionLayer(scale=0.3, causal=causal, window=window, softcap=None)
    packed = tuple(state[0].transpose(0, 1) for state in (q, k, v))
    output = _varlen(varlen_kernel, packed, packed_rows(lengths, cu_seq_lens=bounds), layer)
    expected = written_out(q, k, v, lengths, scale=0.3, causal=causal, window=window)
    torch.testing.assert_close(output[None], expected, **FLOAT64)


def test_a_kernel_for_unequal_rows_is_told_which_tokens_are_not_seen():
    lengths, num_seen = [7, 7, 4, 1], [3, 7, 2, 1]
    bounds = torch.tensor([0, 7, 14, 18, 19], dtype=torch.int32)
    q, k, v = states(lengths)
    rows = packed_rows(lengths, cu_seq_lens=bounds, seen_lengths=torch.tensor(num_seen, dtype=torch.int32))
    layer = AttentionLayer(scale=0.3, causal=False, window=None, softcap=None)
    output = _varlen(varlen_kernel, tuple(state[0].transpose(0, 1) for state in (q, k, v)), rows, layer)
    expected = written_out(q, k, v, lengths, scale=0.3, num_seen=num_seen)
    torch.testing.assert_close(output[None], expected, **FLOAT64)


def test_this_torch_has_a_kernel_for_unequal_rows():
    assert callable(_varlen_kernel())


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("window", [None, 3])
def test_the_kernel_for_unequal_rows_agrees_with_the_definition(dtype, causal, window):
    lengths = [9, 9, 5, 1]
    on_cpu = states(lengths, 4, 2, dtype=dtype)
    q, k, v = (state.cuda() for state in on_cpu)
    bounds = torch.tensor([0, 9, 18, 23, 24], dtype=torch.int32, device="cuda")
    output, _ = packed_attention(
        Layer(),
        q,
        k,
        v,
        None,
        packed_rows=packed_rows(lengths, cu_seq_lens=bounds),
        is_causal=causal,
        sliding_window=window,
    )
    expected = written_out(*on_cpu, lengths, causal=causal, window=window)
    # Half precision has 8 (bfloat16) or 11 significant bits.
    torch.testing.assert_close(output.cpu().double(), expected, rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("num_threads", [1, 2])
@pytest.mark.parametrize("head_size", [SMALL_HEAD, SMALL_HEAD + 8])
def test_short_rows_in_float32_agree_with_the_definition(num_threads, head_size):
    lengths = [SHORT_TOKENS + 1, SHORT_TOKENS, SHORT_TOKENS, 3, 3, 3, 1]
    generator = torch.Generator().manual_seed(3)
    q, k, v = (torch.randn(1, 2, sum(lengths), head_size, generator=generator) for _ in range(3))
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(num_threads)
        found, _ = packed_attention(Layer(is_causal=False), q, k, v, None, packed_rows=packed_rows(lengths))
    finally:
        torch.set_num_threads(before)
    pieces = [states.double().split(lengths, dim=2) for states in (q, k, v)]
    for output, q64, k64, v64 in zip(found[0].split(lengths), *pieces, strict=True):
        weights = (q64 @ k64.mT * head_size**-0.5).softmax(-1)
        torch.testing.assert_close(output.double(), (weights @ v64)[0].transpose(0, 1), rtol=1e-5, atol=1e-6)
