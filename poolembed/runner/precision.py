"""A model in a higher precision for a while."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn


@contextmanager
def in_precision(model: nn.Module, dtype: torch.dtype) -> Iterator[None]:
    """Convert the weights of a model on entry and put them back on exit, bit for bit.

    Args:
        model: is changed in place.
        dtype: at least as precise as every floating-point tensor of the model.

    Yields:
        None, while the model is in that precision.

    Raises:
        torch.OutOfMemoryError: there is no room for the larger weights; the model is as it was.
    """
    # Each tensor on its own: positions stay in float32 inside a model of half precision.
    dtypes = {name: tensor.dtype for name, tensor in _tensors_of(model)}
    try:
        model.to(dtype)
        yield
    finally:
        for name, tensor in _tensors_of(model):
            tensor.data = tensor.data.to(dtypes[name])


def _tensors_of(model: nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield weights and buffers by name."""
    yield from model.named_parameters()
    yield from model.named_buffers()
