"""Rerankers made of language models: which vocabulary entries score, and which prompt they expect."""

import re
from dataclasses import dataclass
from typing import Literal

from poolembed.errors import ModelError
from poolembed.runner.spec.checkpoint import Checkpoint
from poolembed.runner.spec.document import Declared
from poolembed.runner.spec.templates import (
    PairTemplate,
    built_in,
    chosen_template,
    read_chat_templates,
    require_declared,
)
from poolembed.runner.spec.tokenizer import Vocabulary

Method = Literal["from_2_way_softmax", "no_post_processing"]

CAUSAL_SUFFIXES = ("ForCausalLM", "LMHeadModel")


@dataclass(frozen=True, slots=True, kw_only=True)
class LogitHead:
    """A score head taken from rows of the language-model head.

    Attributes:
        token_ids: the rows; for `from_2_way_softmax` the negative answer first, then the positive one.
        method: `from_2_way_softmax`: one output, row 1 minus row 0. `no_post_processing`: one output a row.
    """

    token_ids: tuple[int, ...]
    method: Method

    @property
    def num_outputs(self) -> int:
        """Number of outputs of the head."""
        return 1 if self.method == "from_2_way_softmax" else len(self.token_ids)


@dataclass(frozen=True, slots=True)
class _Known:
    pattern: str
    tokens: tuple[str, ...]
    method: Method
    template: str


_KNOWN: tuple[_Known, ...] = (
    _Known(r"qwen3[-_]reranker", ("no", "yes"), "from_2_way_softmax", "qwen3-reranker"),
    _Known(r"mxbai-rerank-.*-v2", ("0", "1"), "from_2_way_softmax", "mxbai-rerank-v2"),
    _Known(r"bge-reranker-v2-gemma", ("Yes",), "no_post_processing", "bge-reranker-v2-gemma"),
)
"""Released rerankers whose files do not say what they are."""

_ROLES = tuple(
    re.compile(rf"""role['"\]]*\s*(==|,\s*['"](equalto|eq|==)['"]\s*,)\s*['"]{role}['"]""")
    for role in ("query", "document")
)
"""How a chat template asks for the messages of a pair."""


def is_causal_reranker(checkpoint: Checkpoint) -> bool:
    """Return whether a causal language model scores pairs, by its files, its template or its name."""
    if not checkpoint.architecture.endswith(CAUSAL_SUFFIXES):
        return False
    return bool(
        checkpoint.modules_of("LogitScore")
        or checkpoint.config.declared("classifier_from_token")
        or _known(checkpoint)
        or _pair_template(checkpoint)
    )


def read_logit_head(checkpoint: Checkpoint) -> Declared[LogitHead] | None:
    """Return which rows of the language-model head score; None for a model with a head of its own.

    Raises:
        ModelError: a token is not in the vocabulary, a token id is missing, or the head has no weights.
    """
    if not checkpoint.architecture.endswith(CAUSAL_SUFFIXES):
        return None
    tied = checkpoint.config.flag("tie_word_embeddings")
    if tied and not tied.value and checkpoint.weights.lacks("lm_head", "embed_out", "output.weight"):
        raise ModelError(
            f"{tied.source} is false, but {checkpoint.weights.files[0]} has no lm_head.weight",
            "download the model again",
        )
    modules = checkpoint.modules_of("LogitScore")
    if modules:
        return _from_module(checkpoint)
    tokens = checkpoint.config.strings("classifier_from_token")
    if tokens:
        return _from_config(checkpoint, tokens)
    known = _known(checkpoint) or _KNOWN[0]
    ids = Vocabulary(checkpoint.tokenizer).require(known.tokens, f"the reranker {known.template}")
    return Declared(LogitHead(token_ids=ids, method=known.method), f"known family ({known.template})")


def read_template(checkpoint: Checkpoint, warnings: list[str]) -> Declared[PairTemplate | None]:
    """Return the prompt that pairs are put in: user, sentence-transformers, chat template, known family.

    Args:
        checkpoint: the model.
        warnings: gets a line when a language model scores pairs and no prompt is known for it.

    Raises:
        ModelError: a template is declared but missing.
    """
    chosen = chosen_template(checkpoint)
    if chosen:
        return chosen
    modalities = checkpoint.transformer.section("modality_config")
    if "message" in modalities.data:
        declared = require_declared(checkpoint, f"{modalities.name}: message")
        return Declared(declared.value, declared.source)
    own = _pair_template(checkpoint)
    if own:
        return Declared(own.value, own.source)
    known = _known(checkpoint)
    if known:
        return built_in(known.template, f"known family ({known.template})")
    return _no_template(checkpoint, warnings)


def _no_template(checkpoint: Checkpoint, warnings: list[str]) -> Declared[PairTemplate | None]:
    is_language_model = re.match(r"(Qwen|Llama|Mistral|Gemma|Phi)", checkpoint.architecture) is not None
    if is_language_model:
        warnings.append(
            f"{checkpoint.architecture} scores pairs, but declares no prompt to put them in; without the "
            "prompt it was trained with its scores mean nothing; choose one with --set template=NAME"
        )
    return Declared(None, "nothing declared")


def _known(checkpoint: Checkpoint) -> _Known | None:
    original = checkpoint.config.flag("is_original_qwen3_reranker")
    if original and original.value:
        return _KNOWN[0]
    name = checkpoint.name.lower()
    return next((known for known in _KNOWN if re.search(known.pattern, name)), None)


def _pair_template(checkpoint: Checkpoint) -> Declared[PairTemplate] | None:
    """Return the chat template when it is made for pairs, that is, knows both roles."""
    default = read_chat_templates(checkpoint).get("default")
    if default is None or not all(role.search(default[0]) for role in _ROLES):
        return None
    return Declared(PairTemplate(name="declared", jinja=default[0]), default[1])


def _from_module(checkpoint: Checkpoint) -> Declared[LogitHead]:
    config = checkpoint.modules_of("LogitScore")[0].config
    positive, negative = config.integer("true_token_id"), config.integer("false_token_id")
    if positive is None:
        raise ModelError(f"{config.name}: true_token_id is missing", "download the module's folder again")
    _check_ids(checkpoint, [token for token in (positive, negative) if token])
    if negative is None:
        return Declared(LogitHead(token_ids=(positive.value,), method="no_post_processing"), positive.source)
    ids = (negative.value, positive.value)
    return Declared(LogitHead(token_ids=ids, method="from_2_way_softmax"), positive.source)


def _check_ids(checkpoint: Checkpoint, tokens: list[Declared[int]]) -> None:
    size = checkpoint.config.integer("vocab_size")
    for token in tokens:
        if size and not 0 <= token.value < size.value:
            raise ModelError(
                f"{token.source} is {token.value}, outside the vocabulary of {size.value} tokens",
                "correct the file",
            )


def _from_config(checkpoint: Checkpoint, tokens: Declared[tuple[str, ...]]) -> Declared[LogitHead]:
    named = checkpoint.config.text("method")
    original = checkpoint.config.flag("is_original_qwen3_reranker")
    default = "from_2_way_softmax" if original and original.value else "no_post_processing"
    method = named.value if named else default
    ids = Vocabulary(checkpoint.tokenizer).require(tokens.value, tokens.source)
    if method == "from_2_way_softmax" and len(ids) == 2:
        return Declared(LogitHead(token_ids=ids, method="from_2_way_softmax"), tokens.source)
    if method == "no_post_processing" and ids:
        return Declared(LogitHead(token_ids=ids, method="no_post_processing"), tokens.source)
    raise ModelError(
        f"{tokens.source} has {len(ids)} tokens, which does not fit the method {method!r}",
        "from_2_way_softmax takes two tokens (negative, positive), no_post_processing one or more",
    )
