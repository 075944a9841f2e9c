"""Texts to tokens: prompt, bounded cutting of characters, truncation that keeps special tokens.

Lengths are decided by the model's declaration alone: padding and truncation stored in a tokenizer.json
are switched off.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np

from poolembed.runner.packing import TokenizedRows

# Characters of a text that are looked at first, per token wanted. Natural text has 2 to 6 characters
# a token; where this is not enough the piece grows fourfold until it is.
CHARS_PER_TOKEN = 16
MIN_CHARS = 4096

# The last tokens before a cut may differ from those of the whole text, so that many are thrown away.
CUT_MARGIN_TOKENS = 64

# Texts handed to the tokenizer at once: enough for its threads, little enough to hold all its records.
TEXTS_PER_CALL = 512


class RowTokenizer:
    """Turns texts into the token ids that the model was trained to see.

    Args:
        tokenizer: a `transformers` tokenizer backed by the `tokenizers` library; it is changed.
        max_length: most tokens of a row, special tokens included.
        prompt: text put before every text.
        pools_prompt: whether the prompt's tokens take part in pooling.
    """

    def __init__(
        self,
        tokenizer: Any,  # noqa: ANN401 - a class of transformers, which one depends on the checkpoint
        *,
        max_length: int,
        prompt: str = "",
        pools_prompt: bool = True,
    ) -> None:
        self.max_length = max_length
        self.prompt = prompt
        self._backend = tokenizer.backend_tokenizer
        self._special_ids = frozenset(tokenizer.all_special_ids)
        self._from_left = tokenizer.truncation_side == "left"
        self._backend.no_padding()
        self._backend.enable_truncation(max_length, direction=tokenizer.truncation_side)
        self._num_unpooled = 0 if pools_prompt or not prompt else self._prompt_length()

    def __call__(self, texts: Sequence[str]) -> TokenizedRows:
        """Tokenize texts, one row each.

        Args:
            texts: any strings without lone surrogates; cost is bounded by `max_length`, not by size.

        Returns:
            The tokens of all rows. A row that had more tokens than `max_length` is marked truncated.
        """
        ids: list[np.ndarray] = []
        truncated: list[bool] = []
        remaining = iter(texts)
        while group := list(islice(remaining, TEXTS_PER_CALL)):
            for encoding, was_cut in self._encode(group):
                ids.append(np.asarray(encoding.ids, dtype=np.int64))
                truncated.append(was_cut or bool(encoding.overflowing))
        return TokenizedRows(
            token_ids=np.concatenate(ids) if ids else np.zeros(0, np.int64),
            lengths=np.asarray([len(row) for row in ids], dtype=np.int64),
            truncated=np.asarray(truncated, dtype=np.bool_),
            prompt_lengths=np.full(len(ids), self._num_unpooled) if self._num_unpooled else None,
        )

    def _prompt_length(self) -> int:
        """Return the prompt's tokens with the special ones before it, without those after it."""
        ids = self._backend.encode(self.prompt).ids
        return len(ids) - bool(ids and ids[-1] in self._special_ids)

    def _encode(self, texts: Sequence[str]) -> Iterator[tuple[Any, bool]]:
        limit = max(MIN_CHARS, CHARS_PER_TOKEN * self.max_length)
        prompted = [self.prompt + text for text in texts]
        pieces = [self._cut(text, limit) for text in prompted]
        encodings = self._backend.encode_batch_fast(pieces)
        for text, piece, encoding in zip(prompted, pieces, encodings, strict=True):
            if len(piece) == len(text):
                yield encoding, False
            else:
                yield self._grow(text, limit, encoding)

    def _grow(self, text: str, limit: int, encoding: Any) -> tuple[Any, bool]:  # noqa: ANN401
        """Look at ever longer pieces of a long text until truncation, not the cut, decides its tokens."""
        while limit < len(text) and _num_overflowing(encoding) < CUT_MARGIN_TOKENS:
            limit *= 4
            encoding = self._backend.encode_batch_fast([self._cut(text, limit)])[0]
        return encoding, limit < len(text)

    def _cut(self, text: str, limit: int) -> str:
        """Keep `limit` characters at the side that truncation keeps, ending at white space if it can."""
        if len(text) <= limit:
            return text
        if self._from_left:
            piece = text[-limit:]
            blank = piece.find(" ", 0, limit // 4)
            return piece if blank < 0 else piece[blank:]
        piece = text[:limit]
        blank = piece.rfind(" ", limit - limit // 4)
        return piece if blank < 0 else piece[:blank]


def _num_overflowing(encoding: Any) -> int:  # noqa: ANN401
    return sum(len(piece.ids) for piece in encoding.overflowing)
