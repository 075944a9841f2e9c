"""Rows of tokens and the batches they are computed in.

Nothing is padded here or anywhere: a batch is its rows' tokens end to end, with their lengths.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
Number = TypeVar("Number", np.int64, np.bool_)


@dataclass(frozen=True, slots=True)
class TokenizedRows:
    """The tokens of a chunk's rows, end to end, in the order of the rows.

    Attributes:
        token_ids: shape (num_tokens,), int64.
        lengths: tokens of each row, shape (num_rows,), int64; 0 where a text has no tokens.
        truncated: whether a row lost text to the maximum length, shape (num_rows,), bool.
        token_type_ids: segment of each token, shape (num_tokens,), int64; None where all are 0.
        prompt_lengths: leading tokens that pooling leaves out, shape (num_rows,); None for none.
        seen_lengths: leading tokens of each row that its tokens attend to, shape (num_rows,); None where
            every token is seen.
        kept: tokens whose outputs are wanted, shape (num_tokens,), bool; None for all.
        offsets: characters of its text that each token stands for, from and before, shape (num_tokens, 2),
            (0, 0) for special tokens and the prompt; None where nobody asked for them.
    """

    token_ids: IntArray
    lengths: IntArray
    truncated: npt.NDArray[np.bool_]
    token_type_ids: IntArray | None = None
    prompt_lengths: IntArray | None = None
    seen_lengths: IntArray | None = None
    kept: npt.NDArray[np.bool_] | None = None
    offsets: IntArray | None = None

    def take(self, rows: IntArray) -> "TokenizedRows":
        """Return some rows in the order wanted; offsets stay behind.

        Args:
            rows: numbers of the rows, shape (num_rows,).
        """
        batch = pack(self, rows)
        return TokenizedRows(
            token_ids=batch.token_ids,
            lengths=batch.lengths,
            truncated=self.truncated[rows],
            token_type_ids=batch.token_type_ids,
            prompt_lengths=batch.prompt_lengths,
            seen_lengths=batch.seen_lengths,
            kept=batch.kept,
        )


@dataclass(frozen=True, slots=True)
class PackedBatch:
    """The rows of one forward call, end to end, longest first.

    Attributes:
        rows: number of each row in its chunk, shape (num_rows,), int64.
        token_ids: shape (num_tokens,), int64.
        lengths: tokens of each row, shape (num_rows,), int64, descending, each at least 1.
        token_type_ids: shape (num_tokens,), int64; None where all are 0.
        prompt_lengths: shape (num_rows,), int64; None for none.
        seen_lengths: shape (num_rows,), int64; None where every token is seen.
        kept: shape (num_tokens,), bool; None for all.
    """

    rows: IntArray
    token_ids: IntArray
    lengths: IntArray
    token_type_ids: IntArray | None = None
    prompt_lengths: IntArray | None = None
    seen_lengths: IntArray | None = None
    kept: npt.NDArray[np.bool_] | None = None

    @property
    def num_tokens(self) -> int:
        """Tokens of the whole batch."""
        return len(self.token_ids)


_DefaultOf = Callable[[TokenizedRows], npt.NDArray[Number]]


def plan_batches(lengths: IntArray, max_tokens: int, *, equal_lengths: bool = False) -> Iterator[IntArray]:
    """Group rows into batches: exact length order, longest first, under a budget of tokens.

    The longest come first so that a batch too large for the device fails at the start of a chunk.
    Rows of equal length keep the input's order, so that the plan is the same on every machine.

    Args:
        lengths: tokens of each row, shape (num_rows,); rows of length 0 are in no batch.
        max_tokens: most tokens of a batch; a single longer row is a batch of its own.
        equal_lengths: put only rows of one length into a batch.

    Yields:
        Row numbers of a batch, shape (num_rows,), int64.
    """
    order = np.argsort(-lengths, kind="stable")
    order = order[: int(np.count_nonzero(lengths))]
    start = 0
    while start < len(order):
        longest = int(lengths[order[start]])
        ends = np.cumsum(lengths[order[start : start + max(1, max_tokens)]])
        count = max(1, int(np.searchsorted(ends, max_tokens, side="right")))
        if equal_lengths:
            count = int(np.count_nonzero(lengths[order[start : start + count]] == longest))
        yield order[start : start + count]
        start += count


def pack(tokenized: TokenizedRows, rows: IntArray) -> PackedBatch:
    """Lay the tokens of some rows end to end.

    Args:
        tokenized: the chunk's tokens.
        rows: numbers of the rows, in the order wanted.

    Returns:
        The batch: tokens of the rows in the order of `rows`, without padding.
    """
    lengths = tokenized.lengths[rows]
    index = _token_index(np.cumsum(tokenized.lengths) - tokenized.lengths, lengths, rows)
    return PackedBatch(
        rows=rows,
        token_ids=tokenized.token_ids[index],
        lengths=lengths,
        token_type_ids=_picked(tokenized.token_type_ids, index),
        prompt_lengths=_picked(tokenized.prompt_lengths, rows),
        seen_lengths=_picked(tokenized.seen_lengths, rows),
        kept=_picked(tokenized.kept, index),
    )


def joined(first: TokenizedRows, second: TokenizedRows) -> TokenizedRows:
    """Return the rows of `first`, then those of `second`."""

    def both(
        left: "npt.NDArray[Number] | None", right: "npt.NDArray[Number] | None", default: _DefaultOf[Number]
    ) -> "npt.NDArray[Number] | None":
        if left is None and right is None:
            return None
        return np.concatenate(
            [default(first) if left is None else left, default(second) if right is None else right]
        )

    return TokenizedRows(
        token_ids=np.concatenate([first.token_ids, second.token_ids]),
        lengths=np.concatenate([first.lengths, second.lengths]),
        truncated=np.concatenate([first.truncated, second.truncated]),
        token_type_ids=both(
            first.token_type_ids, second.token_type_ids, lambda rows: np.zeros_like(rows.token_ids)
        ),
        prompt_lengths=both(
            first.prompt_lengths, second.prompt_lengths, lambda rows: np.zeros_like(rows.lengths)
        ),
        seen_lengths=both(first.seen_lengths, second.seen_lengths, lambda rows: rows.lengths),
        kept=both(first.kept, second.kept, lambda rows: np.ones(len(rows.token_ids), np.bool_)),
    )


def positions_in_rows(lengths: IntArray) -> IntArray:
    """Return 0, 1, 2, ... for each row's tokens in turn, shape (num_tokens,)."""
    ends = np.cumsum(lengths)
    return np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - lengths, lengths)


def equal_length_runs(lengths: IntArray) -> list[tuple[int, int]]:
    """Return (number of rows, length) of each run of neighbours of equal length."""
    edges = np.flatnonzero(np.diff(lengths)) + 1
    starts = np.concatenate(([0], edges))
    counts = np.diff(np.concatenate((starts, [len(lengths)])))
    return [(int(count), int(lengths[start])) for start, count in zip(starts, counts, strict=True)]


def _picked(values: "npt.NDArray[Number] | None", index: IntArray) -> "npt.NDArray[Number] | None":
    return None if values is None else values[index]


def _token_index(starts: IntArray, lengths: IntArray, rows: IntArray) -> IntArray:
    return positions_in_rows(lengths) + np.repeat(starts[rows], lengths)
