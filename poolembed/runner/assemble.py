"""What pools the output of a transformer, from the parts of its checkpoint."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch
from torch import nn

from poolembed.errors import ModelError
from poolembed.poolers import (
    BOSEOSFilter,
    DispatchPooler,
    LambdaPoolerActivation,
    Pooler,
    PoolerClassify,
    PoolerIdentity,
    PoolerMultiLabelClassify,
    SpladePooler,
    pooler_for_classify,
    pooler_for_embed,
    pooler_for_token_classify,
    pooler_for_token_embed,
)
from poolembed.runner.parts import Parts
from poolembed.runner.projector import linear, load_projector, read_weights
from poolembed.runner.spec import LogitHead, ModelSpec


def assemble(spec: ModelSpec, parts: Parts, device: torch.device) -> Pooler:
    """Make the pooler of everything that a model can do.

    Args:
        spec: what the checkpoint declares.
        parts: the loaded model.
        device: where heads are put, in float32.

    Returns:
        What turns hidden states into results, on `device`.

    Raises:
        ModelError: a head's weights are missing.
    """
    return _ASSEMBLERS[spec.kind](spec, parts, device).eval().to(device)


def _embedding(spec: ModelSpec, parts: Parts, device: torch.device) -> Pooler:
    projector = load_projector(spec, device)
    if spec.bge_m3 is None:
        return DispatchPooler.for_embedding(spec.pooler_config, projector)
    return _bge_m3(spec, parts.transformer.config, projector)


def _bge_m3(spec: ModelSpec, config: Any, projector: nn.Module | None) -> Pooler:  # noqa: ANN401
    assert spec.bge_m3 is not None
    colbert = _saved_linear(spec, spec.bge_m3.colbert)
    sparse = nn.Sequential(_saved_linear(spec, spec.bge_m3.sparse), nn.ReLU())
    token_embed = pooler_for_token_embed(spec.pooler_config, colbert)
    token_classify = pooler_for_token_classify(
        spec.pooler_config, model_config=_holder(config), classifier=sparse, act_fn=PoolerIdentity()
    )
    bos, eos = int(config.bos_token_id), int(config.eos_token_id)
    return DispatchPooler(
        {
            "embed": pooler_for_embed(spec.pooler_config, projector),
            "token_embed": BOSEOSFilter(token_embed, bos_token_id=bos),
            "token_classify": BOSEOSFilter(token_classify, bos_token_id=bos, eos_token_id=eos),
        }
    )


def _sparse(spec: ModelSpec, parts: Parts, device: torch.device) -> Pooler:
    assert parts.head is not None
    assert parts.decoder is not None
    weight, bias = parts.decoder
    return SpladePooler(parts.head, weight.float(), None if bias is None else bias.float())


def _late_interaction(spec: ModelSpec, parts: Parts, device: torch.device) -> Pooler:
    pooler = pooler_for_token_embed(spec.pooler_config, load_projector(spec, device))
    return DispatchPooler({"token_embed": pooler})


def _classifier(spec: ModelSpec, parts: Parts, device: torch.device) -> Pooler:
    pooler = pooler_for_classify(
        spec.pooler_config,
        model_config=_holder(parts.transformer.config),
        classifier=_head(spec, parts),
        act_fn=_activation(spec),
    )
    return DispatchPooler({"classify": pooler})


def _token_classifier(spec: ModelSpec, parts: Parts, device: torch.device) -> Pooler:
    return _token_pooler(spec, parts, _head(spec, parts))


def _reward(spec: ModelSpec, parts: Parts, device: torch.device) -> Pooler:
    if spec.logit_head is not None:
        return _token_pooler(spec, parts, _head(spec, parts))
    head = _reward_head(spec)
    token_pooler = _token_pooler(spec, parts, head)
    if "classify" not in spec.tasks:
        return token_pooler
    model_config = _holder(parts.transformer.config)
    last = pooler_for_classify(
        spec.pooler_config, model_config=model_config, classifier=head, act_fn=_activation(spec)
    )
    return DispatchPooler({"token_classify": token_pooler, "classify": last})


_ASSEMBLERS: dict[str, Callable[[ModelSpec, Parts, torch.device], Pooler]] = {
    "embedding": _embedding,
    "sparse": _sparse,
    "late-interaction": _late_interaction,
    "cross-encoder": _classifier,
    "classifier": _classifier,
    "token-classifier": _token_classifier,
    "reward": _reward,
    "process-reward": _reward,
}


def _head(spec: ModelSpec, parts: Parts) -> nn.Module:
    if spec.logit_head is not None:
        return _logit_head(spec.logit_head, parts)
    assert parts.head is not None
    return parts.head


def _token_pooler(spec: ModelSpec, parts: Parts, head: nn.Module) -> Pooler:
    pooler = pooler_for_token_classify(
        spec.pooler_config,
        model_config=_holder(parts.transformer.config),
        classifier=head,
        act_fn=_activation(spec),
    )
    return DispatchPooler({"token_classify": pooler})


def _activation(spec: ModelSpec) -> nn.Module:
    """Return the output activation that the spec names."""
    if spec.activation == "softmax":
        return PoolerClassify()
    if spec.activation == "sigmoid":
        return PoolerMultiLabelClassify()
    if spec.activation == "none":
        return PoolerIdentity()
    return LambdaPoolerActivation(getattr(nn, spec.activation)())


def _logit_head(head: LogitHead, parts: Parts) -> nn.Linear:
    """Return the rows of the language-model head that score, as a layer of its own."""
    assert parts.decoder is not None
    weight, bias = parts.decoder
    ids = list(head.token_ids)
    weight, bias = weight[ids].float(), None if bias is None else bias[ids].float()
    if head.method == "from_2_way_softmax":
        # The softmax over two logits is the sigmoid of their difference.
        weight = weight[1:] - weight[:1]
        bias = None if bias is None else bias[1:] - bias[:1]
    return linear(weight.detach(), None if bias is None else bias.detach())


def _reward_head(spec: ModelSpec) -> nn.Sequential:
    """Return the layers `score.0`, `score.2`, ... or `v_head` with ReLU between them."""
    weights = {
        name: tensor
        for file in spec.weight_files
        for name, tensor in read_weights(spec.folder / file).items()
        if name.startswith(("score.", "v_head."))
    }
    names = sorted((name.removesuffix(".weight") for name in weights if name.endswith(".weight")), key=_layer)
    if not names:
        raise ModelError(f"{spec.folder} has no reward head", "its weights should hold score.* or v_head.*")
    layers = [linear(weights[f"{name}.weight"], weights.get(f"{name}.bias")) for name in names]
    taken = [*(layer.in_features for layer in layers), spec.num_labels]
    given = [spec.hidden_size, *(layer.out_features for layer in layers)]
    if taken != given:
        raise ModelError(
            f"{spec.folder}: the layers of its reward head take {taken[:-1]} numbers and give {given[1:]}, "
            f"which do not lead from {spec.hidden_size} to {spec.num_labels}",
            "this architecture is not supported",
        )
    modules = [module for layer in layers for module in (layer, nn.ReLU())]
    return nn.Sequential(*modules[:-1])


def _layer(name: str) -> int:
    """Return the number that the name of a layer ends with; 0 where it has none."""
    number = name.rpartition(".")[2]
    return int(number) if number.isdigit() else 0


def _saved_linear(spec: ModelSpec, file: str) -> nn.Linear:
    weights = read_weights(spec.folder / file)
    if not {"weight", "bias"} <= weights.keys():
        raise ModelError(f"{spec.folder / file} lacks weight or bias", "download the file again")
    return linear(weights["weight"], weights["bias"])


def _holder(config: object) -> SimpleNamespace:
    return SimpleNamespace(hf_config=config)
