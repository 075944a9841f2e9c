"""The modules of an encoder, and what they compute."""

import math
from collections.abc import Callable
from functools import cache
from types import SimpleNamespace

import torch
from torch import nn
from torch.nn.functional import embedding, scaled_dot_product_attention

from poolembed.runner.attention import AttentionLayer, PackedRows, attend, attend_from_first
from poolembed.runner.encoder.settings import Settings

Attend = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
"""Queries, keys and values, shape (..., num_heads, head_size) each, to what each token attends."""

# MPNet's relative positions: as many kinds, half of them on each side, up to a distance.
POSITION_KINDS = 32
MOST_DISTANCE = 128


class Embeddings(nn.Module):
    """Words, positions and types of tokens, added up and normed.

    Args:
        words: vectors of the vocabulary, shape (vocab_size, width).
        positions: vectors of positions, shape (num_positions, width).
        types: vectors of token types, shape (num_types, width); None where there are none.
        norm_eps: see `Settings`.
        padding_idx: the token whose positions stay at this number, while those of all others count on from
            the next; None where positions begin at 0.
    """

    def __init__(
        self,
        words: torch.Tensor,
        positions: torch.Tensor,
        types: torch.Tensor | None,
        *,
        norm_eps: float,
        padding_idx: int | None,
    ) -> None:
        super().__init__()
        self.words = nn.Embedding.from_pretrained(words)
        self.positions = nn.Parameter(positions, requires_grad=False)
        self.types = None if types is None else nn.Parameter(types, requires_grad=False)
        self.norm = nn.LayerNorm(words.shape[1], eps=norm_eps, device="meta", dtype=words.dtype)
        self.padding_idx = padding_idx

    def forward(self, ids: torch.Tensor, types: torch.Tensor | None, positions: torch.Tensor) -> torch.Tensor:
        """Look up and add.

        Args:
            ids: tokens, shape (...).
            types: their types, of the same shape; None for zeros.
            positions: in their rows, of the same shape.

        Returns:
            Vectors, shape (..., width).
        """
        x = embedding(ids, self.words.weight)
        if self.types is not None:
            x = x.add_(self.types[0] if types is None else embedding(types, self.types))
        normed: torch.Tensor = self.norm(x.add_(embedding(positions, self.positions)))
        return normed


class Layer(nn.Module):
    """Attention and two linear layers, with a norm after each of the two steps.

    Args:
        settings: its sizes.
        dtype: precision of the weights, which are yet to come.
    """

    def __init__(self, settings: Settings, dtype: torch.dtype) -> None:
        super().__init__()
        size, wide = settings.hidden_size, settings.intermediate_size
        self.heads = (3, settings.num_heads, size // settings.num_heads)
        self.qkv = _linear(size, 3 * size, dtype)
        self.output = _linear(size, size, dtype)
        self.attention_norm = nn.LayerNorm(size, eps=settings.norm_eps, device="meta", dtype=dtype)
        self.up = _linear(size, wide, dtype)
        self.activation = settings.activation
        self.down = _linear(wide, size, dtype)
        self.norm = nn.LayerNorm(size, eps=settings.norm_eps, device="meta", dtype=dtype)

    def forward(self, x: torch.Tensor, attend_to: Attend, kept: torch.Tensor | None = None) -> torch.Tensor:
        """Compute the next hidden states.

        Args:
            x: hidden states, shape (..., hidden_size).
            attend_to: see `Attend`.
            kept: tokens whose hidden states are wanted, shape (num_kept,), of x of shape (1, num_tokens,
                hidden_size); None for all.

        Returns:
            Hidden states, of the same shape but for the number of tokens.
        """
        q, k, v = self.qkv(x).unflatten(-1, self.heads).unbind(-3)
        if kept is not None:
            q, x = q[:, kept], x[:, kept]
        x = self.attention_norm(self.output(attend_to(q, k, v).flatten(-2)).add_(x))
        normed: torch.Tensor = self.norm(self.down(self.activation(self.up(x))).add_(x))
        return normed


class PositionBias(nn.Module):
    """What MPNet adds to scores: a number for each head and kind of distance between two tokens.

    Args:
        weight: shape (POSITION_KINDS, num_heads).
    """

    def __init__(self, weight: torch.Tensor) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight, requires_grad=False)

    def forward(self, length: int) -> torch.Tensor:
        """Return the numbers for a row of so many tokens, shape (num_heads, length, length)."""
        distance = torch.arange(1 - length, length, device=self.weight.device)
        far = distance.abs()
        half, exact = POSITION_KINDS // 2, POSITION_KINDS // 4
        # Near distances have a kind each, far ones share kinds by their logarithm, as T5 has it.
        share = torch.log(far.clamp_min(1).float() / exact) / math.log(MOST_DISTANCE / exact)
        shared = (exact + (share * (half - exact)).long()).clamp_max(half - 1)
        kind = torch.where(far < exact, far, shared) + half * (distance > 0)
        by_distance = self.weight[kind].T
        # Row i of a matrix holds the distances -i ... length - 1 - i.
        return by_distance.unfold(-1, length, 1).flip(-2).contiguous()


class EncoderModel(nn.Module):
    """An encoder without a head; called as transformers' models are.

    Args:
        config: its settings.
        embeddings: tokens to vectors.
        projection: from the width of embeddings to that of the layers; None where they are equal.
        layers: what follows.
        position_bias: what is added to scores; None for nothing.
    """

    def __init__(
        self,
        config: Settings,
        embeddings: Embeddings,
        projection: nn.Linear | None,
        layers: list[Layer],
        position_bias: PositionBias | None = None,
    ) -> None:
        super().__init__()
        self.config = config
        self.embeddings = embeddings
        self.projection = projection
        self.layers = nn.ModuleList(layers)
        self.position_bias = position_bias

    @property
    def dtype(self) -> torch.dtype:
        """Precision of the weights."""
        return self.get_input_embeddings().weight.dtype

    def get_input_embeddings(self) -> nn.Embedding:
        """Return the vectors of the vocabulary."""
        words: nn.Embedding = self.embeddings.words
        return words

    def forward(
        self,
        input_ids: torch.Tensor,
        *,
        position_ids: torch.Tensor,
        token_type_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        packed_rows: PackedRows | None = None,
        first_tokens: torch.Tensor | None = None,
    ) -> SimpleNamespace:
        """Compute hidden states.

        Args:
            input_ids: shape (1, num_tokens) with `packed_rows`, else (num_rows, length).
            position_ids: of the same shape.
            token_type_ids: of the same shape; None for zeros.
            attention_mask: tokens that are seen, of the same shape, not zero; None for all.
            packed_rows: where rows begin and end; None where each has a row of `input_ids`.
            first_tokens: where packed rows begin, shape (num_rows,), if nothing else of the last layer is
                wanted; None for all tokens.

        Returns:
            `last_hidden_state`, shape (*input_ids.shape, hidden_size), or (1, num_rows, hidden_size).
        """
        x = self.embeddings(input_ids, token_type_ids, position_ids)
        if self.projection is not None:
            x = self.projection(x)
        if packed_rows is None:
            attend_to = attend_last = self._attend_in_rows(input_ids.shape[1], attention_mask)
        else:
            # All layers have the same.
            bias = None if self.position_bias is None else cache(self.position_bias)
            attend_to = attend_last = _packed(attend, packed_rows, bias)
            if first_tokens is not None:
                attend_last = _packed(attend_from_first, packed_rows, bias)
        *layers, last = self.layers
        for layer in layers:
            x = layer(x, attend_to)
        return SimpleNamespace(last_hidden_state=last(x, attend_last, first_tokens))

    def _attend_in_rows(self, length: int, attention_mask: torch.Tensor | None) -> Attend:
        mask = None if attention_mask is None else attention_mask.bool()[:, None, None]
        if self.position_bias is not None:
            bias = self.position_bias(length)
            mask = bias if mask is None else torch.where(mask, bias, float("-inf"))

        def attend_to(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
            q, k, v = (states.transpose(1, 2) for states in (q, k, v))
            return scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1, 2)

        return attend_to


def _packed(
    how: Callable[..., torch.Tensor], rows: PackedRows, bias: Callable[[int], torch.Tensor] | None
) -> Attend:
    def attend_to(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        layer = AttentionLayer(scale=q.shape[-1] ** -0.5, bias=bias)
        return how(q[0], k[0], v[0], rows, layer)[None]

    return attend_to


def _linear(num_in: int, num_out: int, dtype: torch.dtype) -> nn.Linear:
    """Return a linear layer whose weights are yet to come."""
    return nn.Linear(num_in, num_out, device="meta", dtype=dtype)
