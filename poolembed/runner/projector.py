"""Dense layers after the transformer, as sentence-transformers and ColBERT checkpoints carry them."""

import struct
from collections.abc import Mapping
from pathlib import Path
from pickle import UnpicklingError

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import nn

from poolembed.errors import ModelError
from poolembed.runner.spec import DenseSpec, ModelSpec
from poolembed.runner.spec.dense import BIAS_NAMES, WEIGHT_NAMES

# Torch's reader of pickles meets bytes that are none with whatever its stack then raises.
_NO_PICKLE = (UnpicklingError, LookupError, AttributeError, TypeError, struct.error)


def load_projector(spec: ModelSpec, device: torch.device) -> nn.Module | None:
    """Return the dense layers that `spec` lists, in order, in float32; None where there are none.

    Args:
        spec: what the checkpoint declares.
        device: where the layers are put.

    Raises:
        ModelError: a layer's weights are missing or of another shape.
    """
    if not spec.dense:
        return None
    layers = [_layer(spec.folder, dense) for dense in spec.dense]
    return nn.Sequential(*layers).eval().to(device)


def read_weights(path: Path) -> Mapping[str, torch.Tensor]:
    """Return the tensors of a safetensors file or of a pickle that holds nothing but tensors.

    Raises:
        ModelError: the file cannot be read, or is a pickle of something else.
    """
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        loaded: object = torch.load(path, map_location="cpu", weights_only=True)
    except _NO_PICKLE as error:
        # What torch says here ends in the advice to run the file's code all the same.
        raise ModelError(f"{path} cannot be read as weights: it is no pickle of tensors") from error
    except (SafetensorError, OSError, RuntimeError, ValueError, EOFError) as error:
        raise ModelError(f"{path} cannot be read as weights: {error}") from error
    if not isinstance(loaded, dict) or not all(
        isinstance(name, str) and isinstance(value, torch.Tensor) for name, value in loaded.items()
    ):
        raise ModelError(f"{path} cannot be read as weights: it is no pickle of tensors")
    return loaded


def linear(weight: torch.Tensor, bias: torch.Tensor | None) -> nn.Linear:
    """Return a linear layer with these weights, in float32 and without gradients.

    Args:
        weight: shape (out_features, in_features), any floating type.
        bias: shape (out_features,); None for a layer without.
    """
    layer = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None)
    layer.weight = nn.Parameter(weight.float(), requires_grad=False)
    if bias is not None:
        layer.bias = nn.Parameter(bias.float(), requires_grad=False)
    return layer


def _layer(folder: Path, dense: DenseSpec) -> nn.Module:
    weights = {name: tensor for file in dense.files for name, tensor in read_weights(folder / file).items()}
    weight = _find(weights, WEIGHT_NAMES)
    bias = _find(weights, BIAS_NAMES) if dense.bias else None
    if weight is None or (dense.bias and bias is None):
        raise ModelError(f"{folder / dense.folder}: the weights of the Dense layer are incomplete")
    activation: nn.Module = getattr(nn, dense.activation)()
    return nn.Sequential(linear(weight, bias), activation)


def _find(weights: Mapping[str, torch.Tensor], names: tuple[str, ...]) -> torch.Tensor | None:
    return next((weights[name] for name in names if name in weights), None)
