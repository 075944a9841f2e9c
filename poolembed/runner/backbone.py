"""A transformer and the two ways to run a batch through it.

Packed: all rows end to end in one sequence, told apart by `attention.packed_attention`. Equal-length:
rows of one length stacked, with the model's own attention. Neither pads. Which one is used is decided
by the self-check, not here.
"""

import inspect
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch

from poolembed.runner.attention import PackedRows, RowKeys
from poolembed.runner.encoder.model import EncoderModel
from poolembed.runner.packing import (
    IntArray,
    PackedBatch,
    Segments,
    equal_length_runs,
    positions_in_rows,
    segments_of,
)
from poolembed.runner.rope import forget_length

ForwardPath = Literal["packed", "equal-length"]

# What transformers calls the key-value cache, after and before release 5.20 or so.
_CACHE_NAMES = frozenset({"cache", "past_key_values"})


@dataclass(slots=True)
class Backbone:
    """A transformer without a head: token ids to hidden states after the final norm.

    Attributes:
        model: a `transformers` model whose output has `last_hidden_state`.
        device: where it runs.
        path: how batches are run; set by the self-check.
        scales_with_length: whether the longest row of a call scales the positions of all, see `rope`.
        own_attention: name of the attention that the model was loaded with.
    """

    model: Any
    device: torch.device
    path: ForwardPath = "equal-length"
    scales_with_length: bool = False
    own_attention: str = field(init=False)
    _parameters: frozenset[str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.own_attention = "" if self._is_ours else self.model.config._attn_implementation
        self._parameters = frozenset(inspect.signature(self.model.forward).parameters)

    @property
    def hidden_size(self) -> int:
        """Width of a hidden state."""
        return int(self.model.config.get_text_config().hidden_size)

    @property
    def model_impl(self) -> Literal["poolembed", "transformers"]:
        """Whose layers the model has; code that a checkpoint brings counts as transformers'."""
        return "poolembed" if self._is_ours else "transformers"

    def forward(self, batch: PackedBatch) -> torch.Tensor:
        """Run a batch.

        Args:
            batch: rows end to end; on the equal-length path all of one length, with no prefixes shared.

        Returns:
            Hidden states of each row's own tokens, shape (sum of own_lengths, hidden_size), in the model's
            dtype, on its device.
        """
        with torch.inference_mode():
            return self._packed(batch)[0] if self.path == "packed" else self._equal_length(batch)

    def forward_first(self, batch: PackedBatch) -> torch.Tensor:
        """Run a batch of which only the first token of each row is wanted; see `gives_first`.

        Args:
            batch: rows end to end.

        Returns:
            Hidden states of the first tokens, shape (num_rows, hidden_size).
        """
        starts = np.cumsum(batch.lengths) - batch.lengths
        with torch.inference_mode():
            return self._packed(batch, first_tokens=self._tensor(starts))[0]

    @property
    def gives_first(self) -> bool:
        """Whether the last layer can be computed for the first token of each row alone."""
        return self.path == "packed" and self._is_ours

    def use_path(self, path: ForwardPath) -> None:
        """Switch between packed attention and the model's own."""
        if not self._is_ours:
            # Not with this module: transformers' modelling code takes seconds and 120 MB.
            from poolembed.runner.attention_interface import PACKED_ATTENTION

            self.model.set_attn_implementation(PACKED_ATTENTION if path == "packed" else self.own_attention)
        self.path = path

    def count_packed_calls(self, batch: PackedBatch) -> tuple[torch.Tensor, int]:
        """Run a batch packed and tell how many layers went through the packed attention."""
        with torch.inference_mode():
            return self._packed(batch)

    def forward_in_pieces(self, batch: PackedBatch, piece_tokens: int) -> Iterator[torch.Tensor]:
        """Run one row of a causal model piece by piece, with a key-value cache.

        Args:
            batch: a single row.
            piece_tokens: most tokens of a piece.

        Yields:
            Hidden states of each piece, shape (num_tokens of the piece, hidden_size).
        """
        path = self.path
        self.use_path("equal-length")
        try:
            cache = None
            for start in range(0, batch.num_tokens, piece_tokens):
                ids = self._tensor(batch.token_ids[start : start + piece_tokens])[None]
                with torch.inference_mode():
                    output = self.model(ids, **{self._cache_name: cache}, use_cache=True)
                cache = output[self._cache_name]
                yield output.last_hidden_state[0]
        finally:
            self.use_path(path)

    @property
    def takes_pieces(self) -> bool:
        """Whether the model can keep keys and values between calls, and gives the same numbers then."""
        has_cache = "use_cache" in self._parameters and bool(_CACHE_NAMES & self._parameters)
        return has_cache and not self.scales_with_length

    @property
    def _cache_name(self) -> str:
        return next(iter(_CACHE_NAMES & self._parameters))

    def _packed(self, batch: PackedBatch, **options: torch.Tensor) -> tuple[torch.Tensor, int]:
        segments = segments_of(batch)
        rows = self._rows(segments, batch.seen_lengths)
        index = segments.token_index
        output = self.model(
            **self._inputs(batch, (1, len(index)), index),
            position_ids=self._tensor(self._positions(batch)[index])[None],
            packed_rows=rows,
            **self._options(),
            **options,
        )
        num_shared = int(segments.lengths[: segments.num_prefixes].sum())
        return output.last_hidden_state[0, num_shared:], rows.num_calls

    def _rows(self, segments: Segments, seen_lengths: IntArray | None) -> PackedRows:
        on_cpu = self.device.type == "cpu"
        runs = equal_length_runs(segments.lengths, segments.prefix_of)
        rows = PackedRows(
            runs=runs,
            cu_seq_lens=None if on_cpu else self._cumulative(segments.lengths),
            max_length=int(segments.lengths.max()),
            seen_lengths=None if seen_lengths is None else self._tensor(seen_lengths).to(torch.int32),
        )
        if segments.num_prefixes:
            ends = np.cumsum(segments.lengths)
            starts = ends - segments.lengths
            firsts = np.cumsum([0, *(count for count, _ in runs[:-1])])
            prefixes = [slice(int(starts[p]), int(ends[p])) for p in range(segments.num_prefixes)]
            rows.prefixes = [prefixes[p] if p >= 0 else None for p in segments.prefix_of[firsts].tolist()]
            if not on_cpu:
                rows.keys = self._keys(segments)
        return rows

    def _keys(self, segments: Segments) -> RowKeys:
        """Lay out, for kernels that take all rows at once, the keys of each row's prefix before its own."""
        ends = np.cumsum(segments.lengths)
        own = [np.arange(end - length, end) for end, length in zip(ends, segments.lengths, strict=True)]
        nothing = np.zeros(0, np.int64)
        before = [own[prefix] if prefix >= 0 else nothing for prefix in segments.prefix_of]
        lengths = np.asarray([len(b) + len(o) for b, o in zip(before, own, strict=True)], np.int64)
        index = np.concatenate([part for both in zip(before, own, strict=True) for part in both])
        return RowKeys(self._tensor(index), self._cumulative(lengths), int(lengths.max()))

    def _equal_length(self, batch: PackedBatch) -> torch.Tensor:
        shape = (len(batch.rows), int(batch.lengths[0]))
        if self.scales_with_length:
            forget_length(self.model)
        inputs = self._inputs(batch, shape, slice(None))
        # All tokens are seen, also a pad token that stands in a text.
        mask = torch.ones(shape, dtype=torch.long, device=self.device)
        if batch.seen_lengths is not None:
            seen = self._tensor(batch.seen_lengths)[:, None]
            mask = (torch.arange(shape[1], device=self.device) < seen).long()
        if self._is_ours:
            inputs["position_ids"] = self._tensor(self._positions(batch)).view(shape)
        output = self.model(**inputs, attention_mask=mask, **self._options())
        hidden_states: torch.Tensor = output.last_hidden_state
        return hidden_states.flatten(0, 1)

    def _inputs(
        self, batch: PackedBatch, shape: tuple[int, int], index: IntArray | slice
    ) -> dict[str, torch.Tensor]:
        inputs = {"input_ids": self._tensor(batch.token_ids[index]).view(shape)}
        # Zeros are not passed: GPT-2 would take them for a token and add its embedding to all others.
        if batch.token_type_ids is not None and "token_type_ids" in self._parameters:
            inputs["token_type_ids"] = self._tensor(batch.token_type_ids[index]).view(shape)
        return inputs

    def _positions(self, batch: PackedBatch) -> IntArray:
        padding_idx = self._padding_idx
        if padding_idx is None:
            return positions_in_rows(batch.lengths)
        # RoBERTa's rule: pad tokens stay at padding_idx, all others count on from padding_idx + 1.
        counted = batch.token_ids != padding_idx
        total = np.cumsum(counted)
        before = np.repeat((total - counted)[np.cumsum(batch.lengths) - batch.lengths], batch.lengths)
        return np.asarray(np.where(counted, total - before, 0) + padding_idx, np.int64)

    @property
    def _is_ours(self) -> bool:
        """Whether the layers are those of `encoder`, which are told by each call how to attend."""
        return isinstance(self.model, EncoderModel)

    @property
    def _padding_idx(self) -> int | None:
        """The pad token of models that count positions on from it; None for those that begin at 0."""
        embeddings: Any = getattr(self.model, "embeddings", None)
        counts_on = self._is_ours or hasattr(embeddings, "create_position_ids_from_input_ids")
        return embeddings.padding_idx if counts_on else None

    def _options(self) -> dict[str, bool]:
        # Without this, decoders take packed rows for one sequence that continues a cache.
        return {"use_cache": False} if "use_cache" in self._parameters else {}

    def _cumulative(self, lengths: IntArray) -> torch.Tensor:
        return self._tensor(np.concatenate(([0], np.cumsum(lengths)))).to(torch.int32)

    def _tensor(self, array: IntArray) -> torch.Tensor:
        tensor = torch.from_numpy(np.ascontiguousarray(array))
        if self.device.type == "cuda":  # pragma: no cover - needs CUDA
            # From pinned memory the copy waits for no batch that is still computed.
            return tensor.pin_memory().to(self.device, non_blocking=True)
        return tensor.to(self.device)
