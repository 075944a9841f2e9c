"""Methods that add the token vectors of a row: plain, square-root-of-length and weighted mean."""

from abc import abstractmethod

import torch
from torch import Tensor

from poolembed.poolers.cursor import PoolingCursor
from poolembed.poolers.metadata import PoolingMetadata
from poolembed.poolers.methods.base import SequencePoolingMethod
from poolembed.poolers.segments import MAX_CHUNK_BYTES, check_packed, check_whole, segment_ids, segment_sums


class _SumPool(SequencePoolingMethod):
    """Adds the tokens of each row that are not excluded and divides by something of its length.

    Sums run and results come in float32, whatever the dtype of the hidden states.

    Args:
        max_chunk_bytes: bound of the float32 copies of hidden states that exist at once.
    """

    name: str

    def __init__(self, max_chunk_bytes: int = MAX_CHUNK_BYTES) -> None:
        super().__init__()
        self.max_chunk_bytes = max_chunk_bytes

    def forward(self, hidden_states: Tensor, pooling_metadata: PoolingMetadata) -> Tensor:
        """Return the means, float32; a PoolingStateError on partial prefill."""
        cursor = pooling_metadata.get_pooling_cursor()
        check_packed(hidden_states, cursor)
        check_whole(cursor, self.name)
        ids = segment_ids(cursor, hidden_states.device)
        weights = self.token_weights(cursor)
        if weights is not None:
            weights = weights.to(hidden_states.device, non_blocking=True)
        sums = segment_sums(hidden_states, ids, len(cursor.prompt_lens_cpu), weights, self.max_chunk_bytes)
        divisors = self.divisors(cursor).to(hidden_states.device, non_blocking=True)
        return sums / divisors[:, None]

    def token_weights(self, cursor: PoolingCursor) -> Tensor | None:
        """Return the weight of every token, shape (num_tokens,), float32; None weighs all alike."""
        del cursor
        return None

    @abstractmethod
    def divisors(self, cursor: PoolingCursor) -> Tensor:
        """Return what each row's sum is divided by, shape (num_rows,), float32, on the CPU."""


class MeanPool(_SumPool):
    """The mean of each row's tokens, special tokens included.

    Source:
        vLLM 0.33.0 `MeanPool`; sentence-transformers 6.2 `Pooling`, mode `mean`.
    """

    name = "MEAN"

    def divisors(self, cursor: PoolingCursor) -> Tensor:
        """Return the number of tokens that count."""
        return _num_counted(cursor).float()


class MeanSqrtLenPool(_SumPool):
    """The sum of each row's tokens divided by the square root of their number.

    Source:
        sentence-transformers 6.2 `Pooling`, mode `mean_sqrt_len_tokens`.
    """

    name = "MEAN_SQRT_LEN"

    def divisors(self, cursor: PoolingCursor) -> Tensor:
        """Return the square root of the number of tokens that count."""
        return _num_counted(cursor).float().sqrt()


class WeightedMeanPool(_SumPool):
    """The mean of each row's tokens weighted by their position 1, 2, ... in the row.

    Excluded tokens keep their positions: the first token that counts has weight excluded + 1.

    Source:
        Muennighoff 2022, "SGPT: GPT Sentence Embeddings for Semantic Search", section 3;
        sentence-transformers 6.2 `Pooling`, mode `weightedmean`.
    """

    name = "WEIGHTED_MEAN"

    def token_weights(self, cursor: PoolingCursor) -> Tensor:
        """Return the position of every token in its row, counted from 1."""
        lens = cursor.num_scheduled_tokens_cpu
        starts = lens.cumsum(0) - lens
        return (torch.arange(1, int(lens.sum()) + 1) - torch.repeat_interleave(starts, lens)).float()

    def divisors(self, cursor: PoolingCursor) -> Tensor:
        """Return the sum of the positions that count."""
        lens = cursor.num_scheduled_tokens_cpu
        excluded = lens - _num_counted(cursor)
        return ((lens * (lens + 1) - excluded * (excluded + 1)) // 2).float()


def _num_counted(cursor: PoolingCursor) -> Tensor:
    lens = cursor.num_scheduled_tokens_cpu
    excluded = cursor.num_excluded_tokens_cpu
    return lens if excluded is None else lens - excluded
