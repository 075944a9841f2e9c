"""Weights and tokenizer of a model folder, through transformers, into a chosen class.

The only place that loads a transformer. What the folder declares is settled before, in `spec`.
"""

import struct
from pickle import UnpicklingError
from typing import Any

import torch
import transformers
from safetensors import SafetensorError
from tokenizers.normalizers import Lowercase, Normalizer, Sequence
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForSequenceClassification,
    AutoModelForTextEncoding,
    AutoModelForTokenClassification,
    AutoTokenizer,
)

from poolembed.errors import ModelError
from poolembed.runner.spec import ModelSpec

# What transformers, and the readers of safetensors and pickles below it, raise about a folder.
_UNLOADABLE = (
    AttributeError,
    EOFError,
    ImportError,
    LookupError,
    OSError,
    RuntimeError,
    SafetensorError,
    TypeError,
    UnpicklingError,
    ValueError,
    struct.error,
)

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
    _silence()
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
    except _UNLOADABLE as error:
        raise ModelError(f"{spec.folder} cannot be loaded: {_first_line(error)}") from error
    _refuse_missing(spec, info)
    return model.eval().to(device)


def load_tokenizer(spec: ModelSpec, *, trust_remote_code: bool) -> Any:  # noqa: ANN401
    """Load the tokenizer as transformers builds it, lower-casing where the checkpoint asks for it.

    A tokenizer.json is not read directly: transformers rebuilds some of them (older Llama and Mistral
    ones), and the authors' numbers come from what it builds.

    Args:
        spec: what the folder declares.
        trust_remote_code: run Python code of the folder.

    Returns:
        The fast tokenizer.

    Raises:
        ModelError: it cannot be built, or has no fast form.
    """
    folder = spec.folder / spec.subfolder
    _silence()
    try:
        tokenizer = AutoTokenizer.from_pretrained(
            folder, trust_remote_code=trust_remote_code, local_files_only=True
        )
    except Exception as error:
        # The tokenizers library has no class of its own for a file that it cannot make sense of.
        if type(error) is not Exception and not isinstance(error, _UNLOADABLE):
            raise
        raise ModelError(f"the tokenizer of {spec.folder} cannot be loaded: {_first_line(error)}") from error
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        raise ModelError(
            f"{spec.folder}: the tokenizer {type(tokenizer).__name__} has no fast form",
            "save it with `tokenizer.save_pretrained` as tokenizer.json first",
        )
    if spec.do_lower_case:
        # In the normalizer, not in the text, so that special tokens in a text keep their case.
        backend.normalizer = _lowercased(backend.normalizer)
    return tokenizer


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


def _lowercased(normalizer: Normalizer | None) -> Normalizer:
    if normalizer is None:
        return Lowercase()
    return Sequence([Lowercase(), normalizer])


def _silence() -> None:
    """Keep transformers' bars and load reports away; what matters in them is an error here."""
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()


def _first_line(error: Exception) -> str:
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
