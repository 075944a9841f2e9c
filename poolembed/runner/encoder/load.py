"""From a model folder to an encoder with its head, where the folder is of a family known here.

Anything unusual is left to transformers: a setting that these layers do not have, a weight that is missing
or of another shape. It loads what it can and says what is wrong with the rest.
"""

from collections.abc import Iterable

import torch
from torch import nn

from poolembed.errors import ModelError
from poolembed.runner.encoder.layout import FAMILIES, Family
from poolembed.runner.encoder.model import (
    POSITION_KINDS,
    Embeddings,
    EncoderModel,
    Layer,
    PositionBias,
)
from poolembed.runner.encoder.settings import ACTIVATIONS, Misfit, Settings, read_settings
from poolembed.runner.parts import Parts
from poolembed.runner.projector import linear, read_weights
from poolembed.runner.spec import ModelSpec

_WITH_HEAD = ("classifier", "cross-encoder", "token-classifier", "sparse")
_WITHOUT_HEAD = ("embedding", "late-interaction")


def load_encoder(spec: ModelSpec, *, device: torch.device, dtype: torch.dtype) -> Parts | None:
    """Load a checkpoint of a family known here.

    Args:
        spec: what the folder declares.
        device: where the encoder runs.
        dtype: precision of its weights; heads are float32.

    Returns:
        The encoder on `device` and its head; None where transformers has to load it.
    """
    family = FAMILIES.get(spec.model_type)
    has_head = spec.kind in _WITH_HEAD
    if family is None or not (has_head or spec.kind in _WITHOUT_HEAD) or spec.logit_head is not None:
        return None
    try:
        settings, weights = read_settings(spec, family), _Weights(spec, family)
        model = _model(settings, family, weights, dtype)
        head = _head(spec, settings, family, weights) if has_head else None
        decoder = _decoder(settings, family, weights) if spec.kind == "sparse" else None
    except (Misfit, ModelError):
        return None
    return Parts(model.eval().to(device), head, decoder)


class _Weights:
    """The tensors of a checkpoint by name, with or without the prefix of its family."""

    def __init__(self, spec: ModelSpec, family: Family) -> None:
        self._prefix = family.prefix
        self._tensors = {
            # The first checkpoints called the two weights of a norm after the paper's symbols.
            name.replace("LayerNorm.gamma", "LayerNorm.weight").replace(
                "LayerNorm.beta", "LayerNorm.bias"
            ): tensor
            for file in spec.weight_files
            for name, tensor in read_weights(spec.folder / file).items()
        }

    def get(self, name: str, *shape: int) -> torch.Tensor:
        """Return a tensor of a shape; -1 stands for any size.

        Raises:
            Misfit: it is missing, of another shape or no floating-point one.
        """
        tensor = self._find(name)
        if tensor is None or not tensor.is_floating_point() or len(tensor.shape) != len(shape):
            raise Misfit(name)
        if any(asked not in (-1, size) for asked, size in zip(shape, tensor.shape, strict=True)):
            raise Misfit(name)
        return tensor

    def first(self, names: Iterable[str], *shape: int) -> torch.Tensor:
        """Return the first of these tensors that is there; see `get`."""
        return self.get(next((name for name in names if self._find(name) is not None), ""), *shape)

    def _find(self, name: str) -> torch.Tensor | None:
        """Return a tensor by its name in the encoder or in full; None where it is missing."""
        for candidate in (self._prefix + name, name, name.removeprefix(self._prefix)):
            if candidate in self._tensors:
                return self._tensors[candidate]
        return None


def _model(settings: Settings, family: Family, weights: _Weights, dtype: torch.dtype) -> EncoderModel:
    width = weights.get(f"{family.embeddings['words']}.weight", -1, -1).shape[1]
    parts = {
        part: weights.get(f"{name}.weight", -1, width).to(dtype)
        for part, name in family.embeddings.items()
        if part != "norm"
    }
    embeddings = Embeddings(
        parts["words"],
        parts["positions"],
        parts.get("types"),
        norm_eps=settings.norm_eps,
        padding_idx=settings.pad_token_id if family.counts_from_pad else family.padding_idx,
    )
    _fill(embeddings.norm, weights, family.embeddings["norm"], width)
    projection = None
    if width != settings.hidden_size:
        if family.projection is None:
            raise Misfit
        projection = linear(*_linear_of(weights, family.projection, settings.hidden_size, width)).to(dtype)
    layers = [_layer(settings, family, weights, number, dtype) for number in range(settings.num_layers)]
    bias = None
    if family.position_bias is not None:
        table = weights.get(f"{family.position_bias}.weight", POSITION_KINDS, settings.num_heads)
        bias = PositionBias(table.to(dtype))
    return EncoderModel(settings, embeddings, projection, layers, bias)


def _layer(settings: Settings, family: Family, weights: _Weights, number: int, dtype: torch.dtype) -> Layer:
    layer = Layer(settings, dtype)
    size, wide = settings.hidden_size, settings.intermediate_size
    names = {part: family.layers.format(number) + name for part, name in family.layer.items()}
    qkv = [_linear_of(weights, names[part], size, size) for part in ("query", "key", "value")]
    weight, bias = (torch.cat(parts) for parts in zip(*qkv, strict=True))
    _put(layer.qkv, weight, bias)
    _put(layer.output, *_linear_of(weights, names["output"], size, size))
    _put(layer.up, *_linear_of(weights, names["up"], wide, size))
    _put(layer.down, *_linear_of(weights, names["down"], size, wide))
    _fill(layer.attention_norm, weights, names["attention_norm"], size)
    _fill(layer.norm, weights, names["norm"], size)
    return layer


def _head(spec: ModelSpec, settings: Settings, family: Family, weights: _Weights) -> nn.Module:
    size = settings.hidden_size
    if spec.kind == "token-classifier":
        return linear(*_linear_of(weights, "classifier", spec.num_labels, size))
    if spec.kind != "sparse":
        names = family.classifier
        return nn.Sequential(
            linear(*_linear_of(weights, names.dense, size, size)),
            ACTIVATIONS[names.activation],
            linear(*_linear_of(weights, names.output, spec.num_labels, size)),
        )
    if family.masked is None:
        raise Misfit
    norm = nn.LayerNorm(size, eps=settings.norm_eps, device="meta")
    _fill(norm, weights, family.masked.norm, size)
    return nn.Sequential(
        linear(*_linear_of(weights, family.masked.dense, size, size)),
        ACTIVATIONS[family.masked.activation] if family.masked.activation else settings.activation,
        norm,
    )


def _decoder(settings: Settings, family: Family, weights: _Weights) -> tuple[torch.Tensor, torch.Tensor]:
    assert family.masked is not None
    # Where the output embeddings are those of words, they are stored once.
    names = (family.masked.decoder, family.embeddings["words"])
    weight = weights.first([f"{name}.weight" for name in names], -1, settings.hidden_size)
    bias = weights.first(family.masked.biases, len(weight))
    return weight.float(), bias.float()


def _linear_of(weights: _Weights, name: str, num_out: int, num_in: int) -> tuple[torch.Tensor, torch.Tensor]:
    return weights.get(f"{name}.weight", num_out, num_in), weights.get(f"{name}.bias", num_out)


def _fill(norm: nn.LayerNorm, weights: _Weights, name: str, size: int) -> None:
    _put(norm, weights.get(f"{name}.weight", size), weights.get(f"{name}.bias", size))


def _put(module: nn.Linear | nn.LayerNorm, weight: torch.Tensor, bias: torch.Tensor) -> None:
    """Give a module its weights, in the precision it was made for."""
    dtype = module.weight.dtype
    module.weight = nn.Parameter(weight.to(dtype), requires_grad=False)
    module.bias = nn.Parameter(bias.to(dtype), requires_grad=False)
