"""What the tokenizer files say, as far as it can be read without building the tokenizer."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from poolembed.errors import ModelError
from poolembed.runner.spec.document import UNDECLARED, Declared, Document
from poolembed.runner.spec.families import LEFT_PADDING_TOKENIZERS, LLAMA_TOKENIZER_FAMILIES

PaddingSide = Literal["left", "right"]

MAX_LENGTH_SENTINEL = 10**9
"""`model_max_length` from here on (often 1e30) stands for unset."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenizerSpec:
    """The tokenizer of a checkpoint.

    Attributes:
        class_in_config: class name in tokenizer_config.json; None when it names none.
        vocab_size: number of tokens, added ones included; None without tokenizer.json.
        padding_side: side that padding goes to.
        model_max_length: its limit in tokens; None when unset.
        single_template: how special tokens frame one text, such as `[CLS] $A [SEP]`; None without
            tokenizer.json.
    """

    class_in_config: str | None
    vocab_size: int | None
    padding_side: PaddingSide
    model_max_length: int | None
    single_template: str | None


class Vocabulary:
    """The tokens of tokenizer.json, by text and by id.

    Args:
        tokenizer: tokenizer.json; may be empty.
    """

    def __init__(self, tokenizer: Document) -> None:
        self._ids = _model_tokens(tokenizer)
        for entry in tokenizer.entries("added_tokens"):
            content, token_id = entry.text("content"), entry.integer("id")
            if content and token_id:
                self._ids[content.value] = token_id.value

    def __len__(self) -> int:
        return len(self._ids)

    def token_id(self, token: str) -> int | None:
        """Return the id of a token; None when it is unknown."""
        return self._ids.get(token)

    def token(self, token_id: int) -> str | None:
        """Return the text of a token; None when no token has that id."""
        return next((token for token, number in self._ids.items() if number == token_id), None)

    def require(self, tokens: Iterable[str], asked_by: str) -> tuple[int, ...]:
        """Return the ids of `tokens`.

        Args:
            tokens: as the vocabulary spells them.
            asked_by: file and key that need them, for the message.

        Raises:
            ModelError: one of them is no single token.
        """
        found = []
        for token in tokens:
            token_id = self.token_id(token)
            if token_id is None:
                raise ModelError(
                    f"{asked_by} needs {token!r} as one token, which tokenizer.json does not have",
                    'name tokens of this vocabulary: --set \'classifier_from_token=["no", "yes"]\'',
                )
            found.append(token_id)
        return tuple(found)


def read_tokenizer(
    tokenizer: Document, config: Document, model_type: str, user: Document
) -> tuple[TokenizerSpec, Declared[PaddingSide], Declared[bool]]:
    """Return the tokenizer, its padding side and whether it gives token types, with their sources.

    Args:
        tokenizer: tokenizer.json.
        config: tokenizer_config.json.
        model_type: the family, which decides the padding side when no file says it.
        user: the user's settings.

    Raises:
        ModelError: the padding side is neither left nor right.
    """
    class_name = config.text("tokenizer_class")
    side = user.text("padding_side") or config.text("padding_side") or _stored_side(tokenizer)
    padding = side or _default_side(class_name, model_type)
    if padding.value not in ("left", "right"):
        raise ModelError(f"{padding.source} is {padding.value!r}, expected left or right", "correct the file")
    padding_side: PaddingSide = "left" if padding.value == "left" else "right"
    length = usable_length(config)
    spec = TokenizerSpec(
        class_in_config=class_name.value if class_name else None,
        vocab_size=len(Vocabulary(tokenizer)) if tokenizer.data else None,
        padding_side=padding_side,
        model_max_length=length.value if length else None,
        single_template=_single_template(tokenizer.section("post_processor")) if tokenizer.data else None,
    )
    return spec, Declared(padding_side, padding.source), _token_types(tokenizer, config, user)


def usable_length(config: Document) -> Declared[int] | None:
    """Return `model_max_length` of tokenizer_config.json; None when absent or a sentinel."""
    raw = config.data.get("model_max_length")
    if isinstance(raw, float) and raw >= MAX_LENGTH_SENTINEL:
        return None
    length = config.integer("model_max_length")
    return length if length and 0 < length.value < MAX_LENGTH_SENTINEL else None


def _model_tokens(tokenizer: Document) -> dict[str, int]:
    model = tokenizer.section("model")
    vocab = model.data.get("vocab")
    if isinstance(vocab, dict):
        return dict(vocab)
    if not isinstance(vocab, list):
        return {}
    if not all(isinstance(entry, list) and entry for entry in vocab):
        raise model.mistyped("vocab", "a list of [token, score] pairs")
    # Unigram models list pairs, whose place is the id.
    return {str(entry[0]): index for index, entry in enumerate(vocab)}


def _stored_side(tokenizer: Document) -> Declared[str] | None:
    direction = tokenizer.section("padding").text("direction")
    return Declared(direction.value.lower(), direction.source) if direction else None


def _default_side(class_name: Declared[str] | None, model_type: str) -> Declared[str]:
    name = re.sub("Fast$", "", class_name.value) if class_name else ""
    is_replaced = name == "LlamaTokenizer" and model_type not in LLAMA_TOKENIZER_FAMILIES
    is_left = name in LEFT_PADDING_TOKENIZERS and not is_replaced
    return Declared("left" if is_left else "right", UNDECLARED)


def _processors(processor: Document) -> list[Document]:
    """Return a post-processor's parts, itself when it is none of several."""
    return processor.entries("processors") or [processor]


def _single_template(processor: Document) -> str:
    for part in _processors(processor):
        kind = part.data.get("type")
        if kind == "TemplateProcessing":
            return " ".join(_piece(piece) for piece in part.entries("single"))
        if kind in ("RobertaProcessing", "BertProcessing"):
            return f"{_special(part, 'cls')} $A {_special(part, 'sep')}"
    return "$A"


def _piece(piece: Document) -> str:
    """Return how one piece of a template is written: `$A` for the text, else the special token."""
    sequence = piece.section("Sequence").text("id")
    special = piece.section("SpecialToken").text("id")
    return f"${sequence.value}" if sequence else special.value if special else "?"


def _special(processor: Document, key: str) -> str:
    """Return the token of a `[token, id]` pair."""
    pair = processor.data.get(key)
    return str(pair[0]) if isinstance(pair, list) and pair else "?"


def _token_types(tokenizer: Document, config: Document, user: Document) -> Declared[bool]:
    """Return whether the tokenizer marks the second text of a pair by its own token type."""
    chosen = user.flag("token_types")
    inputs = config.strings("model_input_names")
    if chosen:
        return chosen
    if inputs:
        return Declared("token_type_ids" in inputs.value, inputs.source)
    for part in _processors(tokenizer.section("post_processor")):
        kind = part.data.get("type")
        if kind == "TemplateProcessing":
            second = any('"type_id": 1' in json.dumps(piece.data) for piece in part.entries("pair"))
            return Declared(second, "tokenizer.json: post_processor")
        if kind in ("RobertaProcessing", "BertProcessing"):
            return Declared(kind == "BertProcessing", "tokenizer.json: post_processor")
    return Declared(value=False, source=UNDECLARED)
