"""Texts to tokens with their place in the text; long texts in windows that overlap."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from poolembed.errors import ConfigError
from poolembed.runner.bounded import TEXTS_PER_CALL
from poolembed.runner.packing import IntArray, TokenizedRows
from poolembed.runner.plain_tokenizer import TextTokenizer

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class LocatedTokens:
    """The tokens of some texts, in windows, and where each stands in its text.

    Attributes:
        windows: the tokens of each window, one row a window, those of a text next to each other; `kept`
            has every token of text in one window, that in which it stands farthest from the edges.
        num_windows: windows of each text, shape (num_texts,), int64, each at least 1.
        num_tokens: tokens of each text without special ones, shape (num_texts,), int64.
        spans: characters of its text that each token stands for, from and before, shape
            (sum of num_tokens, 2), int64.
        continues: whether a token goes on with the word of the token before, shape (sum of num_tokens,).
    """

    windows: TokenizedRows
    num_windows: IntArray
    num_tokens: IntArray
    spans: IntArray
    continues: BoolArray


class LocatingTokenizer:
    """Tokenizes whole texts, in windows where they are longer than the model takes.

    Args:
        tokenizer: the model's tokenizer; its backend is changed.
        max_length: most tokens of a window, special tokens included.
        overlap_tokens: tokens of text that a window repeats from the one before; None takes a quarter.

    Raises:
        ConfigError: a window has no room for more text than it repeats.
    """

    def __init__(
        self, tokenizer: TextTokenizer, *, max_length: int, overlap_tokens: int | None = None
    ) -> None:
        self._backend = tokenizer.backend_tokenizer
        self._max_length = max_length
        room = max_length - tokenizer.num_special_tokens_to_add()
        self.overlap_tokens = room // 4 if overlap_tokens is None else overlap_tokens
        if self.overlap_tokens >= room:
            raise ConfigError(
                f"windows of {max_length} tokens have room for {max(0, room)} tokens of text, so they "
                f"cannot overlap by {self.overlap_tokens}",
                f"--overlap-tokens must be below {room}" if room > 0 else "raise --max-length",
            )
        # Where the vocabulary marks what goes on with a word, its tokens are longer than their text.
        self._marks_words = bool(getattr(self._backend.model, "continuing_subword_prefix", None))
        self._unknown_id = tokenizer.unk_token_id

    def __call__(self, texts: Sequence[str]) -> LocatedTokens:
        """Tokenize texts.

        Args:
            texts: any strings without lone surrogates; cost grows with their size.
        """
        self._backend.no_padding()
        self._backend.enable_truncation(self._max_length, stride=self.overlap_tokens, direction="right")
        windows: list[_Window] = []
        num_windows, num_tokens = [], []
        for text, encoding in zip(texts, self._encoded(texts), strict=True):
            found = list(self._windows_of(text, encoding))
            windows += found
            num_windows.append(len(found))
            num_tokens.append(sum(len(window.spans) for window in found))
        return LocatedTokens(
            windows=TokenizedRows(
                token_ids=np.concatenate([np.zeros(0, np.int64), *(window.ids for window in windows)]),
                lengths=np.asarray([len(window.ids) for window in windows], np.int64),
                truncated=np.zeros(len(windows), np.bool_),
                kept=np.concatenate([np.zeros(0, np.bool_), *(window.kept for window in windows)]),
            ),
            num_windows=np.asarray(num_windows, np.int64),
            num_tokens=np.asarray(num_tokens, np.int64),
            spans=np.concatenate([np.zeros((0, 2), np.int64), *(window.spans for window in windows)]),
            continues=np.concatenate([np.zeros(0, np.bool_), *(window.continues for window in windows)]),
        )

    def _encoded(self, texts: Sequence[str]) -> Iterator[Any]:
        for first in range(0, len(texts), TEXTS_PER_CALL):
            # The faster `encode_batch_fast` leaves out where tokens stand.
            yield from self._backend.encode_batch(list(texts[first : first + TEXTS_PER_CALL]))

    def _windows_of(self, text: str, encoding: Any) -> Iterator["_Window"]:  # noqa: ANN401
        parts = (encoding, *encoding.overflowing)
        is_blank = np.frombuffer(text.encode("utf-32-le"), np.uint32) == ord(" ")
        for index, part in enumerate(parts):
            is_text = np.asarray(part.special_tokens_mask, np.bool_) == 0
            places = np.flatnonzero(is_text)
            # What two windows share is divided in the middle; a token right there goes to the earlier one.
            first = self.overlap_tokens - self.overlap_tokens // 2 if index else 0
            last = len(places) - self.overlap_tokens // 2
            owned = places[first : last if index + 1 < len(parts) else None]
            kept = np.zeros(len(is_text), np.bool_)
            kept[owned] = True
            ids = np.asarray(part.ids, np.int64)
            spans = np.asarray(part.offsets, np.int64).reshape(-1, 2)[owned]
            if self._marks_words:
                sizes = np.asarray([len(token) for token in part.tokens], np.int64)[owned]
                continues = (sizes != spans[:, 1] - spans[:, 0]) & (ids[owned] != self._unknown_id)
            else:
                continues = _without_blank(is_blank, spans[:, 0]) & (ids[owned] != self._unknown_id)
            yield _Window(ids, kept, spans, continues)


@dataclass(frozen=True, slots=True)
class _Window:
    ids: IntArray
    kept: BoolArray
    spans: IntArray
    continues: BoolArray


def _without_blank(is_blank: BoolArray, starts: IntArray) -> BoolArray:
    """Tell whether there is no blank at a place nor right before it; at the beginning there is one."""
    # One more place, for tokens that stand at the end and for nothing.
    padded = np.append(is_blank, np.False_)
    without: BoolArray = (starts > 0) & ~padded[starts] & ~padded[np.maximum(starts - 1, 0)]
    return without
