"""The method that takes the largest value of each dimension."""

from torch import Tensor

from poolembed.poolers.metadata import PoolingMetadata
from poolembed.poolers.methods.base import SequencePoolingMethod
from poolembed.poolers.segments import check_packed, check_whole, segment_ids, segment_maxima


class MaxPool(SequencePoolingMethod):
    """The largest value of each dimension over a row's tokens that are not excluded; dtype unchanged.

    Source:
        sentence-transformers 6.2 `Pooling`, mode `max`.
    """

    def forward(self, hidden_states: Tensor, pooling_metadata: PoolingMetadata) -> Tensor:
        """Return the maxima; a PoolingStateError on partial prefill."""
        cursor = pooling_metadata.get_pooling_cursor()
        check_packed(hidden_states, cursor)
        check_whole(cursor, "MAX")
        ids = segment_ids(cursor, hidden_states.device)
        return segment_maxima(hidden_states, ids, len(cursor.prompt_lens_cpu))
