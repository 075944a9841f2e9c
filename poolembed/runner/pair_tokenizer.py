"""Pairs of texts to tokens, for models that read a query and a document together."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from poolembed.errors import ConfigError, ModelError
from poolembed.runner.bounded import CHARS_PER_TOKEN, BoundedEncoder
from poolembed.runner.packing import IntArray, TokenizedRows
from poolembed.runner.plain_tokenizer import TextTokenizer
from poolembed.runner.spec import PairTemplate

# Stands for the document where a template is asked what comes after it.
_MARK = "\ue000"


@dataclass(frozen=True, slots=True, kw_only=True)
class PairLimits:
    """Most tokens of a pair and of its texts.

    Attributes:
        max_length: of the whole row, special tokens and template included.
        max_query_tokens: of the query alone; None for no limit of its own.
        max_document_tokens: of the document alone; None for no limit of its own.
    """

    max_length: int
    max_query_tokens: int | None = None
    max_document_tokens: int | None = None


class PairTokenizer:
    """Puts the tokens of two texts together as the tokenizer's own pair form does.

    Each distinct text is tokenized once. A pair that is too long loses tokens of its longer text first,
    as in transformers, so that a short query is never cut.

    Args:
        tokenizer: the model's tokenizer; its backend is changed.
        limits: most tokens.
        token_types: whether the model tells the two texts apart by token types.

    Raises:
        ConfigError: the limit has no room for text beside the special tokens.
    """

    def __init__(self, tokenizer: TextTokenizer, limits: PairLimits, *, token_types: bool) -> None:
        self._backend = tokenizer.backend_tokenizer
        self._limits = limits
        self._token_types = token_types
        self._from_left = tokenizer.truncation_side == "left"
        self._encode = BoundedEncoder(self._backend, limits.max_length, from_left=self._from_left)
        self._frame = _Frame.of(self._backend)
        _check_room(limits, self._frame.num_special, "special tokens")

    def __call__(self, queries: Sequence[str], documents: Sequence[str]) -> TokenizedRows:
        """Tokenize pairs, one row each.

        Args:
            queries: first texts.
            documents: second texts, as many.
        """
        self._backend.no_padding()
        self._backend.no_truncation()
        texts = list(dict.fromkeys((*queries, *documents)))
        tokens = {
            text: np.asarray(encoding.ids, np.int64)
            for text, (encoding, _) in zip(texts, self._encode(texts, add_special_tokens=False), strict=True)
        }
        room = self._limits.max_length - self._frame.num_special
        rows, types, truncated = [], [], []
        for query, document in zip(queries, documents, strict=True):
            first = self._kept(tokens[query], self._limits.max_query_tokens)
            second = self._kept(tokens[document], self._limits.max_document_tokens)
            keep_first, keep_second = longest_first(len(first), len(second), room)
            row, row_types = self._frame.join(self._kept(first, keep_first), self._kept(second, keep_second))
            rows.append(row)
            types.append(row_types)
            truncated.append(keep_first < len(tokens[query]) or keep_second < len(tokens[document]))
        all_types = np.concatenate([np.zeros(0, np.int64), *types])
        return TokenizedRows(
            token_ids=np.concatenate([np.zeros(0, np.int64), *rows]),
            lengths=np.asarray([len(row) for row in rows], np.int64),
            truncated=np.asarray(truncated, np.bool_),
            token_type_ids=all_types if self._token_types and all_types.any() else None,
        )

    def _kept(self, ids: IntArray, max_tokens: int | None) -> IntArray:
        """Return so many tokens of the side that the tokenizer keeps; None keeps all."""
        if max_tokens is None or len(ids) <= max_tokens:
            return ids
        return ids[len(ids) - max_tokens :] if self._from_left else ids[:max_tokens]


class TemplateTokenizer:
    """Puts two texts into a prompt, for rerankers made of language models.

    A prompt that is too long loses the end of its document; what the template writes after the document
    always stays, since the model answers right behind it.

    Args:
        tokenizer: a `transformers` tokenizer backed by the `tokenizers` library; it is changed.
        limits: most tokens.
        template: the prompt.
        instruction: what the template calls `instruction`; None leaves the template's own.

    Raises:
        ConfigError: the limit has no room for text beside the template.
        ModelError: the template has no place for a document.
    """

    def __init__(
        self,
        tokenizer: Any,  # noqa: ANN401 - a class of transformers, which one depends on the checkpoint
        limits: PairLimits,
        template: PairTemplate,
        instruction: str | None = None,
    ) -> None:
        self._tokenizer = tokenizer
        self._backend = tokenizer.backend_tokenizer
        self._limits = limits
        self._template = template
        self._variables = dict(template.kwargs)
        if instruction is not None:
            self._variables["instruction"] = instruction
        self._backend.no_padding()
        self._backend.no_truncation()
        _, mark, suffix = self._rendered("", _MARK).partition(_MARK)
        if not mark:
            raise ModelError(f"the prompt {template.name!r} has no place for the document")
        ending = self._backend.encode(suffix)
        # Special tokens before a text are not part of what follows the document.
        num_before = next((i for i, special in enumerate(ending.special_tokens_mask) if not special), 0)
        self._suffix = np.asarray(ending.ids[num_before:], np.int64)
        _check_room(limits, len(self._backend.encode(self._rendered("", "")).ids), "tokens of its prompt")

    def __call__(self, queries: Sequence[str], documents: Sequence[str]) -> TokenizedRows:
        """Tokenize pairs, one row each; see `PairTokenizer`."""
        self._backend.no_padding()
        self._backend.no_truncation()
        limits = self._limits
        first = self._shortened(queries, limits.max_query_tokens)
        second = self._shortened(documents, limits.max_document_tokens)
        rows, truncated = [], []
        for query, document, (short_query, short_document) in zip(
            queries, documents, zip(first, second, strict=True), strict=True
        ):
            ids = np.asarray(self._backend.encode(self._rendered(short_query, short_document)).ids, np.int64)
            is_long = len(ids) > limits.max_length
            if is_long:
                ids = np.concatenate([ids[: limits.max_length - len(self._suffix)], self._suffix])
            rows.append(ids)
            truncated.append(is_long or short_query != query or short_document != document)
        return TokenizedRows(
            token_ids=np.concatenate([np.zeros(0, np.int64), *rows]),
            lengths=np.asarray([len(row) for row in rows], np.int64),
            truncated=np.asarray(truncated, np.bool_),
        )

    def _rendered(self, query: str, document: str) -> str:
        messages = [{"role": "query", "content": query}, {"role": "document", "content": document}]
        prompt: str = self._tokenizer.apply_chat_template(
            messages, chat_template=self._template.jinja, tokenize=False, **self._variables
        )
        return prompt

    def _shortened(self, texts: Sequence[str], max_tokens: int | None) -> list[str]:
        """Cut texts to so many tokens, before anything is put around them."""
        wanted = self._limits.max_length if max_tokens is None else max_tokens
        encode = BoundedEncoder(self._backend, wanted)
        # A query stands in as many pairs as it has documents.
        distinct = list(dict.fromkeys(texts))
        shortened = {}
        for text, (encoding, was_cut) in zip(
            distinct, encode(distinct, add_special_tokens=False), strict=True
        ):
            is_long = was_cut or (max_tokens is not None and len(encoding.ids) > max_tokens)
            shortened[text] = _prefix(self._backend, text, wanted) if is_long else text
        return [shortened[text] for text in texts]


def longest_first(num_first: int, num_second: int, room: int) -> tuple[int, int]:
    """Return how many tokens of two texts are kept when the longer one is cut first.

    Args:
        num_first: tokens of the first text.
        num_second: tokens of the second text.
        room: most tokens of both.

    Source:
        transformers and tokenizers, truncation strategy `longest_first`.
    """
    room = max(0, room)
    if num_first + num_second <= room:
        return num_first, num_second
    shorter = min(num_first, num_second)
    if 2 * shorter > room:
        half = room // 2
        return (half, room - half) if num_first <= num_second else (room - half, half)
    return (shorter, room - shorter) if num_first <= num_second else (room - shorter, shorter)


def _check_room(limits: PairLimits, num_taken: int, what: str) -> None:
    if limits.max_length <= num_taken:
        raise ConfigError(
            f"a maximum length of {limits.max_length} has no room for text beside {num_taken} {what}",
            f"--max-length must be at least {num_taken + 1} for this model",
        )


def _prefix(backend: Any, text: str, max_tokens: int) -> str:  # noqa: ANN401
    """Return the beginning that the first `max_tokens` tokens stand for, of a text that has more."""
    limit = CHARS_PER_TOKEN * (max_tokens + 1)
    # Unlike the fast form, this one knows where each token stands in the text.
    encoding = backend.encode(text[:limit], add_special_tokens=False)
    while len(encoding.ids) <= max_tokens:
        limit *= 4
        encoding = backend.encode(text[:limit], add_special_tokens=False)
    # Two tokens may share a character, which then is left out.
    return text[: min(encoding.offsets[max_tokens - 1][1], encoding.offsets[max_tokens][0])]


@dataclass(frozen=True, slots=True)
class _Frame:
    """The special tokens around two texts, with the token types of every part."""

    parts: tuple[IntArray, IntArray, IntArray]
    part_types: tuple[IntArray, IntArray, IntArray]
    text_types: tuple[int, int]

    @classmethod
    def of(cls, backend: Any) -> "_Frame":  # noqa: ANN401
        """Read the frame off a pair of short texts."""
        backend.no_padding()
        backend.no_truncation()
        probe = backend.encode("a", "a")
        ids, types, owners = (np.asarray(x) for x in (probe.ids, probe.type_ids, probe.sequence_ids))
        first, second = np.flatnonzero(owners == 0), np.flatnonzero(owners == 1)
        spans = (
            slice(0, first[0]),
            slice(first[-1] + 1, second[0]),
            slice(second[-1] + 1, len(ids)),
        )
        before, between, after = (ids[span].astype(np.int64) for span in spans)
        types_before, types_between, types_after = (types[span].astype(np.int64) for span in spans)
        return cls(
            parts=(before, between, after),
            part_types=(types_before, types_between, types_after),
            text_types=(int(types[first[0]]), int(types[second[0]])),
        )

    @property
    def num_special(self) -> int:
        """Tokens of a pair that are no text."""
        return sum(len(part) for part in self.parts)

    def join(self, first: IntArray, second: IntArray) -> tuple[IntArray, IntArray]:
        """Return token ids and token types of a pair."""
        (before, between, after), types = self.parts, self.part_types
        return (
            np.concatenate([before, first, between, second, after]),
            np.concatenate(
                [
                    types[0],
                    np.full(len(first), self.text_types[0]),
                    types[1],
                    np.full(len(second), self.text_types[1]),
                    types[2],
                ]
            ),
        )
