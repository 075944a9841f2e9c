"""The SPLADE pooler: one weight for every entry of the vocabulary, from a masked language model.

The logits of a batch (num_tokens x vocabulary) never exist: at 64 rows of 512 tokens and a vocabulary
of 250 000 they would take 33 GB. They are made, reduced and dropped slice by slice.
"""

from collections.abc import Set
from math import isqrt
from typing import Literal, get_args

import torch
from torch import Tensor, nn

from poolembed.errors import PoolingError
from poolembed.poolers.base import Pooler, TensorFn
from poolembed.poolers.metadata import PoolingMetadata
from poolembed.poolers.segments import (
    MAX_CHUNK_BYTES,
    check_packed,
    check_whole,
    segment_maxima,
    segment_sums,
)
from poolembed.tasks import PoolingTask

PoolingStrategy = Literal["max", "sum"]
ActivationFunction = Literal["relu", "log1p_relu"]


class SpladePooler(Pooler):
    """Pools log1p(relu(logits)) over the tokens of each row, special tokens included.

    Hidden states, weights and results are taken in float32. The activation belongs to the method:
    `use_activation` changes nothing.

    Args:
        transform: hidden states (num_tokens, hidden_size) to what the decoder takes, same width; None
            takes them as they are. It sees a bounded number of tokens at once.
        decoder_weight: output embeddings, shape (vocabulary, width).
        decoder_bias: shape (vocabulary,); None adds nothing.
        pooling_strategy: `max` (SPLADE v2 and later) or `sum` (SPLADE v1).
        activation_function: `relu` gives log1p(relu(x)), `log1p_relu` takes log1p of that once more.
        max_chunk_bytes: bound of one slice of logits and of the copies that it is made from.

    Raises:
        PoolingError: an unknown strategy or function, or a decoder whose parts do not fit.

    Source:
        Formal et al. 2021, "SPLADE v2", arXiv 2109.10086, equation 6; sentence-transformers 6.2
        `SpladePooling`; vLLM 0.33.0 `SPLADESparsePooler`.
    """

    decoder_weight: Tensor
    decoder_bias: Tensor | None

    def __init__(
        self,
        transform: TensorFn | None,
        decoder_weight: Tensor,
        decoder_bias: Tensor | None = None,
        pooling_strategy: PoolingStrategy = "max",
        activation_function: ActivationFunction = "relu",
        max_chunk_bytes: int = MAX_CHUNK_BYTES,
    ) -> None:
        super().__init__()
        for value, kind in ((pooling_strategy, PoolingStrategy), (activation_function, ActivationFunction)):
            if value not in get_args(kind):
                raise PoolingError(f"SPLADE pooling knows {' and '.join(get_args(kind))}, not {value!r}")
        if decoder_bias is not None and decoder_bias.shape != decoder_weight.shape[:1]:
            raise PoolingError(
                f"decoder bias {tuple(decoder_bias.shape)} does not fit weight {tuple(decoder_weight.shape)}"
            )
        self.transform = transform
        self.register_buffer("decoder_weight", decoder_weight.detach(), persistent=False)
        self.register_buffer(
            "decoder_bias", None if decoder_bias is None else decoder_bias.detach(), persistent=False
        )
        self.pooling_strategy = pooling_strategy
        self.activation_function = activation_function
        self.max_chunk_bytes = max_chunk_bytes

    def get_supported_tasks(self) -> Set[PoolingTask]:
        """Return `embed`."""
        return {"embed"}

    @torch.no_grad()
    def forward(self, hidden_states: Tensor, pooling_metadata: PoolingMetadata) -> Tensor:
        """Return the weights, shape (num_rows, vocabulary), float32.

        Raises:
            PoolingError: the hidden states are not those of the cursor, or a row asks for dimensions.
            PoolingStateError: partial prefill.
        """
        cursor = pooling_metadata.get_pooling_cursor()
        check_packed(hidden_states, cursor)
        check_whole(cursor, "SPLADE")
        if any(params.dimensions is not None for params in pooling_metadata.pooling_params):
            raise PoolingError("a SPLADE vector has the size of the vocabulary; 'dimensions' cannot cut it")
        # Tokens of an excluded prompt count here, as in sentence-transformers.
        ids = torch.repeat_interleave(cursor.num_scheduled_tokens_cpu)
        size = (len(cursor.prompt_lens_cpu), len(self.decoder_weight))
        pooled = torch.zeros(size, dtype=torch.float32, device=hidden_states.device)
        step = self._slice_size(max(hidden_states.shape[1], self.decoder_weight.shape[1]))
        for start in range(0, len(hidden_states), step):
            states = hidden_states[start : start + step].float()
            if self.transform is not None:
                states = self.transform(states)
            self._add_tokens(pooled, states, ids[start : start + step], step)
        return self._saturate(pooled) if self.pooling_strategy == "max" else pooled

    def _slice_size(self, width: int) -> int:
        """Return how many tokens, and how many entries, keep logits and float32 copies in bounds."""
        floats = self.max_chunk_bytes // 4
        return max(1, min(isqrt(floats), floats // max(1, width)))

    def _add_tokens(self, pooled: Tensor, states: Tensor, ids: Tensor, num_entries: int) -> None:
        """Take some tokens, (num_tokens, width) of the rows `ids`, into the result."""
        first, last = int(ids[0]), int(ids[-1])
        local = (ids - first).to(states.device, non_blocking=True)
        num_rows = last + 1 - first
        for entry in range(0, pooled.shape[1], num_entries):
            part = slice(entry, entry + num_entries)
            bias = None if self.decoder_bias is None else self.decoder_bias[part].float()
            logits = nn.functional.linear(states, self.decoder_weight[part].float(), bias)
            target = pooled[first : last + 1, part]
            if self.pooling_strategy == "max":
                # The largest logit gives the largest weight, so relu (the zeros of the result) and
                # logarithm can wait.
                torch.maximum(target, segment_maxima(logits, local, num_rows), out=target)
            else:
                target += segment_sums(self._saturate(logits.relu_()), local, num_rows)

    def _saturate(self, weights: Tensor) -> Tensor:
        weights = weights.log1p_()
        return weights.log1p_() if self.activation_function == "log1p_relu" else weights
