"""The method that puts the vectors of several methods one after the other."""

from collections.abc import Sequence, Set

import torch
from torch import Tensor, nn

from poolembed.errors import PoolingError
from poolembed.poolers.base import PoolingParamsUpdate
from poolembed.poolers.metadata import PoolingMetadata
from poolembed.poolers.methods.base import SequencePoolingMethod
from poolembed.tasks import PoolingTask


class ConcatPool(SequencePoolingMethod):
    """The vectors of several methods, concatenated in the given order.

    The dtype is the widest of the parts: with one mean among them, float32.

    Args:
        methods: at least one sequence pooling method.

    Raises:
        PoolingError: no method is given.

    Source:
        sentence-transformers 6.2 `Pooling` with several modes.
    """

    def __init__(self, methods: Sequence[SequencePoolingMethod]) -> None:
        super().__init__()
        if not methods:
            raise PoolingError("a concatenation needs at least one pooling method")
        self.methods = methods
        self.parts = nn.ModuleList(methods)

    def get_supported_tasks(self) -> Set[PoolingTask]:
        """Return the tasks that all parts can serve."""
        return set.intersection(*(set(method.get_supported_tasks()) for method in self.methods))

    def get_pooling_updates(self, task: PoolingTask) -> PoolingParamsUpdate:
        """Return what any part needs."""
        update = PoolingParamsUpdate()
        for method in self.methods:
            update = update | method.get_pooling_updates(task)
        return update

    def forward(self, hidden_states: Tensor, pooling_metadata: PoolingMetadata) -> Tensor:
        """Return the concatenated vectors, shape (num_rows, sum of the widths)."""
        return torch.cat([method(hidden_states, pooling_metadata) for method in self.methods], dim=-1)
