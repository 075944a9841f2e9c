"""Methods that take one token's vector for the row: the first or the last."""

from torch import Tensor

from poolembed.poolers.metadata import PoolingMetadata
from poolembed.poolers.methods.base import SequencePoolingMethod
from poolembed.poolers.segments import check_packed, check_whole


class CLSPool(SequencePoolingMethod):
    """The first token of each row that is not excluded; dtype unchanged.

    Source:
        vLLM 0.33.0 `CLSPool`; with excluded tokens sentence-transformers 6.2 `Pooling`, mode `cls`.
    """

    def forward(self, hidden_states: Tensor, pooling_metadata: PoolingMetadata) -> Tensor:
        """Return the first vectors; a PoolingStateError on partial prefill."""
        cursor = pooling_metadata.get_pooling_cursor()
        check_packed(hidden_states, cursor)
        check_whole(cursor, "CLS")
        first = cursor.first_token_indices_gpu
        if cursor.num_excluded_tokens_cpu is not None:
            first = first + cursor.num_excluded_tokens_cpu.to(first.device, non_blocking=True)
        return hidden_states[first]


class LastPool(SequencePoolingMethod):
    """The last token of each row in this batch; dtype unchanged.

    On partial prefill it is the last token computed so far, which the caller ignores.

    Source:
        vLLM 0.33.0 `LastPool`.
    """

    def forward(self, hidden_states: Tensor, pooling_metadata: PoolingMetadata) -> Tensor:
        """Return the last vectors."""
        cursor = pooling_metadata.get_pooling_cursor()
        check_packed(hidden_states, cursor)
        return hidden_states[cursor.last_token_indices_gpu]
