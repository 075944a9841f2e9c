"""From the name of a model to a runner that is ready and checked."""

from dataclasses import replace
from typing import Any

import numpy as np
import torch

from poolembed.config import ModelConfig, PoolerConfig
from poolembed.errors import ModelError
from poolembed.runner.assemble import assemble
from poolembed.runner.backbone import Backbone
from poolembed.runner.budget import CPU_CANDIDATES, Trials
from poolembed.runner.describe import describe_model
from poolembed.runner.device import resolve_device, resolve_dtype
from poolembed.runner.encoder import load_encoder
from poolembed.runner.head_check import check_head, own_logits
from poolembed.runner.int8_linear import quantize_linears
from poolembed.runner.memory import keep_freed_memory
from poolembed.runner.packed_linear import pack_linears, pays_here
from poolembed.runner.packing import TokenizedRows, pack
from poolembed.runner.parts import Parts
from poolembed.runner.pooling_runner import PoolingRunner
from poolembed.runner.prefix import PIECEWISE
from poolembed.runner.rope import scales_with_length
from poolembed.runner.self_check import can_share_prefixes, random_rows, self_check
from poolembed.runner.spec import ModelSpec
from poolembed.runner.spec.document import USER
from poolembed.runner.tokenizer_files import load_tokenizer
from poolembed.runner.tokenizers import Tokenizers
from poolembed.runner.workers import ALONE

# Kinds whose head is a part of the model as transformers loads it.
_WITH_HEAD = ("classifier", "cross-encoder", "token-classifier")


def load_runner(
    model: ModelConfig,
    pooler: PoolerConfig | None = None,
    batch_tokens: int | None = None,
    workers: int | None = None,
) -> PoolingRunner:
    """Find a model, read what it declares, load it and check how it can be run.

    Args:
        model: which model, where and in which precision.
        pooler: the user's changes to what the model declares.
        batch_tokens: most tokens of a batch; None finds the fastest by a short trial.
        workers: batches that are computed at once; 1 computes one with all threads, None finds the faster
            by a short trial.

    Returns:
        The model, ready to run.

    Raises:
        ConfigError: the device, precision or pooling asked for cannot be had.
        ModelError: the model is not found, incomplete or not supported.
    """
    folder, spec = describe_model(model, pooler)
    device = resolve_device(model.device)
    dtype = resolve_dtype(model.dtype, device=device, stored=_stored(spec), model_type=spec.model_type)
    if device.type == "cpu":
        keep_freed_memory()
    tokenizer = load_tokenizer(spec, trust_remote_code=model.trust_remote_code)
    parts, rows, expected = _parts(spec, model, device, dtype, frozenset(tokenizer.all_special_ids))
    transformer, pooling = parts.transformer, assemble(spec, parts, device)
    scales = scales_with_length(transformer.config, spec.max_length)
    backbone = Backbone(transformer, device, scales_with_length=scales)
    check = self_check(backbone, rows)
    if spec.is_causal and spec.pooling in PIECEWISE:
        check = replace(check, shares_prefixes=can_share_prefixes(backbone, rows))
    if model.dtype != "int8" and pays_here(device):  # pragma: no cover - the machine decides
        pack_linears(backbone, pack(rows, np.arange(1)))
    runner = PoolingRunner(
        spec=spec,
        folder=folder,
        tokenizers=Tokenizers(spec, tokenizer),
        backbone=backbone,
        pooler=pooling,
        check=check,
        batch_tokens=batch_tokens or CPU_CANDIDATES[0],
    )
    if expected is not None:
        check_head(runner, rows, expected)
    if model.dtype == "int8":
        cosine = quantize_linears(backbone, pack(rows, np.arange(1)), pooling)
        runner = replace(runner, int8_cosine=cosine)
    trials = Trials(
        backbone=backbone,
        key=f"{folder.name} {folder.revision} {runner.dtype} {check.path} {backbone.model_impl}",
        max_length=spec.max_length,
        token_id=int(rows.token_ids[0]),
    )
    # The scale of positions is a state of the model, which one call at a time may set.
    chosen = ALONE if scales else trials.workers(workers)
    return replace(runner, workers=chosen, batch_tokens=batch_tokens or trials.batch_tokens(chosen))


def _parts(
    spec: ModelSpec, model: ModelConfig, device: torch.device, dtype: torch.dtype, special_ids: frozenset[int]
) -> tuple[Parts, TokenizedRows, list[torch.Tensor] | None]:
    """Load the model; return it, the rows that it is tried with, and its own logits for them, if any."""

    def trial_rows(loaded: Any) -> TokenizedRows:  # noqa: ANN401 - a class of transformers or of encoder
        return random_rows(loaded.get_input_embeddings().num_embeddings, spec.max_length, special_ids)

    if not model.trust_remote_code and model.model_impl != "transformers":
        own = load_encoder(spec, device=device, dtype=dtype)
        if own is not None:
            return own, trial_rows(own.transformer), None
    # Not with this module: transformers' modelling code takes seconds and 120 MB.
    from poolembed.runner.checkpoint import load_checkpoint
    from poolembed.runner.heads import take_apart

    loaded = load_checkpoint(spec, device=device, dtype=dtype, trust_remote_code=model.trust_remote_code)
    rows = trial_rows(loaded)
    expected = own_logits(loaded, rows) if _has_own_logits(spec) else None
    return take_apart(spec, loaded), rows, expected


def _has_own_logits(spec: ModelSpec) -> bool:
    """Tell whether transformers computes what we shall: its head, with the pooling of its choice."""
    is_changed = spec.sources.get("pooling") == USER or spec.tok_pooling != "ALL"
    return spec.kind in _WITH_HEAD and spec.logit_head is None and not is_changed


def _stored(spec: ModelSpec) -> torch.dtype:
    """Return the precision of the weights on disk; undeclared means float32.

    Raises:
        ModelError: the declared one is none of torch's.
    """
    dtype = getattr(torch, spec.dtype or "float32", None)
    if not isinstance(dtype, torch.dtype):
        raise ModelError(
            f"{spec.folder}: config.json declares weights of type {spec.dtype!r}, which torch does not know",
            "correct dtype (or torch_dtype) in config.json",
        )
    return dtype
