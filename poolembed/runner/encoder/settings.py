"""What config.json says of an encoder."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from torch import nn

from poolembed.runner.encoder.layout import Family
from poolembed.runner.spec import ModelSpec
from poolembed.runner.spec.checkpoint import read_config
from poolembed.runner.spec.document import Document

ACTIVATIONS: Mapping[str, nn.Module] = MappingProxyType(
    {
        "gelu": nn.GELU(),
        "gelu_new": nn.GELU("tanh"),
        "gelu_pytorch_tanh": nn.GELU("tanh"),
        "relu": nn.ReLU(),
        "silu": nn.SiLU(),
        "swish": nn.SiLU(),
        "tanh": nn.Tanh(),
    }
)
"""By the names that transformers gives them."""

# Keys that mean another computation than the one here, unless they are empty.
_UNKNOWN_HERE = ("is_decoder", "add_cross_attention", "pruned_heads", "quantization_config")

_SIZES = ("num_layers", "num_heads", "hidden_size", "intermediate_size")
_TOKENS = ("pad_token_id", "bos_token_id", "eos_token_id")


class Misfit(Exception):  # noqa: N818 - no error: transformers takes over
    """The checkpoint is not one of those known here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Sizes of an encoder, and what its configuration leaves open.

    Attributes:
        num_layers: layers.
        num_heads: heads of attention of a layer.
        hidden_size: width of a token's hidden state.
        intermediate_size: width between the two linear layers.
        norm_eps: what norms add to the variance.
        activation: between the two linear layers.
        pad_token_id: what stands behind texts; None where nothing is said.
        bos_token_id: what stands before a text; None where nothing is said.
        eos_token_id: what stands behind a text; None where nothing is said.
    """

    num_layers: int
    num_heads: int
    hidden_size: int
    intermediate_size: int
    norm_eps: float
    activation: nn.Module
    pad_token_id: int | None = None
    bos_token_id: int | None = None
    eos_token_id: int | None = None

    def get_text_config(self) -> "Settings":
        """Return what concerns texts, as a configuration of transformers does."""
        return self


def read_settings(spec: ModelSpec, family: Family) -> Settings:
    """Read config.json, with the changes that `spec` asks for.

    What is missing is not guessed: transformers knows the defaults of each family.

    Args:
        spec: what the folder declares.
        family: the names of its settings.

    Returns:
        The settings.

    Raises:
        ModelError: the file cannot be read, or a value is of another type.
        Misfit: something is missing, or means another computation.
    """
    config = read_config(spec.folder, spec.subfolder).updated(spec.config_overrides, "")
    _check(config)
    names = family.settings
    sizes = {part: _needed(config, names[part]) for part in _SIZES}
    if sizes["hidden_size"] % sizes["num_heads"]:
        raise Misfit
    activation = config.text(names["activation"])
    norm_eps = config.data.get(names["norm_eps"]) if "norm_eps" in names else family.norm_eps
    if activation is None or activation.value not in ACTIVATIONS or not isinstance(norm_eps, float):
        raise Misfit
    ids = {key: found.value for key in _TOKENS if (found := config.integer(key))}
    if family.counts_from_pad and "pad_token_id" not in ids:
        raise Misfit
    if spec.bge_m3 is not None and not {"bos_token_id", "eos_token_id"} <= ids.keys():
        raise Misfit
    return Settings(**sizes, **ids, norm_eps=norm_eps, activation=ACTIVATIONS[activation.value])


def _check(config: Document) -> None:
    """Refuse what means another computation."""
    if any(config.data.get(name) for name in _UNKNOWN_HERE):
        raise Misfit
    if config.data.get("position_embedding_type") not in (None, "absolute"):
        raise Misfit


def _needed(config: Document, key: str) -> int:
    found = config.integer(key)
    if found is None:
        raise Misfit
    return found.value
