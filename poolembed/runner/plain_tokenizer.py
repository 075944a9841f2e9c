"""Tokenizers of which transformers makes what their tokenizer.json says, read without transformers.

Whether it does is found out with transformers, once for the files of a model and the releases of both
libraries, and remembered. Importing transformers takes longer than many a run.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, fields
from importlib.metadata import version
from pathlib import Path
from typing import Protocol

from tokenizers import Tokenizer

from poolembed.runner.remembered import FOLDER, recall, remember

TOKENIZERS_FILE = FOLDER / "tokenizers.json"
"""Where it is remembered which tokenizers are plain."""

TOKENIZER_JSON = "tokenizer.json"

# What decides which tokenizer transformers makes of a folder. Pickles and weights do not.
_DECISIVE = ("*token*.json", "config.json", "vocab*", "merges*", "*.model", "*.jinja", "chat_template*")


class TextTokenizer(Protocol):
    """What the tokenizers of rows, pairs and windows need, by transformers' names."""

    @property
    def backend_tokenizer(self) -> Tokenizer:
        """The tokenizer of the `tokenizers` library, which all of them change."""

    @property
    def truncation_side(self) -> str:
        """Which end of a long text is cut off: left or right."""

    @property
    def all_special_ids(self) -> list[int]:
        """Tokens that stand for no text."""

    @property
    def unk_token_id(self) -> int | None:
        """The token of what is not in the vocabulary."""

    @property
    def mask_token_id(self) -> int | None:
        """The token of what is left open."""

    @property
    def eos_token_id(self) -> int | None:
        """The token that ends a text."""

    def num_special_tokens_to_add(self) -> int:
        """Return how many tokens stand around a text."""

    def get_vocab(self) -> dict[str, int]:
        """Return the ids of all tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainTokenizer:
    """A tokenizer read from its tokenizer.json; see `TextTokenizer`."""

    backend_tokenizer: Tokenizer
    truncation_side: str
    all_special_ids: list[int]
    unk_token_id: int | None
    mask_token_id: int | None
    eos_token_id: int | None

    def num_special_tokens_to_add(self) -> int:
        """Return how many tokens stand around a text."""
        return int(self.backend_tokenizer.num_special_tokens_to_add(is_pair=False))

    def get_vocab(self) -> dict[str, int]:
        """Return the ids of all tokens."""
        vocabulary: dict[str, int] = self.backend_tokenizer.get_vocab(with_added_tokens=True)
        return vocabulary


# What transformers knows of a tokenizer beside its tokenizer.json.
_FACTS = tuple(field.name for field in fields(PlainTokenizer) if field.name != "backend_tokenizer")


def load_plain(folder: Path, build: Callable[[], TextTokenizer]) -> TextTokenizer:
    """Return the tokenizer of a folder: read if it is known to be plain, otherwise built.

    Args:
        folder: what holds the tokenizer's files.
        build: has transformers make it of them.
    """
    key = _key(folder)
    known = recall(TOKENIZERS_FILE, key)
    # Another release may have written down something else.
    if isinstance(known, dict) and known.keys() == set(_FACTS):
        return PlainTokenizer(backend_tokenizer=_read(folder), **known)
    built = build()
    if known is not False:
        facts = {name: getattr(built, name) for name in _FACTS}
        remember(TOKENIZERS_FILE, key, facts if _is_plain(folder, built.backend_tokenizer) else False)
    return built


def _is_plain(folder: Path, built: Tokenizer) -> bool:
    # Whether special tokens are split is the one state of a backend that is not in its JSON.
    if built.encode_special_tokens or not (folder / TOKENIZER_JSON).is_file():
        return False
    return bool(_unlimited(built).to_str() == _read(folder).to_str())


def _read(folder: Path) -> Tokenizer:
    return _unlimited(Tokenizer.from_file(str(folder / TOKENIZER_JSON)))


def _unlimited(backend: Tokenizer) -> Tokenizer:
    """Forget padding and truncation, which each tokenizer of rows decides on by itself."""
    backend.no_padding()
    backend.no_truncation()
    return backend


def _key(folder: Path) -> str:
    digest = hashlib.sha256()
    for file in sorted({file for pattern in _DECISIVE for file in folder.glob(pattern) if file.is_file()}):
        content = file.read_bytes()
        digest.update(f"{file.name}\0{len(content)}\0".encode() + content)
    releases = " ".join(f"{name}-{version(name)}" for name in ("transformers", "tokenizers"))
    return f"{releases} sha256:{digest.hexdigest()}"
