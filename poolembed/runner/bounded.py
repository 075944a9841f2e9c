"""Encoding of long texts at a cost that depends on the tokens wanted, not on the length of the text."""

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any

Encode = Callable[[list[str]], list[Any]]

# Characters of a text that are looked at first, per token wanted. Natural text has 2 to 6 characters
# a token; where this is not enough the piece grows fourfold until it is.
CHARS_PER_TOKEN = 16
MIN_CHARS = 4096

# The last tokens before a cut may differ from those of the whole text, so that many are thrown away.
CUT_MARGIN_TOKENS = 64

# Where a word ends: no tokenizer lets what follows the blank decide the tokens before it, or the reverse.
_FIRST_WORD_END = re.compile(r"\S(?= )")
_LAST_WORD_END = re.compile(r".*\S(?= )", re.DOTALL)

# Texts handed to the tokenizer at once: enough for its threads, little enough to hold all its records.
TEXTS_PER_CALL = 512


class BoundedEncoder:
    """Encodes texts of any length, looking only at as many characters as their first tokens need.

    Args:
        backend: a tokenizer of the `tokenizers` library, with its truncation set by the caller.
        max_tokens: tokens of a text that matter.
        from_left: whether they are its last ones, not its first.
        with_offsets: whether encodings tell the characters of each token, counted in the whole text.
    """

    def __init__(
        self,
        backend: Any,  # noqa: ANN401
        max_tokens: int,
        *,
        from_left: bool = False,
        with_offsets: bool = False,
    ) -> None:
        self._encode = backend.encode_batch if with_offsets else backend.encode_batch_fast
        self._max_tokens = max_tokens
        self._from_left = from_left
        # A piece from the end would count its characters from its own beginning.
        self._takes_whole = with_offsets and from_left

    def __call__(self, texts: Sequence[str], *, add_special_tokens: bool) -> Iterator[tuple[Any, bool]]:
        """Yield each text's encoding, and whether characters were left out.

        Where they were, the encoding holds more than `max_tokens` tokens, the surplus in its overflow if
        the backend truncates, and the first `max_tokens` (or last) are those of the whole text.
        """
        limit = sys.maxsize if self._takes_whole else max(MIN_CHARS, CHARS_PER_TOKEN * self._max_tokens)
        encode = partial(self._encode, add_special_tokens=add_special_tokens)
        remaining = iter(texts)
        while group := list(islice(remaining, TEXTS_PER_CALL)):
            pieces = [self._cut(text, limit)[0] for text in group]
            for text, piece, encoding in zip(group, pieces, encode(pieces), strict=True):
                if len(piece) == len(text):
                    yield encoding, False
                else:
                    yield self._grow(text, limit, encoding, encode)

    def _grow(self, text: str, limit: int, encoding: Any, encode: Encode) -> tuple[Any, bool]:  # noqa: ANN401
        """Look at ever longer pieces until the wanted tokens do not depend on the cut."""
        while limit < len(text) and not self._is_settled(text, limit, encoding, encode):
            limit *= 4
            (encoding,) = encode([self._cut(text, limit)[0]])
        return encoding, limit < len(text)

    def _is_settled(self, text: str, limit: int, encoding: Any, encode: Encode) -> bool:  # noqa: ANN401
        """Tell whether the wanted tokens of a piece are those of the whole text.

        A cut inside a run without blanks may shift how the run is divided up to its far end, as where a
        line of dashes becomes tokens of eight: such a cut is good when moving it changes nothing.
        """
        if _num_tokens(encoding) < self._max_tokens + CUT_MARGIN_TOKENS:
            return False
        piece, between_words = self._cut(text, limit)
        if between_words:
            return True
        (moved,) = encode([piece[1:] if self._from_left else piece[:-1]])
        return self._wanted(moved) == self._wanted(encoding)

    def _wanted(self, encoding: Any) -> list[int]:  # noqa: ANN401
        ids: list[int] = encoding.ids
        return ids[-self._max_tokens :] if self._from_left else ids[: self._max_tokens]

    def _cut(self, text: str, limit: int) -> tuple[str, bool]:
        """Keep `limit` characters at the wanted side, or a little less to end between words.

        Returns:
            The piece, and whether it ends between words.
        """
        if len(text) <= limit:
            return text, True
        if self._from_left:
            start = len(text) - limit
            end_of_word = _FIRST_WORD_END.search(text, start, start + limit // 4)
            return (text[end_of_word.end() :], True) if end_of_word else (text[start:], False)
        end_of_word = _LAST_WORD_END.match(text, limit - limit // 4, limit + 1)
        return (text[: end_of_word.end()], True) if end_of_word else (text[:limit], False)


def _num_tokens(encoding: Any) -> int:  # noqa: ANN401
    """Return the tokens of a piece and its overflow; every part of that has special tokens of its own."""
    return sum(len(part.ids) - sum(part.special_tokens_mask) for part in (encoding, *encoding.overflowing))
