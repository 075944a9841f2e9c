"""Weights of a model folder, through transformers, into a chosen class.

What the folder declares is settled before, in `spec`.
"""

from typing import Any

import torch
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForSequenceClassification,
    AutoModelForTextEncoding,
    AutoModelForTokenClassification,
)

from poolembed.errors import ModelError
from poolembed.runner.spec import ModelSpec
from poolembed.runner.tokenizer_files import UNLOADABLE, first_line, silence

# Which part of an architecture is loaded. T5 and its kin have a decoder that no pooling task needs.
_ENCODER_DECODERS = ("t5", "mt5", "umt5")


def load_checkpoint(
    spec: ModelSpec, *, device: torch.device, dtype: torch.dtype, trust_remote_code: bool
) -> Any:  # noqa: ANN401 - a class of transformers, which one depends on the checkpoint
    """Load the transformer that `spec` describes, with the head that its kind needs.

    Args:
        spec: what the folder declares.
        device: where it runs.
        dtype: precision of its weights; heads are made float32 by whoever uses them.
        trust_remote_code: run Python code of the folder.

    Returns:
        The model in evaluation mode on `device`.

    Raises:
        ModelError: weights are missing, newly initialised or of another shape, or cannot be read.
    """
    folder = spec.folder / spec.subfolder
    silence()
    try:
        config = AutoConfig.from_pretrained(folder, trust_remote_code=trust_remote_code)
        for key, value in spec.config_overrides.items():
            setattr(config, key, value)
        model, info = _auto_class(spec).from_pretrained(
            folder,
            config=config,
            dtype=dtype,
            trust_remote_code=trust_remote_code,
            local_files_only=True,
            output_loading_info=True,
        )
    except UNLOADABLE as error:
        raise ModelError(f"{spec.folder} cannot be loaded: {first_line(error)}") from error
    _refuse_missing(spec, info)
    return model.eval().to(device)


def _auto_class(spec: ModelSpec) -> Any:  # noqa: ANN401
    if spec.logit_head is not None:
        return AutoModelForCausalLM
    if spec.kind == "sparse":
        return AutoModelForMaskedLM
    if spec.kind in ("cross-encoder", "classifier"):
        return AutoModelForSequenceClassification
    if spec.kind == "token-classifier":
        return AutoModelForTokenClassification
    return AutoModelForTextEncoding if spec.model_type in _ENCODER_DECODERS else AutoModel


def _refuse_missing(spec: ModelSpec, info: dict[str, Any]) -> None:
    """Stop where transformers would go on with random weights."""
    # The pooler of BERT-like models is not used by embeddings; their checkpoints often lack it.
    unused = ("pooler.",) if spec.kind in ("embedding", "late-interaction", "sparse") else ()
    missing = sorted(key for key in info["missing_keys"] if not key.startswith(unused))
    if missing:
        shown = ", ".join(missing[:4]) + (f" and {len(missing) - 4} more" if len(missing) > 4 else "")
        raise ModelError(
            f"{spec.folder} lacks weights of {spec.architecture}: {shown}",
            "they would be random; check that the folder is complete and made for this task",
        )
