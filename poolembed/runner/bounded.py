"""Encoding of long texts at a cost that depends on the tokens wanted, not on the length of the text."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

# Characters of a text that are looked at first, per token wanted. Natural text has 2 to 6 characters
# a token; where this is not enough the piece grows fourfold until it is.
CHARS_PER_TOKEN = 16
MIN_CHARS = 4096

# The last tokens before a cut may differ from those of the whole text, so that many are thrown away.
CUT_MARGIN_TOKENS = 64

# Texts handed to the tokenizer at once: enough for its threads, little enough to hold all its records.
TEXTS_PER_CALL = 512


class BoundedEncoder:
    """Encodes texts of any length, looking only at as many characters as their first tokens need.

    Args:
        backend: a tokenizer of the `tokenizers` library, with its truncation set by the caller.
        max_tokens: tokens of a text that matter.
        from_left: whether they are its last ones, not its first.
    """

    def __init__(self, backend: Any, max_tokens: int, *, from_left: bool = False) -> None:  # noqa: ANN401
        self._backend = backend
        self._max_tokens = max_tokens
        self._from_left = from_left

    def __call__(self, texts: Sequence[str], *, add_special_tokens: bool) -> Iterator[tuple[Any, bool]]:
        """Yield each text's encoding, and whether characters were left out.

        Where they were, the encoding holds more than `max_tokens` tokens, the surplus in its overflow if
        the backend truncates, and the first `max_tokens` are those of the whole text.
        """
        limit = max(MIN_CHARS, CHARS_PER_TOKEN * self._max_tokens)
        remaining = iter(texts)
        while group := list(islice(remaining, TEXTS_PER_CALL)):
            pieces = [self._cut(text, limit) for text in group]
            encodings = self._backend.encode_batch_fast(pieces, add_special_tokens=add_special_tokens)
            for text, piece, encoding in zip(group, pieces, encodings, strict=True):
                if len(piece) == len(text):
                    yield encoding, False
                else:
                    yield self._grow(text, limit, encoding, add_special_tokens=add_special_tokens)

    def _grow(self, text: str, limit: int, encoding: Any, *, add_special_tokens: bool) -> tuple[Any, bool]:  # noqa: ANN401
        """Look at ever longer pieces until the wanted tokens do not depend on the cut."""
        wanted = self._max_tokens + CUT_MARGIN_TOKENS
        while limit < len(text) and _num_tokens(encoding) < wanted:
            limit *= 4
            piece = self._cut(text, limit)
            encoding = self._backend.encode_batch_fast([piece], add_special_tokens=add_special_tokens)[0]
        return encoding, limit < len(text)

    def _cut(self, text: str, limit: int) -> str:
        """Keep `limit` characters at the wanted side, ending at a blank where there is one."""
        if len(text) <= limit:
            return text
        if self._from_left:
            piece = text[-limit:]
            blank = piece.find(" ", 0, limit // 4)
            return piece if blank < 0 else piece[blank:]
        piece = text[:limit]
        blank = piece.rfind(" ", limit - limit // 4)
        return piece if blank < 0 else piece[:blank]


def _num_tokens(encoding: Any) -> int:  # noqa: ANN401
    return len(encoding.ids) + sum(len(piece.ids) for piece in encoding.overflowing)
