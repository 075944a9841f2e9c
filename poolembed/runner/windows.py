"""Long texts to windows of tokens, each with the special tokens and the prompt of a whole text.

A text is tokenized once, as a whole, so that no word is divided by a window's edge in characters; the
cost is that of the whole text.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from poolembed.errors import ConfigError
from poolembed.runner.bounded import TEXTS_PER_CALL
from poolembed.runner.packing import IntArray, TokenizedRows
from poolembed.runner.plain_tokenizer import TextTokenizer
from poolembed.runner.tokenizer import prompt_length


@dataclass(frozen=True, slots=True)
class Windows:
    """The windows of some texts, those of a text next to each other.

    Attributes:
        tokens: the tokens of each window, one row a window; none is truncated.
        num_windows: windows of each text, shape (num_texts,), int64, each at least 1.
        num_text_tokens: tokens of text in each window, without prompt and special tokens,
            shape (num_windows,), int64.
        spans: characters of its text that each window stands for, from and before, shape (num_windows, 2),
            int64; None where nobody asked.
    """

    tokens: TokenizedRows
    num_windows: IntArray
    num_text_tokens: IntArray
    spans: IntArray | None = None


class WindowTokenizer:
    """Divides texts into windows of at most `max_length` tokens.

    A text that fits is one window, with the tokens that `RowTokenizer` gives it.

    Args:
        tokenizer: the model's tokenizer; its backend is changed.
        max_length: most tokens of a window, special tokens and prompt included.
        overlap_tokens: tokens of text that a window repeats from the one before.
        prompt: text put before every text, and so before every window.
        pools_prompt: whether the prompt's tokens take part in pooling.
        with_spans: whether windows tell the characters that they stand for.

    Raises:
        ConfigError: a window has no room for more text than it repeats.
    """

    def __init__(
        self,
        tokenizer: TextTokenizer,
        *,
        max_length: int,
        overlap_tokens: int = 0,
        prompt: str = "",
        pools_prompt: bool = True,
        with_spans: bool = False,
    ) -> None:
        self._with_spans = with_spans
        self.max_length = max_length
        self.overlap_tokens = overlap_tokens
        self.prompt = prompt
        self._backend = tokenizer.backend_tokenizer
        num_before = prompt_length(tokenizer, prompt)
        self._num_unpooled = 0 if pools_prompt or not prompt else num_before
        num_special = tokenizer.num_special_tokens_to_add()
        room = max_length - max(num_special, num_before + (num_special > 0))
        if room <= overlap_tokens:
            raise ConfigError(
                f"windows of {max_length} tokens have room for {max(0, room)} tokens of text beside prompt "
                f"and special tokens, so they cannot overlap by {overlap_tokens}",
                f"--overlap-tokens must be below {room}" if room > 0 else "raise --max-length",
            )

    def __call__(self, texts: Sequence[str]) -> Windows:
        """Tokenize texts and divide them.

        Args:
            texts: any strings without lone surrogates; cost grows with their size.
        """
        self._backend.no_padding()
        self._backend.no_truncation()
        # The faster one leaves out offsets, which tell a prompt from the text and where windows stand.
        needs_offsets = self.prompt or self._with_spans
        encode = self._backend.encode_batch if needs_offsets else self._backend.encode_batch_fast
        found: list[_Window] = []
        num_windows: list[int] = []
        for first in range(0, len(texts), TEXTS_PER_CALL):
            group = [self.prompt + text for text in texts[first : first + TEXTS_PER_CALL]]
            for encoding in encode(group, add_special_tokens=True):
                windows = list(self._windows_of(encoding))
                num_windows.append(len(windows))
                found += windows
        spans = np.asarray([window.span for window in found], np.int64).reshape(-1, 2)
        return Windows(
            tokens=TokenizedRows(
                token_ids=np.concatenate([np.zeros(0, np.int64), *(window.ids for window in found)]),
                lengths=np.asarray([len(window.ids) for window in found], np.int64),
                truncated=np.zeros(len(found), np.bool_),
                prompt_lengths=np.full(len(found), self._num_unpooled) if self._num_unpooled else None,
            ),
            num_windows=np.asarray(num_windows, np.int64),
            num_text_tokens=np.asarray([window.num_text_tokens for window in found], np.int64),
            spans=spans if self._with_spans else None,
        )

    def _windows_of(self, encoding: Any) -> Iterator["_Window"]:  # noqa: ANN401
        ids = np.asarray(encoding.ids, np.int64)
        is_text = np.asarray(encoding.special_tokens_mask) == 0
        if self.prompt:
            is_text &= np.asarray(encoding.offsets).reshape(-1, 2)[:, 1] > len(self.prompt)
        places = np.flatnonzero(is_text)
        begin, end = (int(places[0]), int(places[-1]) + 1) if len(places) else (len(ids), len(ids))
        if len(ids) <= self.max_length:
            yield _Window(ids, end - begin, self._span(encoding, begin, end))
            return
        room = self.max_length - begin - (len(ids) - end)
        for start in range(begin, max(begin + 1, end - self.overlap_tokens), room - self.overlap_tokens):
            stop = min(start + room, end)
            window = np.concatenate([ids[:begin], ids[start:stop], ids[end:]])
            yield _Window(window, stop - start, self._span(encoding, start, stop))

    def _span(self, encoding: Any, start: int, stop: int) -> tuple[int, int]:  # noqa: ANN401
        """Return the characters of the text that some of its tokens stand for."""
        if not self._with_spans or start >= stop:
            return 0, 0
        offsets = np.asarray(encoding.offsets[start:stop], np.int64) - len(self.prompt)
        return max(0, int(offsets[:, 0].min())), int(offsets[:, 1].max())


@dataclass(frozen=True, slots=True)
class _Window:
    ids: IntArray
    num_text_tokens: int
    span: tuple[int, int]
