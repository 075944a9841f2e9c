"""What every pooler is, and the shapes of what it returns."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Set
from dataclasses import dataclass

from torch import Tensor, nn

from poolembed.config.params import PoolingParams
from poolembed.poolers.metadata import PoolingMetadata
from poolembed.tasks import POOLING_TASKS, PoolingTask

SequencePoolerOutput = Tensor | list[Tensor]
"""One vector a row: a tensor (num_rows, width), or a list where widths or treatment differ."""

TokenPoolerOutput = list[Tensor | None]
"""One matrix (num_tokens, width) a row; None for a row whose tokens are not all computed yet."""

PoolerOutput = Tensor | list[Tensor] | list[Tensor | None]

TensorFn = Callable[[Tensor], Tensor]
"""A projector, a classifier or an activation: a module or any other callable on tensors."""


@dataclass(frozen=True, slots=True)
class PoolingParamsUpdate:
    """What a pooler needs for a task; updates of several poolers are joined by `|`.

    Attributes:
        requires_token_ids: the pooler reads the token ids of the row.
    """

    requires_token_ids: bool = False

    def __or__(self, other: "PoolingParamsUpdate") -> "PoolingParamsUpdate":
        """Return an update that asks for what either asks for."""
        return PoolingParamsUpdate(requires_token_ids=self.requires_token_ids or other.requires_token_ids)

    def apply(self, params: PoolingParams) -> None:
        """Write what is needed into `params`."""
        params.requires_token_ids = self.requires_token_ids


class Pooler(nn.Module, ABC):
    """Turns packed hidden states into pooled data, one entry a row in row order."""

    @abstractmethod
    def get_supported_tasks(self) -> Set[PoolingTask]:
        """Return the tasks that this pooler can do."""

    def get_pooling_updates(self, task: PoolingTask) -> PoolingParamsUpdate:
        """Return what the pooler needs of a row that asks for `task`."""
        del task
        return PoolingParamsUpdate()

    @abstractmethod
    def forward(self, hidden_states: Tensor, pooling_metadata: PoolingMetadata) -> PoolerOutput:
        """Pool a batch.

        Args:
            hidden_states: packed hidden states, shape (num_tokens, hidden_size).
            pooling_metadata: the rows of the batch, with a built cursor.

        Returns:
            One entry a row, on the device of `hidden_states`.
        """


def narrow_tasks(*parts: object) -> Set[PoolingTask]:
    """Return the tasks that all parts serve; plain callables and None serve every task."""
    tasks = set(POOLING_TASKS)
    for part in parts:
        if hasattr(part, "get_supported_tasks"):
            tasks &= part.get_supported_tasks()
    return tasks
