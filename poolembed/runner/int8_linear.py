"""Linear layers that multiply whole numbers of eight bits, on a CPU: `--dtype int8`.

Weights have one scale for each output channel, activations a scale and an offset for each token
(W8A8, dynamic, per channel and per token), so that a row's numbers do not depend on the rows beside it. The
products are oneDNN's, through the operator that torch's own compiler uses; it is not public, and what it
computes is tried before it is trusted.
"""

from functools import cache

import torch
from torch import nn

from poolembed.errors import ConfigError
from poolembed.runner.backbone import Backbone
from poolembed.runner.packing import PackedBatch

# Largest magnitude of a weight; -128 is left out so that there is as much on both sides of zero.
MOST_WEIGHT = 127

# Largest activation. Without VNNI instructions, sums of two products are cut off at 16 bits, where 255 is
# too much for the largest weights.
MOST_ACTIVATION = (255, 127)

# A layer of it checks what is multiplied: at least this many inputs and outputs.
TRIAL_SIZE = 64


class Int8Linear(nn.Linear):
    """A linear layer of eight bits; inputs and outputs are float32.

    Args:
        layer: whose weight and bias, both float32, these are; they are shared.
        most: largest activation, see `most_activation`.
    """

    def __init__(self, layer: nn.Linear, most: int) -> None:
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
        # No buffer: the layout is known to oneDNN alone, so that it can be neither moved nor saved.
        self._packed = (torch.ops.onednn.qlinear_prepack(rounded.to(torch.int8), None),)

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Return the product, shape (..., out_features), of `input`, shape (..., in_features), float32."""
        rows = input.reshape(-1, self.in_features)
        least = rows.amin(1, keepdim=True)
        step = ((rows.amax(1, keepdim=True) - least) / self._most).clamp_min_(torch.finfo(rows.dtype).tiny)
        per_step = 1 / step
        # Half a step more, since the conversion to whole numbers cuts off.
        steps = torch.addcmul(0.5 - least * per_step, rows, per_step).to(torch.uint8)
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
    ran: list[nn.Module] = []
    modules = list(backbone.model.modules())
    kept = set(heads.modules())
    linears = [module for module in modules if type(module) is nn.Linear and module not in kept]
    hooks = [linear.register_forward_hook(lambda module, *_: ran.append(module)) for linear in linears]
    expected = backbone.forward(batch)
    for hook in hooks:
        hook.remove()
    if not ran:
        raise ConfigError("--dtype int8: the model has no linear layers to quantize", "use --dtype float32")
    most = most_activation()
    layers = {layer: Int8Linear(layer, most) for layer in ran if isinstance(layer, nn.Linear)}
    for module in modules:
        for name, child in list(module._modules.items()):
            if child in layers:
                setattr(module, name, layers[child])
    found = backbone.forward(batch)
    return float(torch.cosine_similarity(found, expected, dim=-1).mean())


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
