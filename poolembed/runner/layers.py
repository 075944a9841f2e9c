"""Layers of a transformer: seen while they run, and replaced by others."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import torch
from torch import nn

from poolembed.runner.backbone import Backbone
from poolembed.runner.packing import PackedBatch

Place = tuple[nn.Module, str, nn.Module]
"""A module, the name of a part of it, and that part."""


def forward_seen(
    backbone: Backbone,
    batch: PackedBatch,
    layers: Iterable[nn.Module],
    note: Callable[[nn.Module, tuple[Any, ...], Any], None],
) -> torch.Tensor:
    """Run a batch while `note` is told of every call of some layers.

    Args:
        backbone: the loaded model.
        batch: what is run.
        layers: modules of the model.
        note: a forward hook: takes module, inputs and output.

    Returns:
        Hidden states, as `backbone.forward` gives them.
    """
    with ExitStack() as hooks:
        for layer in layers:
            hooks.callback(layer.register_forward_hook(note).remove)
        return backbone.forward(batch)


def places_of(model: nn.Module) -> list[Place]:
    """Return where every module of a model stands; one that is held twice has two places.

    Args:
        model: the whole model.

    Returns:
        A place for each part of each module, parents first.
    """
    # Not `named_children`, which shows a module that is held twice only once.
    return [
        (parent, name, child)
        for parent in model.modules()
        for name, child in parent._modules.items()
        if child is not None
    ]


def put(places: Sequence[Place], replacements: Mapping[nn.Module, nn.Module]) -> None:
    """Put into each place the replacement of what stood there, or that itself where it has none.

    Args:
        places: what `places_of` gave, before anything was replaced.
        replacements: new modules by the ones they replace.
    """
    for parent, name, module in places:
        setattr(parent, name, replacements.get(module, module))
