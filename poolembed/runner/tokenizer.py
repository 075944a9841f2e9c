"""Texts to tokens: prompt, bounded cutting of characters, truncation that keeps special tokens.

Lengths are decided by the model's declaration alone: padding and truncation stored in a tokenizer.json
are switched off.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from poolembed.errors import ConfigError
from poolembed.runner.bounded import BoundedEncoder
from poolembed.runner.packing import IntArray, TokenizedRows
from poolembed.runner.plain_tokenizer import TextTokenizer


class RowTokenizer:
    """Turns texts into the token ids that the model was trained to see.

    Args:
        tokenizer: the model's tokenizer; its backend is changed.
        max_length: most tokens of a row, special tokens included.
        prompt: text put before every text.
        pools_prompt: whether the prompt's tokens take part in pooling.
        with_offsets: whether rows tell the characters of each token.

    Raises:
        ConfigError: `max_length` has no room for a token of text beside the special ones.
    """

    def __init__(
        self,
        tokenizer: TextTokenizer,
        *,
        max_length: int,
        prompt: str = "",
        pools_prompt: bool = True,
        with_offsets: bool = False,
    ) -> None:
        check_room(tokenizer, max_length, max_length)
        self.max_length = max_length
        self.prompt = prompt
        self._backend = tokenizer.backend_tokenizer
        self._side = tokenizer.truncation_side
        self._encode = BoundedEncoder(
            self._backend, max_length, from_left=self._side == "left", with_offsets=with_offsets
        )
        self._with_offsets = with_offsets
        self._num_unpooled = 0 if pools_prompt or not prompt else prompt_length(tokenizer, prompt)

    def __call__(self, texts: Sequence[str]) -> TokenizedRows:
        """Tokenize texts, one row each.

        Args:
            texts: any strings without lone surrogates; cost is bounded by `max_length`, not by size.

        Returns:
            The tokens of all rows. A row that had more tokens than `max_length` is marked truncated.
        """
        self._backend.no_padding()
        self._backend.enable_truncation(self.max_length, direction=self._side)
        prompted = [self.prompt + text for text in texts] if self.prompt else texts
        ids: list[np.ndarray] = []
        truncated: list[bool] = []
        offsets: list[np.ndarray] = []
        for encoding, was_cut in self._encode(prompted, add_special_tokens=True):
            ids.append(np.asarray(encoding.ids, dtype=np.int64))
            truncated.append(was_cut or bool(encoding.overflowing))
            if self._with_offsets:
                offsets.append(text_offsets(encoding, len(self.prompt)))
        return TokenizedRows(
            token_ids=np.concatenate([np.zeros(0, np.int64), *ids]),
            lengths=np.asarray([len(row) for row in ids], dtype=np.int64),
            truncated=np.asarray(truncated, dtype=np.bool_),
            prompt_lengths=np.full(len(ids), self._num_unpooled) if self._num_unpooled else None,
            offsets=np.concatenate([np.zeros((0, 2), np.int64), *offsets]) if self._with_offsets else None,
        )


def check_room(tokenizer: TextTokenizer, room: int, max_length: int) -> None:
    """Check that a row can hold text.

    Args:
        tokenizer: the model's tokenizer.
        room: most tokens that it may make of a text.
        max_length: the limit that the user knows, which `room` follows from.

    Raises:
        ConfigError: there is room for special tokens alone.
    """
    num_special = tokenizer.num_special_tokens_to_add() + max_length - room
    if max_length <= num_special:
        raise ConfigError(
            f"a maximum length of {max_length} has no room for text beside {num_special} special tokens",
            f"--max-length must be at least {num_special + 1} for this model",
        )


def prompt_length(tokenizer: TextTokenizer, prompt: str) -> int:
    """Return the tokens of a prompt with the special ones before it, without those after it.

    Args:
        tokenizer: the model's tokenizer; its backend is changed.
        prompt: what stands before every text.
    """
    backend = tokenizer.backend_tokenizer
    backend.no_padding()
    backend.no_truncation()
    ids = backend.encode(prompt).ids
    return len(ids) - bool(ids and ids[-1] in tokenizer.all_special_ids)


def text_offsets(encoding: Any, prompt_characters: int = 0) -> IntArray:  # noqa: ANN401
    """Return the characters of its text that each token stands for.

    Args:
        encoding: what a backend made of prompt and text, with offsets.
        prompt_characters: length of the prompt.

    Returns:
        First character and the one behind the last, shape (num_tokens, 2); (0, 0) for tokens of the
        prompt and special tokens.
    """
    offsets = np.asarray(encoding.offsets, np.int64).reshape(-1, 2)
    return np.maximum(offsets - prompt_characters, 0)
