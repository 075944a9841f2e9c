"""Linear layers that multiply whole numbers of eight bits, on a CPU: `--dtype int8`.

Weights have one scale for each output channel, activations a scale and an offset for each token
(W8A8, dynamic, per channel and per token), so that a row's numbers do not depend on the rows beside it. The
products are oneDNN's, through the operator that torch's own compiler uses; it is not public, and what it
computes is tried before it is trusted.
"""

import threading
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import torch
from torch import nn

from poolembed.errors import ConfigError
from poolembed.runner.backbone import Backbone
from poolembed.runner.layers import forward_seen, places_of, put
from poolembed.runner.packing import PackedBatch

# Largest magnitude of a weight; -128 is left out so that there is as much on both sides of zero.
MOST_WEIGHT = 127

# Largest activation. Without VNNI instructions, sums of two products are cut off at 16 bits, where 255 is
# too much for the largest weights.
MOST_ACTIVATION = (255, 127)

# A layer of it checks what is multiplied: at least this many inputs and outputs.
TRIAL_SIZE = 64


class Rounded(NamedTuple):
    """Tokens in whole numbers: `steps * step + least` is nearly what they were.

    Attributes:
        steps: shape (num_tokens, size), uint8.
        step: shape (num_tokens, 1), float32.
        least: shape (num_tokens, 1), float32.
    """

    steps: torch.Tensor
    step: torch.Tensor
    least: torch.Tensor


class SharedInput(threading.local):
    """What layers that read one input, one after the other, have rounded once; each thread has its own.

    Args:
        num_readers: how many layers read it; what one alone reads is not kept.
    """

    def __init__(self, num_readers: int = 1) -> None:
        self._num_readers = num_readers
        self._kept: tuple[torch.Tensor, Rounded] | None = None
        self._num_left = 0

    def rounded(self, input: torch.Tensor, most: int) -> Rounded:
        """Return the tokens of `input`, shape (..., size), rounded to 0 ... `most`."""
        if self._kept is not None and self._kept[0] is input:
            found = self._kept[1]
        else:
            found, self._num_left = _round(input.reshape(-1, input.shape[-1]), most), self._num_readers
        self._num_left -= 1
        self._kept = (input, found) if self._num_left > 0 else None
        return found


class Int8Linear(nn.Linear):
    """A linear layer of eight bits; inputs and outputs are float32.

    Args:
        layer: whose weight and bias, both float32, these are; they are shared.
        most: largest activation, see `most_activation`.
        shared: what the layers that read the same input have in common; None for a layer alone.
    """

    def __init__(self, layer: nn.Linear, most: int, shared: SharedInput | None = None) -> None:
        nn.Module.__init__(self)
        self.in_features, self.out_features = layer.in_features, layer.out_features
        self.weight, self.bias = layer.weight, layer.bias
        weight = layer.weight.detach()
        self._scales = (weight.abs().amax(1) / MOST_WEIGHT).clamp_min(torch.finfo(torch.float32).tiny)
        rounded = (weight / self._scales[:, None]).round()
        # What an offset of 1 in every input adds to each output.
        self._sums = rounded.sum(1) * self._scales
        self._zero_points = torch.zeros(self.out_features, dtype=torch.int32)
        self._most = most
        self._shared = shared or SharedInput()
        # No buffer: the layout is known to oneDNN alone, so that it can be neither moved nor saved.
        self._packed = (torch.ops.onednn.qlinear_prepack(rounded.to(torch.int8), None),)

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Return the product, shape (..., out_features), of `input`, shape (..., in_features), float32."""
        steps, step, least = self._shared.rounded(input, self._most)
        output = _product(steps, self._packed[0], self._scales, self._zero_points)
        output.mul_(step).addcmul_(least, self._sums)
        if self.bias is not None:
            output.add_(self.bias)
        return output.view(*input.shape[:-1], self.out_features)


def quantize_linears(backbone: Backbone, batch: PackedBatch, heads: nn.Module) -> float:
    """Replace the linear layers of a transformer by layers of eight bits; heads stay as they are.

    Args:
        backbone: the checked model in float32, on the CPU; it is changed.
        batch: one row of random tokens.
        heads: what pools the hidden states; layers that it shares with the transformer stay.

    Returns:
        The mean cosine, over the tokens of `batch`, between hidden states before and after.

    Raises:
        ConfigError: this build of torch, or this processor, has no exact products of eight bits, or the
            transformer has no linear layers.
    """
    ran: list[tuple[nn.Module, torch.Tensor]] = []
    kept = set(heads.modules())
    linears = [
        module for module in backbone.model.modules() if type(module) is nn.Linear and module not in kept
    ]
    expected = forward_seen(backbone, batch, linears, lambda layer, inputs, _: ran.append((layer, inputs[0])))
    if not ran:
        raise ConfigError("--dtype int8: the model has no linear layers to quantize", "use --dtype float32")
    most = most_activation()
    layers: dict[nn.Module, Int8Linear] = {}
    for group in _readers(ran):
        shared = SharedInput(len(group))
        layers |= {layer: Int8Linear(layer, most, shared) for layer in group if layer not in layers}
    put(places_of(backbone.model), layers)
    found = backbone.forward(batch)
    return float(torch.cosine_similarity(found, expected, dim=-1).mean())


def _readers(ran: Sequence[tuple[nn.Module, torch.Tensor]]) -> list[list[nn.Linear]]:
    """Return the layers that read one tensor, one after the other, in the order in which they ran."""
    groups: list[list[nn.Linear]] = []
    last = None
    for layer, input in ran:
        assert isinstance(layer, nn.Linear)
        if input is not last:
            groups.append([])
        groups[-1].append(layer)
        last = input
    return groups


def _round(rows: torch.Tensor, most: int) -> Rounded:
    least = rows.amin(1, keepdim=True)
    step = ((rows.amax(1, keepdim=True) - least) / most).clamp_min_(torch.finfo(rows.dtype).tiny)
    per_step = 1 / step
    # Half a step more, since the conversion to whole numbers cuts off.
    steps = torch.addcmul(0.5 - least * per_step, rows, per_step).to(torch.uint8)
    return Rounded(steps, step, least)


@cache
def most_activation() -> int:
    """Return the largest activation for which products are exact here.

    Raises:
        ConfigError: there is none.
    """
    for most in MOST_ACTIVATION:
        if _is_exact(most):
            return most
    raise ConfigError(
        f"--dtype int8: torch {torch.__version__} has no exact products of eight bits on this machine",
        "use --dtype float32",
    )


def _is_exact(most: int) -> bool:
    """Multiply the largest numbers, where sums of two products are cut off first."""
    steps = torch.full((TRIAL_SIZE, TRIAL_SIZE), most, dtype=torch.uint8)
    weight = torch.full((TRIAL_SIZE, TRIAL_SIZE), MOST_WEIGHT, dtype=torch.int8)
    weight[1::2] *= -1
    zero_points = torch.zeros(TRIAL_SIZE, dtype=torch.int32)
    try:
        packed = torch.ops.onednn.qlinear_prepack(weight, None)
        found = _product(steps, packed, torch.ones(TRIAL_SIZE), zero_points)
    except (AttributeError, RuntimeError):
        return False
    return torch.equal(found, (steps.long() @ weight.long().mT).float())


def _product(
    steps: torch.Tensor, packed: torch.Tensor, scales: torch.Tensor, zero_points: torch.Tensor
) -> torch.Tensor:
    """Return the product of activations, uint8, and packed weights in float32."""
    product: torch.Tensor = torch.ops.onednn.qlinear_pointwise(
        steps, 1.0, 0, packed, scales, zero_points, None, 1.0, 0, torch.float32, "none", [], ""
    )
    return product
