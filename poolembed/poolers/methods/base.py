"""What a pooling method is."""

from abc import ABC, abstractmethod
from collections.abc import Set

from torch import Tensor, nn

from poolembed.poolers.base import PoolingParamsUpdate, TokenPoolerOutput
from poolembed.poolers.metadata import PoolingMetadata
from poolembed.tasks import PoolingTask


class PoolingMethod(nn.Module, ABC):
    """Reduces or selects the token vectors of each row."""

    @abstractmethod
    def get_supported_tasks(self) -> Set[PoolingTask]:
        """Return the tasks that the method can serve; the head narrows them further."""

    def get_pooling_updates(self, task: PoolingTask) -> PoolingParamsUpdate:
        """Return what the method needs of a row that asks for `task`."""
        del task
        return PoolingParamsUpdate()


class SequencePoolingMethod(PoolingMethod):
    """Reduces the token vectors of each row to one vector."""

    def get_supported_tasks(self) -> Set[PoolingTask]:
        """Return all four tasks: one vector can feed any head."""
        return {"embed", "classify", "token_embed", "token_classify"}

    @abstractmethod
    def forward(self, hidden_states: Tensor, pooling_metadata: PoolingMetadata) -> Tensor:
        """Pool a batch.

        Args:
            hidden_states: packed hidden states, shape (num_tokens, hidden_size).
            pooling_metadata: the rows of the batch, with a built cursor.

        Returns:
            One vector a row, shape (num_rows, width), in row order.

        Raises:
            PoolingError: the hidden states are not those of the cursor.
            PoolingStateError: a row is not whole in this batch and the method needs it to be.
        """


class TokenPoolingMethod(PoolingMethod):
    """Selects token vectors of each row."""

    def get_supported_tasks(self) -> Set[PoolingTask]:
        """Return the two token tasks."""
        return {"token_embed", "token_classify"}

    @abstractmethod
    def forward(self, hidden_states: Tensor, pooling_metadata: PoolingMetadata) -> TokenPoolerOutput:
        """Pool a batch.

        Args:
            hidden_states: packed hidden states, shape (num_tokens, hidden_size).
            pooling_metadata: the rows of the batch, with a built cursor.

        Returns:
            One matrix a row, shape (num_kept_tokens, width), in row order, a view of `hidden_states`
            where nothing is selected; None for a row that is not finished, whose tokens wait in its
            pooling state.

        Raises:
            PoolingError: the hidden states are not those of the cursor, or token ids are missing.
        """
