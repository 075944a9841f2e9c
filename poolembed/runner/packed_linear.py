"""Linear layers whose weights lie as oneDNN multiplies them, with the activation behind them in one step.

Which activation follows which layer is seen in one run, and what it computes is tried, not looked up by
name. The operators are torch's own but not public: where they are missing, or the model then gives other
numbers, everything is as it was before.

Only where it pays. 22 M-parameter encoder, float32: with AVX-512 1.4 times as fast; with AVX2 the products
are as fast as before and the fused GELU is slower.
"""

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch.nn.functional import linear

from poolembed.runner.backbone import Backbone
from poolembed.runner.layers import forward_seen, places_of, put
from poolembed.runner.packing import PackedBatch
from poolembed.runner.self_check import TOLERANCES, relative_error

# What oneDNN can do in the same step, as the last three arguments of the operator.
Pointwise = tuple[str, list[float], str]
NO_POINTWISE: Pointwise = ("none", [], "")
POINTWISE: tuple[Pointwise, ...] = (
    ("gelu", [], "none"),
    ("gelu", [], "tanh"),
    ("relu", [], ""),
    ("swish", [], ""),
)

# Largest relative error of one layer in float32 for its activation to count as one of those; the two forms
# of GELU are 1e-4 apart.
SAME_ACTIVATION = 1e-6

# Packed weights are a copy of their own in every process.
MAX_PACKED_BYTES = 1 << 30


def has_operators() -> bool:
    """Tell whether this build of torch has the operators, which are not public."""
    return hasattr(torch.ops.mkldnn, "_linear_pointwise") and hasattr(
        torch.ops.mkldnn, "_reorder_linear_weight"
    )


def pays_here(device: torch.device) -> bool:
    """Tell whether packed layers are faster on this machine, by what was measured."""
    return device.type == "cpu" and torch.backends.cpu.get_cpu_capability() == "AVX512"


class PackedLinear(nn.Linear):
    """A linear layer and the activation behind it, with a second, packed copy of the weight.

    Args:
        layer: whose weight and bias these are; they are shared.
        activation: what follows; used as it is where the packed weight does not fit, as when the model
            was moved to another precision for a row.
        pointwise: the same for oneDNN.
    """

    def __init__(self, layer: nn.Linear, activation: nn.Module, pointwise: Pointwise) -> None:
        nn.Module.__init__(self)
        self.in_features, self.out_features = layer.in_features, layer.out_features
        self.weight, self.bias = layer.weight, layer.bias
        self.activation = activation
        self._pointwise = pointwise
        # No buffer: the layout is known to oneDNN alone, so that it can be neither moved nor saved.
        self._packed = (torch.ops.mkldnn._reorder_linear_weight(layer.weight.detach()),)

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Return the activated product, shape (..., out_features), of `input`, shape (..., in_features)."""
        if not self._packed[0].dtype == self.weight.dtype == input.dtype:
            activated: torch.Tensor = self.activation(linear(input, self.weight, self.bias))
            return activated
        rows = input.reshape(-1, self.in_features)
        output: torch.Tensor = torch.ops.mkldnn._linear_pointwise(
            rows, self._packed[0], self.bias, *self._pointwise
        )
        return output.view(*input.shape[:-1], self.out_features)


def pack_linears(backbone: Backbone, batch: PackedBatch) -> int:
    """Replace the linear layers of a model, and activations behind them, by packed ones.

    Args:
        backbone: the checked model, on the CPU; it is changed.
        batch: one row; the model must give the same hidden states for it afterwards.

    Returns:
        How many layers were packed; 0 where the model stays as it was.
    """
    model: nn.Module = backbone.model
    if not has_operators() or not _supported(
        [module for module in model.modules() if type(module) is nn.Linear]
    ):
        return 0
    places = places_of(model)
    try:
        seen, expected = _traced(backbone, batch)
        put(places, seen.replacements())
        found = backbone.forward(batch)
        if relative_error(found, expected) <= TOLERANCES[found.dtype] / 10:
            return len(seen.layers)
    except (AttributeError, RuntimeError):
        pass  # this build of torch, or this CPU, has no such operator
    put(places, {})
    return 0


def _traced(backbone: Backbone, batch: PackedBatch) -> "tuple[_Trace, torch.Tensor]":
    """Run a batch; return what was seen, and its hidden states."""
    seen = _Trace()
    leaves = [module for module in backbone.model.modules() if not any(True for _ in module.children())]
    return seen, forward_seen(backbone, batch, leaves, seen.note)


def _supported(layers: list[nn.Linear]) -> bool:
    dtypes = {layer.weight.dtype for layer in layers}
    num_bytes = sum(layer.weight.numel() * layer.weight.element_size() for layer in layers)
    return dtypes in ({torch.float32}, {torch.bfloat16}) and num_bytes <= MAX_PACKED_BYTES


@dataclass(slots=True)
class _Trace:
    """What one run shows.

    Attributes:
        layers: the linear layers that ran, each with the activation behind it and its name in oneDNN.
        refused: modules without children that are no such activation at one of their places.
    """

    layers: dict[nn.Linear, tuple[nn.Module, Pointwise]] = field(default_factory=dict)
    refused: set[nn.Module] = field(default_factory=set)
    _last: tuple[nn.Linear, torch.Tensor, torch.Tensor] | None = None

    def note(self, module: nn.Module, inputs: tuple[Any, ...], output: Any) -> None:  # noqa: ANN401
        """Take a call of a module, as a forward hook."""
        if type(module) is nn.Linear:
            self.layers.setdefault(module, (nn.Identity(), NO_POINTWISE))
            self._last = (module, inputs[0], output)
            return
        last, self._last = self._last, None
        pointwise = None
        if last is not None and inputs and inputs[0] is last[2]:
            pointwise = _pointwise(last[0], last[1], output)
        if last is None or pointwise is None:
            self.refused.add(module)
        else:
            self.layers[last[0]] = (module, pointwise)

    def replacements(self) -> dict[nn.Module, nn.Module]:
        """Return the module that takes the place of each one."""
        replaced: dict[nn.Module, nn.Module] = {}
        for layer, (activation, pointwise) in self.layers.items():
            if activation in self.refused or pointwise == NO_POINTWISE:
                replaced[layer] = PackedLinear(layer, nn.Identity(), NO_POINTWISE)
            else:
                replaced[layer] = PackedLinear(layer, activation, pointwise)
                replaced[activation] = nn.Identity()
        return replaced


def _pointwise(layer: nn.Linear, x: torch.Tensor, activated: torch.Tensor) -> Pointwise | None:
    """Return what oneDNN calls the activation that gave these numbers; None where it has none."""
    tolerance = max(SAME_ACTIVATION, torch.finfo(x.dtype).eps)
    for pointwise in POINTWISE:
        found = PackedLinear(layer, nn.Identity(), pointwise)(x)
        if relative_error(found, activated) <= tolerance:
            return pointwise
    return None
