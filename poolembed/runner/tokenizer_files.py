"""The tokenizer of a model folder, as transformers builds it."""

import struct
from functools import partial
from pickle import UnpicklingError
from typing import Any

from safetensors import SafetensorError
from tokenizers.normalizers import Lowercase, Normalizer, Sequence

from poolembed.errors import ModelError
from poolembed.runner.plain_tokenizer import TextTokenizer, load_plain
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


def load_tokenizer(spec: ModelSpec, *, trust_remote_code: bool) -> TextTokenizer:
    """Load the tokenizer as transformers builds it, lower-casing where the checkpoint asks for it.

    A tokenizer.json is not read directly, unless transformers is known to make of it what it says: it
    rebuilds some of them (older Llama and Mistral ones), and the authors' numbers come from what it builds.

    Args:
        spec: what the folder declares.
        trust_remote_code: run Python code of the folder.

    Returns:
        The fast tokenizer, of transformers' own class if it renders a prompt or the folder brings code.

    Raises:
        ModelError: it cannot be built, or has no fast form.
    """
    build = partial(_built, spec, trust_remote_code=trust_remote_code)
    needs_transformers = trust_remote_code or spec.template is not None
    tokenizer = build() if needs_transformers else load_plain(spec.folder / spec.subfolder, build)
    if spec.do_lower_case:
        # In the normalizer, not in the text, so that special tokens in a text keep their case.
        backend = tokenizer.backend_tokenizer
        backend.normalizer = _lowercased(backend.normalizer)
    return tokenizer


def _built(spec: ModelSpec, *, trust_remote_code: bool) -> TextTokenizer:
    """Return what transformers makes of a folder."""
    # Not with this module: the import takes seconds.
    from transformers import AutoTokenizer

    silence()
    try:
        tokenizer: Any = AutoTokenizer.from_pretrained(
            spec.folder / spec.subfolder, trust_remote_code=trust_remote_code, local_files_only=True
        )
    except Exception as error:
        # The tokenizers library has no class of its own for a file that it cannot make sense of.
        if type(error) is not Exception and not isinstance(error, UNLOADABLE):
            raise
        raise ModelError(f"the tokenizer of {spec.folder} cannot be loaded: {first_line(error)}") from error
    if getattr(tokenizer, "backend_tokenizer", None) is None:
        raise ModelError(
            f"{spec.folder}: the tokenizer {type(tokenizer).__name__} has no fast form",
            "save it with `tokenizer.save_pretrained` as tokenizer.json first",
        )
    built: TextTokenizer = tokenizer
    return built


def _lowercased(normalizer: Normalizer | None) -> Normalizer:
    if normalizer is None:
        return Lowercase()
    return Sequence([Lowercase(), normalizer])


def silence() -> None:
    """Keep transformers' bars and load reports away; what matters in them is an error here."""
    import transformers

    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()


def first_line(error: Exception) -> str:
    """Return the first line of what an error says, or its name."""
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
