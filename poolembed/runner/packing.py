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
        shared_lengths: leading tokens of each row that rows of its batch may share, fewer than it has, shape
            (num_rows,), see `prefix`; None where each row is computed whole.
    """

    token_ids: IntArray
    lengths: IntArray
    truncated: npt.NDArray[np.bool_]
    token_type_ids: IntArray | None = None
    prompt_lengths: IntArray | None = None
    seen_lengths: IntArray | None = None
    kept: npt.NDArray[np.bool_] | None = None
    offsets: IntArray | None = None
    shared_lengths: IntArray | None = None

    def take(self, rows: IntArray) -> "TokenizedRows":
        """Return some rows in the order wanted; offsets and shared lengths stay behind.

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
    """The rows of one forward call, end to end.

    Attributes:
        rows: number of each row in its chunk, shape (num_rows,), int64.
        token_ids: shape (num_tokens,), int64.
        lengths: tokens of each row, shape (num_rows,), int64, each at least 1.
        token_type_ids: shape (num_tokens,), int64; None where all are 0.
        prompt_lengths: shape (num_rows,), int64; None for none.
        seen_lengths: shape (num_rows,), int64; None where every token is seen.
        kept: shape (num_tokens,), bool; None for all.
        shared_lengths: leading tokens of each row that are computed once for it and its neighbours, shape
            (num_rows,), int64; 0 where no neighbour begins with the same; None where none does.
    """

    rows: IntArray
    token_ids: IntArray
    lengths: IntArray
    token_type_ids: IntArray | None = None
    prompt_lengths: IntArray | None = None
    seen_lengths: IntArray | None = None
    kept: npt.NDArray[np.bool_] | None = None
    shared_lengths: IntArray | None = None

    @property
    def num_tokens(self) -> int:
        """Tokens of the whole batch."""
        return len(self.token_ids)

    @property
    def own_lengths(self) -> IntArray:
        """Tokens of each row that are computed for it alone, shape (num_rows,), int64."""
        return self.lengths if self.shared_lengths is None else self.lengths - self.shared_lengths

    def first_tokens(self) -> "PackedBatch":
        """Return the batch of each row's first token alone."""
        starts = np.cumsum(self.lengths) - self.lengths
        return PackedBatch(self.rows, self.token_ids[starts], np.ones_like(self.lengths))


@dataclass(frozen=True, slots=True)
class Segments:
    """The tokens of a batch that are computed, each once: shared prefixes, then the rest of each row.

    Attributes:
        token_index: where each of them stands in the batch, shape (num_computed,), int64.
        lengths: tokens of each prefix and of each row's rest, shape (num_prefixes + num_rows,), int64.
        prefix_of: number of the prefix before each segment, of the same shape; -1 where there is none.
        num_prefixes: how many of the segments are prefixes.
    """

    token_index: IntArray
    lengths: IntArray
    prefix_of: IntArray
    num_prefixes: int


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
    index = _token_index((np.cumsum(tokenized.lengths) - tokenized.lengths)[rows], lengths)
    token_ids = tokenized.token_ids[index]
    shared = _picked(tokenized.shared_lengths, rows)
    return PackedBatch(
        rows=rows,
        token_ids=token_ids,
        lengths=lengths,
        token_type_ids=_picked(tokenized.token_type_ids, index),
        prompt_lengths=_picked(tokenized.prompt_lengths, rows),
        seen_lengths=_picked(tokenized.seen_lengths, rows),
        kept=_picked(tokenized.kept, index),
        shared_lengths=None if shared is None else _shared_by_neighbours(token_ids, lengths, shared),
    )


def segments_of(batch: PackedBatch) -> Segments:
    """Return which tokens of a batch are computed, and what each row continues.

    Args:
        batch: rows end to end.
    """
    starts, shared = np.cumsum(batch.lengths) - batch.lengths, batch.shared_lengths
    if shared is None:
        none = np.full(len(batch.rows), -1)
        return Segments(np.arange(batch.num_tokens), batch.lengths, none, num_prefixes=0)
    begins = (shared > 0) & ~_continues(batch.token_ids, batch.lengths, shared)
    lengths = np.concatenate([shared[begins], batch.own_lengths])
    prefix_of = np.where(shared > 0, np.cumsum(begins) - 1, -1)
    return Segments(
        token_index=_token_index(np.concatenate([starts[begins], starts + shared]), lengths),
        lengths=lengths,
        prefix_of=np.concatenate([np.full(int(begins.sum()), -1), prefix_of]),
        num_prefixes=int(begins.sum()),
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


def equal_length_runs(lengths: IntArray, prefix_of: IntArray | None = None) -> list[tuple[int, int]]:
    """Return (number of rows, length) of each run of neighbours of equal length, and with one prefix.

    Args:
        lengths: tokens of each row, shape (num_rows,).
        prefix_of: number of the prefix of each row, of the same shape; None where none has one.
    """
    changes = np.diff(lengths) != 0
    if prefix_of is not None:
        changes |= np.diff(prefix_of) != 0
    edges = np.flatnonzero(changes) + 1
    starts = np.concatenate(([0], edges))
    counts = np.diff(np.concatenate((starts, [len(lengths)])))
    return [(int(count), int(lengths[start])) for start, count in zip(starts, counts, strict=True)]


def _picked(values: "npt.NDArray[Number] | None", index: IntArray) -> "npt.NDArray[Number] | None":
    return None if values is None else values[index]


def _token_index(starts: IntArray, lengths: IntArray) -> IntArray:
    return positions_in_rows(lengths) + np.repeat(starts, lengths)


def _continues(token_ids: IntArray, lengths: IntArray, shared: IntArray) -> npt.NDArray[np.bool_]:
    """Return whether each row shares its prefix with the row before it."""
    starts = (np.cumsum(lengths) - lengths).tolist()
    found = np.zeros(len(lengths), np.bool_)
    for row in (np.flatnonzero((shared[1:] == shared[:-1]) & (shared[1:] > 0)) + 1).tolist():
        (before, here), num_shared = starts[row - 1 : row + 1], int(shared[row])
        found[row] = np.array_equal(
            token_ids[before : before + num_shared], token_ids[here : here + num_shared]
        )
    return found


def _shared_by_neighbours(token_ids: IntArray, lengths: IntArray, shared: IntArray) -> IntArray | None:
    """Return `shared` with 0 for rows that share nothing with a neighbour; None where none does."""
    continues = _continues(token_ids, lengths, shared)
    is_shared = continues | np.append(continues[1:], np.False_)
    return np.where(is_shared, shared, 0) if is_shared.any() else None
