"""Attention over packed rows, in the place where transformers looks for an attention function.

The rows' boundaries arrive as the keyword argument `packed_rows`, which models hand through to
attention untouched. A model that does not hand it through, or never calls the function, is found out
by the self-check and runs on the equal-length path instead. No mask function is registered: for an
attention function that it does not know, transformers makes no mask.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import torch
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface

PACKED_ATTENTION = "poolembed_packed"

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


def packed_attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    **kwargs: Any,  # noqa: ANN401 - what a layer passes differs by architecture
) -> tuple[torch.Tensor, None]:
    """Attend within each row of a packed batch.

    Args:
        module: the attention layer; its `is_causal` decides where the call does not say.
        query: shape (1, num_heads, num_tokens, head_size).
        key: shape (1, num_key_value_heads, num_tokens, head_size).
        value: as `key`.
        attention_mask: must be None, since rows are told apart by `packed_rows`.
        **kwargs: `packed_rows` (required), `scaling`, `is_causal`, `sliding_window`, `softcap`.

    Returns:
        Attention output, shape (1, num_tokens, num_heads, head_size), and None for the weights.

    Raises:
        PackingError: boundaries are missing, or the layer adds a mask or a bias of its own.
    """
    rows = kwargs.get("packed_rows")
    if rows is None or query.shape[0] != 1:
        raise PackingError("the model does not hand the rows' boundaries to its attention layers")
    for name in ("position_bias", "s_aux", "head_mask"):
        if kwargs.get(name) is not None:
            raise PackingError(f"the attention layers use {name}")
    if attention_mask is not None:
        raise PackingError("the model makes an attention mask of its own")
    rows.num_calls += 1
    layer = _layer_of(module, query, kwargs)
    if rows.prefixes is not None and not layer.causal:
        raise PackingError("tokens of a shared prefix would have to see what follows it")
    q, k, v = (states[0].transpose(0, 1) for states in (query, key, value))
    kernel = None
    if rows.cu_seq_lens is not None and layer.softcap is None and q.dtype in _VARLEN_DTYPES:
        kernel = _varlen_kernel()  # pragma: no cover - needs CUDA
    output = _grouped(q, k, v, rows, layer) if kernel is None else _varlen(kernel, (q, k, v), rows, layer)
    return output[None], None


@dataclass(frozen=True, slots=True)
class _Layer:
    """What one attention layer asks for; `window` counts the tokens on each side, itself included."""

    scale: float
    causal: bool
    window: int | None
    softcap: float | None


def _layer_of(module: torch.nn.Module, query: torch.Tensor, kwargs: dict[str, Any]) -> _Layer:
    causal = kwargs.get("is_causal")
    if causal is None:
        # A checkpoint of a decoder may declare itself bidirectional in its config alone.
        declared = getattr(getattr(module, "config", None), "is_causal", None)
        causal = declared is not False and bool(getattr(module, "is_causal", True))
    scaling = kwargs.get("scaling")
    return _Layer(
        scale=query.shape[-1] ** -0.5 if scaling is None else float(scaling),
        causal=bool(causal),
        window=kwargs.get("sliding_window"),
        softcap=kwargs.get("softcap"),
    )


def _grouped(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, rows: PackedRows, layer: _Layer
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
            mask = _mask(length, layer, seen, q.device)
        else:
            group[1:] = [_after(t[prefix], own) for t, own in zip((k, v), group[1:], strict=True)]
            mask = _mask_after(prefix.stop - prefix.start, length, layer, q.device)
        attended = _dense(group[0], group[1], group[2], layer, mask)
        output[start:end] = attended.transpose(1, 2).flatten(0, 1)
        start, row = end, row + count
    return output


def _dense(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, layer: _Layer, mask: torch.Tensor | None
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


def _suits_products(q: torch.Tensor, layer: _Layer) -> bool:
    is_plain = not layer.causal and layer.softcap is None
    # In half precision the generic kernel adds up in float32; products would round every score.
    is_cheap = q.device.type == "cpu" and q.dtype == torch.float32 and q.shape[2] <= SHORT_TOKENS
    return is_plain and is_cheap and (q.shape[3] <= SMALL_HEAD or torch.get_num_threads() > 1)


def _products(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float) -> torch.Tensor:
    """Attention of short rows without a mask, tensors (num_rows, heads, length, size)."""
    q3, k3, v3 = (states.flatten(0, 1) for states in (q, k, v))  # contiguous from here on
    weights = torch.bmm(q3, k3.mT).mul_(scale).softmax(dim=-1)
    return torch.bmm(weights, v3).view(*q.shape[:3], v.shape[3])


def _mask(length: int, layer: _Layer, seen: torch.Tensor | None, device: torch.device) -> torch.Tensor | None:
    """Which keys a query sees, broadcastable to (num_rows, heads, length, length).

    None where it sees all, or all before it in a causal layer.
    """
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


def _mask_after(num_before: int, length: int, layer: _Layer, device: torch.device) -> torch.Tensor:
    """Which keys a query of a causal layer sees behind a prefix, shape (length, num_before + length)."""
    mask = torch.ones(length, num_before + length, dtype=torch.bool, device=device).tril(num_before)
    return mask if layer.window is None else mask.triu(num_before + 1 - layer.window)


def _varlen(
    kernel: VarlenKernel, states: tuple[torch.Tensor, ...], rows: PackedRows, layer: _Layer
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


AttentionInterface.register(PACKED_ATTENTION, packed_attention)
