"""The tokenizer of a model folder, through transformers."""

import struct
from pickle import UnpicklingError
from typing import Any

import transformers
from safetensors import SafetensorError
from tokenizers.normalizers import Lowercase, Normalizer, Sequence
from transformers import AutoTokenizer

from poolembed.errors import ModelError
from poolembed.runner.spec import ModelSpec

# What transformers, and the readers of safetensors and pickles below it, raise about a folder.
UNLOADABLE = (
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
    silence()
    try:
        tokenizer = AutoTokenizer.from_pretrained(
            folder, trust_remote_code=trust_remote_code, local_files_only=True
        )
    except Exception as error:
        # The tokenizers library has no class of its own for a file that it cannot make sense of.
        if type(error) is not Exception and not isinstance(error, UNLOADABLE):
            raise
        raise ModelError(f"the tokenizer of {spec.folder} cannot be loaded: {first_line(error)}") from error
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


def _lowercased(normalizer: Normalizer | None) -> Normalizer:
    if normalizer is None:
        return Lowercase()
    return Sequence([Lowercase(), normalizer])


def silence() -> None:
    """Keep transformers' bars and load reports away; what matters in them is an error here."""
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()


def first_line(error: Exception) -> str:
    """Return the first line of what an error says, or its name."""
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
