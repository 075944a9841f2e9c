"""Output activations.

The arithmetic runs in float32 or wider: half precision would give many logits the same probability.
"""

import logging
from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from poolembed.poolers.base import TensorFn

logger = logging.getLogger(__name__)


class PoolerActivation(nn.Module, ABC):
    """The last step of a head; lists are mapped element by element."""

    def forward(self, pooled_data: Tensor | list[Tensor]) -> Tensor | list[Tensor]:
        """Apply the activation.

        Args:
            pooled_data: a tensor (..., width), or a list of such.

        Returns:
            The same shapes; half precision comes back as float32 where anything is computed.
        """
        if isinstance(pooled_data, list):
            return [self.forward_chunk(chunk) for chunk in pooled_data]
        return self.forward_chunk(pooled_data)

    @abstractmethod
    def forward_chunk(self, pooled_data: Tensor) -> Tensor:
        """Apply the activation to one tensor, shape (..., width)."""


class PoolerIdentity(PoolerActivation):
    """Returns its input itself."""

    def forward_chunk(self, pooled_data: Tensor) -> Tensor:
        """Return `pooled_data`."""
        return pooled_data


class PoolerNormalize(PoolerActivation):
    """Divides by the L2 norm of the last dimension, or by 1e-12 if that is larger; zero stays zero."""

    def forward_chunk(self, pooled_data: Tensor) -> Tensor:
        """Return vectors of length 1."""
        return nn.functional.normalize(_at_least_float32(pooled_data), p=2.0, dim=-1)


class PoolerMultiLabelClassify(PoolerActivation):
    """Sigmoid: each label has a probability of its own."""

    def forward_chunk(self, pooled_data: Tensor) -> Tensor:
        """Return a probability for each logit."""
        return _at_least_float32(pooled_data).sigmoid()


class PoolerClassify(PoolerActivation):
    """Softmax over the labels; sigmoid where there is only one.

    Args:
        num_labels: number of labels; None takes the width of the logits. 0, which a configuration
            without labels gives, acts as 1 and is logged.
    """

    def __init__(self, num_labels: int | None = None) -> None:
        super().__init__()
        if num_labels == 0:
            logger.warning("the model declares 0 labels: its logits go through a sigmoid each")
        self.num_labels = num_labels

    def forward_chunk(self, pooled_data: Tensor) -> Tensor:
        """Return probabilities."""
        num_labels = pooled_data.shape[-1] if self.num_labels is None else self.num_labels
        logits = _at_least_float32(pooled_data)
        return logits.sigmoid() if num_labels < 2 else logits.softmax(dim=-1)


class LambdaPoolerActivation(PoolerActivation):
    """Applies any function.

    Args:
        fn: called with each tensor, dtype unchanged.
    """

    def __init__(self, fn: TensorFn) -> None:
        super().__init__()
        self.fn = fn

    def forward_chunk(self, pooled_data: Tensor) -> Tensor:
        """Return what the function returns."""
        return self.fn(pooled_data)


def _at_least_float32(values: Tensor) -> Tensor:
    return values.float() if values.dtype in (torch.float16, torch.bfloat16) else values
