"""Attention over packed rows: each token sees tokens of its own row alone."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import torch
from torch.nn.functional import scaled_dot_product_attention

VarlenKernel = Callable[..., Any]

_VARLEN_DTYPES = (torch.float16, torch.bfloat16)

# Up to so many tokens a row, plain products of many small matrices are faster on a CPU than the generic
# kernel: 1.4 to 3 times with two threads; with one thread only where heads are small, 1 to 1.5 times.
SHORT_TOKENS = 24
SMALL_HEAD = 32


class PackingError(Exception):
    """A layer asks for what packed attention does not do; the self-check turns it into a verdict."""


@dataclass(frozen=True, slots=True)
class RowKeys:
    """The keys and values of each row, where prefixes that rows share make them more than its tokens.

    Attributes:
        index: tokens of the batch whose keys each row attends to, end to end, on the device, shape
            (num_keys,), int64: those of its prefix, then its own.
        cu_seq_lens: cumulative number of them, on the device, shape (num_rows + 1,), int32.
        max_length: most keys of a row.
    """

    index: torch.Tensor
    cu_seq_lens: torch.Tensor
    max_length: int


@dataclass(slots=True)
class PackedRows:
    """Where the rows of a packed batch begin and end.

    A prefix that rows share is a row too, before them; it counts as the beginning of each.

    Attributes:
        runs: (number of rows, tokens of each) of neighbours of equal length, in order.
        cu_seq_lens: cumulative lengths on the device, shape (num_rows + 1,), int32; None on the CPU.
        max_length: tokens of the longest row.
        seen_lengths: leading tokens of each row that its tokens attend to, on the device, shape
            (num_rows,), int32; None where every token is seen.
        prefixes: tokens of the batch that the rows of each run continue; None for none.
        keys: the same off the CPU, for kernels that take all rows at once; None where no row has a prefix.
        num_calls: how often attention has been computed with this record.
    """

    runs: list[tuple[int, int]]
    cu_seq_lens: torch.Tensor | None
    max_length: int
    seen_lengths: torch.Tensor | None = None
    prefixes: list[slice | None] | None = None
    keys: RowKeys | None = None
    num_calls: int = field(default=0)


@dataclass(frozen=True, slots=True)
class AttentionLayer:
    """What one attention layer asks for.

    Attributes:
        scale: factor on the products of queries and keys.
        causal: whether a token sees only those before it, and itself.
        window: tokens that it sees on each side, itself included; None for all.
        softcap: bound of the scores; None for none.
        bias: returns what is added to the scores of a row of so many tokens, shape (heads, length, length),
            in the dtype of the queries; None for nothing.
    """

    scale: float
    causal: bool = False
    window: int | None = None
    softcap: float | None = None
    bias: Callable[[int], torch.Tensor] | None = None


def attend(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, rows: PackedRows, layer: AttentionLayer
) -> torch.Tensor:
    """Attend within each row of a packed batch.

    Args:
        q: queries, shape (num_tokens, num_heads, head_size).
        k: keys, shape (num_tokens, num_key_value_heads, head_size).
        v: values, as `k`.
        rows: where rows begin and end; its count of calls goes up.
        layer: what the layer asks for.

    Returns:
        Attention output, shape (num_tokens, num_heads, head_size).

    Raises:
        PackingError: a prefix is shared in a layer that is not causal.
    """
    rows.num_calls += 1
    if rows.prefixes is not None and not layer.causal:
        raise PackingError("tokens of a shared prefix would have to see what follows it")
    kernel = None
    is_plain = layer.softcap is None and layer.bias is None
    if rows.cu_seq_lens is not None and is_plain and q.dtype in _VARLEN_DTYPES:
        kernel = _varlen_kernel()  # pragma: no cover - needs CUDA
    return _grouped(q, k, v, rows, layer) if kernel is None else _varlen(kernel, (q, k, v), rows, layer)


def attend_from_first(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, rows: PackedRows, layer: AttentionLayer
) -> torch.Tensor:
    """Attend from the first token of each row alone, in a layer that is not causal.

    Args:
        q: queries of the first tokens, shape (num_rows, num_heads, head_size).
        k: keys of all tokens, shape (num_tokens, num_heads, head_size).
        v: values, as `k`.
        rows: where rows begin and end; no prefixes are shared.
        layer: what the layer asks for.

    Returns:
        Attention output, shape (num_rows, num_heads, head_size).
    """
    output = torch.empty_like(q)
    start = row = 0
    for count, length in rows.runs:
        end = start + count * length
        keys, values = (t[start:end].unflatten(0, (count, length)).transpose(1, 2) for t in (k, v))
        own = slice(row, row + count)
        mask = _mask(length, layer, None if rows.seen_lengths is None else rows.seen_lengths[own], q)
        mask = None if mask is None else mask[..., :1, :]
        queries = q[own].unsqueeze(2)
        output[own] = scaled_dot_product_attention(
            queries, keys, values, attn_mask=mask, scale=layer.scale
        ).squeeze(2)
        start, row = end, row + count
    return output


def _grouped(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, rows: PackedRows, layer: AttentionLayer
) -> torch.Tensor:
    """One dense call for each run of rows of equal length; tensors are (num_tokens, heads, size)."""
    output = torch.empty(q.shape[0], q.shape[1], v.shape[2], dtype=q.dtype, device=q.device)
    start = row = 0
    prefixes = rows.prefixes or [None] * len(rows.runs)
    for (count, length), prefix in zip(rows.runs, prefixes, strict=True):
        end = start + count * length
        group = [t[start:end].unflatten(0, (count, length)).transpose(1, 2) for t in (q, k, v)]
        if prefix is None:
            seen = None if rows.seen_lengths is None else rows.seen_lengths[row : row + count]
            mask = _mask(length, layer, seen, q)
        else:
            group[1:] = [_after(t[prefix], own) for t, own in zip((k, v), group[1:], strict=True)]
            mask = _mask_after(prefix.stop - prefix.start, length, layer, q.device)
        attended = _dense(group[0], group[1], group[2], layer, mask)
        output[start:end] = attended.transpose(1, 2).flatten(0, 1)
        start, row = end, row + count
    return output


def _dense(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, layer: AttentionLayer, mask: torch.Tensor | None
) -> torch.Tensor:
    """Attention of rows of one length, tensors (num_rows, heads, length, size)."""
    grouped_heads = q.shape[1] != k.shape[1]
    if mask is None and not grouped_heads and _suits_products(q, layer):
        return _products(q, k, v, layer.scale)
    if layer.softcap is None:
        causal = layer.causal and mask is None
        return scaled_dot_product_attention(
            q, k, v, attn_mask=mask, is_causal=causal, scale=layer.scale, enable_gqa=grouped_heads
        )
    if grouped_heads:
        k, v = (t.repeat_interleave(q.shape[1] // t.shape[1], dim=1) for t in (k, v))
    scores = torch.tanh(q @ k.mT * (layer.scale / layer.softcap)) * layer.softcap
    if mask is None and layer.causal:
        mask = torch.ones(q.shape[2], q.shape[2], dtype=torch.bool, device=q.device).tril()
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    return scores.softmax(dim=-1, dtype=torch.float32).to(v.dtype) @ v


def _suits_products(q: torch.Tensor, layer: AttentionLayer) -> bool:
    is_plain = not layer.causal and layer.softcap is None
    # In half precision the generic kernel adds up in float32; products would round every score.
    is_cheap = q.device.type == "cpu" and q.dtype == torch.float32 and q.shape[2] <= SHORT_TOKENS
    return is_plain and is_cheap and (q.shape[3] <= SMALL_HEAD or torch.get_num_threads() > 1)


def _products(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float) -> torch.Tensor:
    """Attention of short rows without a mask, tensors (num_rows, heads, length, size)."""
    q3, k3, v3 = (states.flatten(0, 1) for states in (q, k, v))  # contiguous from here on
    weights = torch.bmm(q3, k3.mT).mul_(scale).softmax(dim=-1)
    return torch.bmm(weights, v3).view(*q.shape[:3], v.shape[3])


def _mask(
    length: int, layer: AttentionLayer, seen: torch.Tensor | None, q: torch.Tensor
) -> torch.Tensor | None:
    """Which keys a query sees, or what is added to scores, broadcastable to (rows, heads, length, length).

    None where it sees all, or all before it in a causal layer.
    """
    visible = _visible(length, layer, seen, q.device)
    if layer.bias is None:
        return visible
    bias = layer.bias(length)
    return bias if visible is None else torch.where(visible, bias, float("-inf"))


def _visible(
    length: int, layer: AttentionLayer, seen: torch.Tensor | None, device: torch.device
) -> torch.Tensor | None:
    windowed = layer.window is not None and length > layer.window
    if not windowed and seen is None:
        return None
    mask = torch.ones(length, length, dtype=torch.bool, device=device)
    if layer.window is not None:
        mask = mask.triu(1 - layer.window).tril(layer.window - 1)
    if layer.causal:
        mask = mask.tril()
    if seen is None:
        return mask
    return mask & (torch.arange(length, device=device) < seen[:, None])[:, None, None]


def _after(prefix: torch.Tensor, own: torch.Tensor) -> torch.Tensor:
    """Put a prefix, shape (num_tokens, heads, size), before rows, shape (num_rows, heads, length, size)."""
    return torch.cat([prefix.transpose(0, 1).expand(len(own), -1, -1, -1), own], dim=2)


def _mask_after(num_before: int, length: int, layer: AttentionLayer, device: torch.device) -> torch.Tensor:
    """Which keys a query of a causal layer sees behind a prefix, shape (length, num_before + length)."""
    mask = torch.ones(length, num_before + length, dtype=torch.bool, device=device).tril(num_before)
    return mask if layer.window is None else mask.triu(num_before + 1 - layer.window)


def _varlen(
    kernel: VarlenKernel, states: tuple[torch.Tensor, ...], rows: PackedRows, layer: AttentionLayer
) -> torch.Tensor:
    """One call for the whole batch, on a device that has a kernel for rows of unequal length."""
    left = -1 if layer.window is None else layer.window - 1
    right = 0 if layer.causal else left
    q, k, v = states
    cu_keys, max_keys = rows.cu_seq_lens, rows.max_length
    if rows.keys is not None:
        # With more keys than queries, the last ones of both belong together.
        k, v, cu_keys, max_keys = (
            k[rows.keys.index],
            v[rows.keys.index],
            rows.keys.cu_seq_lens,
            rows.keys.max_length,
        )
    output: torch.Tensor = kernel(
        q,
        k,
        v,
        rows.cu_seq_lens,
        cu_keys,
        rows.max_length,
        max_keys,
        scale=layer.scale,
        window_size=(left, right),
        enable_gqa=q.shape[1] != k.shape[1],
        seqused_k=rows.seen_lengths,
    )
    return output


@cache
def _varlen_kernel() -> VarlenKernel | None:
    """Return torch's kernel for rows of unequal length; None where this torch has none."""
    try:
        from torch.nn.attention.varlen import varlen_attn
    except ImportError:  # pragma: no cover - torch before 2.9
        return None
    return varlen_attn
