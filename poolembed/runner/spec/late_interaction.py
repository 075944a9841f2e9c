"""Late interaction (ColBERT): markers, lengths, query expansion, tokens left out.

Reads the layouts of Stanford's ColBERT (artifact.metadata), PyLate and sentence-transformers 6.
"""

import string
from dataclasses import dataclass, fields
from typing import Any

from poolembed.errors import ModelError
from poolembed.runner.spec.checkpoint import Checkpoint
from poolembed.runner.spec.document import UNDECLARED, Declared, Document, read_document

METADATA_FILE = "artifact.metadata"
PUNCTUATION = tuple(string.punctuation)
"""Tokens that ColBERT leaves out of documents unless told otherwise."""

_QUERY_TOKENS = 32
_STANFORD = {"query": "[unused0]", "document": "[unused1]"}
_LIBRARY_MARKERS = (
    "query_prefix",
    "document_prefix",
    "query_length",
    "document_length",
    "do_query_expansion",
    "attend_to_expansion_tokens",
    "skiplist_words",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LateInteraction:
    """How queries and documents are encoded for MaxSim.

    Attributes:
        query_prefix: marker of a query, one token right after the first special token where the vocabulary
            has it, plain text otherwise; empty for none.
        document_prefix: the same for documents.
        query_length: most tokens of a query; None for the model's own limit.
        document_length: most tokens of a document; None for the model's own limit.
        query_expansion: whether short queries are filled up with `expansion_token`.
        expansion_length: tokens that they are filled up to; None for `query_length`.
        attend_to_expansion: whether the other tokens see the filling.
        expansion_token: the filling; None for the mask token, or the one that ends a text.
        skiplist: tokens whose rows are left out.
        skip_in_queries: whether `skiplist` applies to queries as well as to documents.
    """

    query_prefix: str
    document_prefix: str
    query_length: int | None
    document_length: int | None
    query_expansion: bool
    expansion_length: int | None
    attend_to_expansion: bool
    expansion_token: str | None
    skiplist: tuple[str, ...]
    skip_in_queries: bool


def read_late_interaction(
    checkpoint: Checkpoint, warnings: list[str]
) -> tuple[LateInteraction, dict[str, str]]:
    """Return the settings of a late-interaction model and the source of each.

    Args:
        checkpoint: the model.
        warnings: gets a line when artifact.metadata is missing.

    Raises:
        ModelError: an expansion or a mask that is not computed.
    """
    found = _read_stanford(checkpoint, warnings) if checkpoint.modules is None else _read_library(checkpoint)
    for field in fields(LateInteraction):
        chosen = checkpoint.user.declared(field.name)
        if chosen:
            value = tuple(chosen.value) if isinstance(chosen.value, list) else chosen.value
            found[field.name] = Declared(value, chosen.source)
    values: dict[str, Any] = {name: declared.value for name, declared in found.items()}
    sources = {name: declared.source for name, declared in found.items()}
    return LateInteraction(**values), sources


def _read_stanford(checkpoint: Checkpoint, warnings: list[str]) -> dict[str, Declared[object]]:
    metadata = read_document(checkpoint.folder, METADATA_FILE)
    if not metadata.data:
        warnings.append(f"{METADATA_FILE} is missing; markers, lengths and skip list are ColBERT's defaults")
    punctuation = metadata.flag("mask_punctuation")
    is_skipping = punctuation is None or punctuation.value
    found: dict[str, Declared[object] | None] = {
        "query_prefix": metadata.text("query_token_id"),
        "document_prefix": metadata.text("doc_token_id"),
        "query_length": metadata.integer("query_maxlen"),
        "document_length": metadata.integer("doc_maxlen"),
        "attend_to_expansion": metadata.flag("attend_to_mask_tokens"),
        "skiplist": Declared(PUNCTUATION if is_skipping else (), punctuation.source) if punctuation else None,
    }
    defaults = _defaults()
    return {**defaults, **{name: declared for name, declared in found.items() if declared}}


def _defaults() -> dict[str, Declared[object]]:
    values: dict[str, object] = {
        "query_prefix": _STANFORD["query"],
        "document_prefix": _STANFORD["document"],
        "query_length": _QUERY_TOKENS,
        "document_length": None,
        "query_expansion": True,
        "expansion_length": None,
        "attend_to_expansion": False,
        "expansion_token": None,
        "skiplist": PUNCTUATION,
        "skip_in_queries": False,
    }
    return {name: Declared(value, UNDECLARED) for name, value in values.items()}


def _read_library(checkpoint: Checkpoint) -> dict[str, Declared[object]]:
    library, transformer = checkpoint.library, checkpoint.transformer
    is_pylate = any(key in library.data for key in _LIBRARY_MARKERS)
    found = _defaults()
    if not is_pylate:
        off: dict[str, object] = {
            "query_prefix": "",
            "document_prefix": "",
            "query_expansion": False,
            "skiplist": (),
        }
        found.update({name: Declared(value, UNDECLARED) for name, value in off.items()})
        found["query_length"] = Declared(None, UNDECLARED)
    candidates: dict[str, Declared[object] | None] = {
        "query_prefix": _marker(library, "query"),
        "document_prefix": _marker(library, "document"),
        "query_length": library.integer("query_length") or transformer.integer("query_length"),
        "document_length": library.integer("document_length") or transformer.integer("document_length"),
        "query_expansion": library.flag("do_query_expansion"),
        "attend_to_expansion": library.flag("attend_to_expansion_tokens"),
        "skiplist": library.strings("skiplist_words"),
    }
    found.update({name: declared for name, declared in candidates.items() if declared})
    found.update(_read_expansion(transformer.section("query_expansion"), transformer.integer("query_length")))
    found.update(_read_mask(checkpoint))
    return found


def _marker(library: Document, role: str) -> Declared[object] | None:
    """Return PyLate's marker of a role, or the prompt that sentence-transformers 6 keeps in its place."""
    return library.text(f"{role}_prefix") or library.section("prompts").text(role)


def _read_expansion(expansion: Document, most: Declared[int] | None) -> dict[str, Declared[object]]:
    """Read an expansion: `fixed` fills and cuts to its length, `min` fills alone.

    Source:
        sentence-transformers 6.2, `QueryExpansionConfig`.
    """
    if not expansion.data:
        return {}
    strategy, length = expansion.text("strategy"), expansion.integer("length")
    if strategy is None or strategy.value not in ("fixed", "min") or length is None:
        raise ModelError(
            f"{expansion.name} needs a strategy (fixed or min) and a length, got {dict(expansion.data)}",
            "correct the file",
        )
    if most is not None and most.value < length.value:
        raise ModelError(
            f"{most.source} is {most.value}, below the {length.value} tokens of {expansion.name}",
            "correct the file",
        )
    is_fixed = strategy.value == "fixed"
    attend, token = expansion.flag("attend"), expansion.text("token")
    return {
        "query_expansion": Declared(value=True, source=strategy.source),
        "query_length": length if is_fixed else most or Declared(None, strategy.source),
        "expansion_length": Declared(None, strategy.source) if is_fixed else length,
        "attend_to_expansion": attend or Declared(value=False, source=f"default of {expansion.name}"),
        "expansion_token": token or Declared(None, f"default of {expansion.name}"),
    }


def _read_mask(checkpoint: Checkpoint) -> dict[str, Declared[object]]:
    found: dict[str, Declared[object]] = {}
    for module in checkpoint.modules_of("MultiVectorMask"):
        config = module.config
        kept = config.integers("keep_only_token_ids")
        if kept:
            raise ModelError(
                f"{kept.source} is not supported: it is meant for images",
                "encode it with sentence-transformers",
            )
        found["skiplist"] = config.strings("skiplist_words") or Declared((), f"default of {config.name}")
        found["skip_in_queries"] = _skips_queries(config)
    return found


def _skips_queries(config: Document) -> Declared[bool]:
    tasks = config.declared("skiplist_tasks")
    if tasks is None:
        return Declared(value=False, source=f"default of {config.name}")
    names = config.strings("skiplist_tasks") if not isinstance(tasks.value, str) else None
    return Declared("query" in (names.value if names else (tasks.value,)), tasks.source)
