"""Queries and documents to tokens, for late-interaction models, which mark and fill them differently."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from poolembed.config import Role
from poolembed.errors import ModelError
from poolembed.runner.bounded import BoundedEncoder
from poolembed.runner.packing import IntArray, TokenizedRows
from poolembed.runner.plain_tokenizer import TextTokenizer
from poolembed.runner.spec import LateInteraction
from poolembed.runner.tokenizer import check_room, text_offsets


class RoleTokenizer:
    """Tokenizes the texts of one role: marker, length, query expansion, tokens left out.

    Args:
        tokenizer: the model's tokenizer; its backend is changed.
        settings: what the checkpoint declares.
        role: whose texts these are.
        max_length: most tokens of a row of this role, marker included.
        with_offsets: whether rows tell the characters of each token.

    Raises:
        ConfigError: `max_length` has no room for a token of text beside marker and special tokens.
        ModelError: queries are filled up, and there is no token for it.
    """

    def __init__(
        self,
        tokenizer: TextTokenizer,
        settings: LateInteraction,
        role: Role,
        *,
        max_length: int,
        with_offsets: bool = False,
    ) -> None:
        is_query = role == "query"
        self.max_length = max_length
        self._backend = tokenizer.backend_tokenizer
        self._side = tokenizer.truncation_side
        marker = settings.query_prefix if is_query else settings.document_prefix
        # A marker that is one token goes in as that token; other markers are text like any prompt.
        self._marker_id = tokenizer.get_vocab().get(marker) if marker else None
        self.prompt = marker if self._marker_id is None else ""
        self._room = max_length - (self._marker_id is not None)
        check_room(tokenizer, self._room, max_length)
        self._fills = is_query and settings.query_expansion
        self._filled_length = min(
            settings.expansion_length or settings.query_length or max_length, max_length
        )
        self._fill_id = self._expansion_id(tokenizer, settings) if self._fills else 0
        self._sees_fill = settings.attend_to_expansion
        skips = settings.skip_in_queries if is_query else True
        self._skipped = self._ids_of(tokenizer, settings.skiplist) if skips else np.zeros(0, np.int64)
        self._encode = BoundedEncoder(
            self._backend, max_length, from_left=self._side == "left", with_offsets=with_offsets
        )
        self._with_offsets = with_offsets

    def __call__(self, texts: Sequence[str]) -> TokenizedRows:
        """Tokenize texts, one row each; see `RowTokenizer`."""
        self._backend.no_padding()
        self._backend.enable_truncation(self._room, direction=self._side)
        rows, truncated, offsets = [], [], []
        for encoding, was_cut in self._encode(
            [self.prompt + text for text in texts], add_special_tokens=True
        ):
            rows.append(self._marked(encoding))
            truncated.append(was_cut or bool(encoding.overflowing))
            if self._with_offsets:
                offsets.append(self._offsets(encoding, len(rows[-1])))
        seen = np.asarray([len(row) for row in rows], np.int64)
        if self._fills:
            rows = [self._filled(row) for row in rows]
        token_ids = np.concatenate([np.zeros(0, np.int64), *rows])
        return TokenizedRows(
            token_ids=token_ids,
            lengths=np.asarray([len(row) for row in rows], np.int64),
            truncated=np.asarray(truncated, np.bool_),
            seen_lengths=seen if self._fills and not self._sees_fill else None,
            kept=~np.isin(token_ids, self._skipped) if len(self._skipped) else None,
            offsets=np.concatenate([np.zeros((0, 2), np.int64), *offsets]) if self._with_offsets else None,
        )

    def _marked(self, encoding: Any) -> IntArray:  # noqa: ANN401
        """Put the marker behind the special tokens that a text begins with."""
        ids = np.asarray(encoding.ids, np.int64)
        if self._marker_id is None:
            return ids
        begin = self._num_leading(encoding)
        return np.concatenate([ids[:begin], [self._marker_id], ids[begin:]])

    def _offsets(self, encoding: Any, num_marked: int) -> IntArray:  # noqa: ANN401
        """Return the characters of every token of the finished row; marker and filling have none."""
        own = text_offsets(encoding, len(self.prompt))
        num_rows = max(num_marked, self._filled_length) if self._fills else num_marked
        offsets = np.zeros((num_rows, 2), np.int64)
        begin = self._num_leading(encoding) if self._marker_id is not None else 0
        offsets[:begin] = own[:begin]
        offsets[begin + num_marked - len(own) : num_marked] = own[begin:]
        return offsets

    @staticmethod
    def _num_leading(encoding: Any) -> int:  # noqa: ANN401
        specials = encoding.special_tokens_mask
        return 1 if specials and specials[0] else 0

    def _filled(self, row: IntArray) -> IntArray:
        missing = max(0, self._filled_length - len(row))
        return np.concatenate([row, np.full(missing, self._fill_id, np.int64)])

    @staticmethod
    def _expansion_id(tokenizer: TextTokenizer, settings: LateInteraction) -> int:
        if settings.expansion_token is not None:
            return int(tokenizer.get_vocab()[settings.expansion_token])
        fill = tokenizer.mask_token_id if tokenizer.mask_token_id is not None else tokenizer.eos_token_id
        if fill is None:
            raise ModelError(
                "queries are filled up, but the tokenizer has neither a mask token nor one that ends a text",
                "turn it off with --set query_expansion=false",
            )
        return int(fill)

    @staticmethod
    def _ids_of(tokenizer: TextTokenizer, words: Sequence[str]) -> IntArray:
        """Return the token that each word of the skip list is, where it is one."""
        vocabulary = tokenizer.get_vocab()
        return np.asarray(sorted({vocabulary[word] for word in words if word in vocabulary}), np.int64)
