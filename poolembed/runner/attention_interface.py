"""Packed attention in the place where transformers looks for an attention function.

The rows' boundaries arrive as the keyword argument `packed_rows`, which models hand through to
attention untouched. A model that does not hand it through, or never calls the function, is found out
by the self-check and runs on the equal-length path instead. No mask function is registered: for an
attention function that it does not know, transformers makes no mask.
"""

from typing import Any

import torch
from transformers import AttentionInterface

from poolembed.runner.attention import AttentionLayer, PackingError, attend

PACKED_ATTENTION = "poolembed_packed"


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
    q, k, v = (states[0].transpose(0, 1) for states in (query, key, value))
    return attend(q, k, v, rows, _layer_of(module, query, kwargs))[None], None


def _layer_of(module: torch.nn.Module, query: torch.Tensor, kwargs: dict[str, Any]) -> AttentionLayer:
    causal = kwargs.get("is_causal")
    if causal is None:
        # A checkpoint of a decoder may declare itself bidirectional in its config alone.
        declared = getattr(getattr(module, "config", None), "is_causal", None)
        causal = declared is not False and bool(getattr(module, "is_causal", True))
    scaling = kwargs.get("scaling")
    return AttentionLayer(
        scale=query.shape[-1] ** -0.5 if scaling is None else float(scaling),
        causal=bool(causal),
        window=kwargs.get("sliding_window"),
        softcap=kwargs.get("softcap"),
    )


AttentionInterface.register(PACKED_ATTENTION, packed_attention)
