"""How a model's configuration names its output activation."""

from collections.abc import Callable
from importlib import import_module
from typing import Any, Protocol

import torch
from torch import nn

from poolembed.errors import PoolingError
from poolembed.poolers.activations import (
    LambdaPoolerActivation,
    PoolerActivation,
    PoolerClassify,
    PoolerIdentity,
    PoolerMultiLabelClassify,
)
from poolembed.poolers.base import TensorFn

_ACTIVATION_PREFIX = "torch.nn.modules."


class HasHfConfig(Protocol):
    """What `resolve_classifier_act_fn` must know of a model."""

    @property
    def hf_config(self) -> object:
        """The model's configuration, an object with attributes."""


_BY_PROBLEM_TYPE: dict[str, Callable[[int | None], PoolerActivation]] = {
    "regression": lambda num_labels: PoolerIdentity(),
    "single_label_classification": PoolerClassify,
    "multi_label_classification": lambda num_labels: PoolerMultiLabelClassify(),
}


def get_act_fn(config: object, static_num_labels: bool = True) -> PoolerActivation:  # noqa: FBT001, FBT002
    """Return the activation that a model's configuration asks for.

    Looked at in this order: `problem_type`; `sentence_transformers["activation_fn"]`;
    `sbert_ce_default_activation_function`; otherwise probabilities over the labels.

    Args:
        config: the content of config.json as an object with attributes.
        static_num_labels: take the number of labels from `config.num_labels`; otherwise from the
            width of the logits.

    Raises:
        PoolingError: the named activation is none of torch's own.

    Source:
        vLLM 0.33.0 `get_act_fn`.
    """
    num_labels: int | None = getattr(config, "num_labels", 0) if static_num_labels else None
    problem_type = getattr(config, "problem_type", None)
    if problem_type in _BY_PROBLEM_TYPE:
        return _BY_PROBLEM_TYPE[problem_type](num_labels)
    name = (getattr(config, "sentence_transformers", None) or {}).get("activation_fn")
    if name is None:
        name = getattr(config, "sbert_ce_default_activation_function", None)
    return PoolerClassify(num_labels) if name is None else _wrap(_load_activation(name))


def resolve_classifier_act_fn(
    model_config: HasHfConfig,
    static_num_labels: bool = True,  # noqa: FBT001, FBT002
    act_fn: TensorFn | None = None,
) -> TensorFn:
    """Return `act_fn` itself, or without one the activation that the model asks for.

    Args:
        model_config: holds the model's configuration.
        static_num_labels: as in `get_act_fn`.
        act_fn: what the caller wants instead.

    Raises:
        TypeError: `act_fn` cannot be called.
        PoolingError: as in `get_act_fn`.
    """
    if act_fn is None:
        return get_act_fn(model_config.hf_config, static_num_labels)
    if not callable(act_fn):
        raise TypeError(f"act_fn must be callable, got {act_fn!r}")
    return act_fn


def _load_activation(name: Any) -> nn.Module:  # noqa: ANN401
    """Return an instance of one of torch's modules; nothing else is imported for a checkpoint."""
    where = f"activation {name!r} of the model"
    if not isinstance(name, str) or not name.startswith(_ACTIVATION_PREFIX):
        raise PoolingError(f"{where} is restricted to {_ACTIVATION_PREFIX}*")
    module, _, attribute = name.rpartition(".")
    try:
        found = getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise PoolingError(f"{where} does not exist in torch {torch.__version__}") from error
    if not (isinstance(found, type) and issubclass(found, nn.Module)):
        raise PoolingError(f"{where} is restricted to modules, it is {found!r}")
    try:
        return found()
    except TypeError as error:
        raise PoolingError(f"{where} needs arguments, which cannot be given") from error


def _wrap(module: nn.Module) -> PoolerActivation:
    if isinstance(module, nn.Identity):
        return PoolerIdentity()
    if isinstance(module, nn.Sigmoid | nn.Softmax):
        return PoolerClassify()
    return LambdaPoolerActivation(module)
