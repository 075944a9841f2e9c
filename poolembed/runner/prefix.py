"""Which rows begin with the same tokens, and batches that compute such a prefix once.

In a causal model the keys and values of a row's first tokens depend on nothing behind them: prompts with one
instruction, or one query before many documents, share them. Prefixes are found from token ids alone; no
template is known here.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from poolembed.runner.packing import IntArray, TokenizedRows, plan_batches

# Pooling that can be done piece by piece: what comes before the last piece is kept, or not needed.
PIECEWISE = ("LAST",)

# Shorter prefixes are not looked for.
MIN_SHARED_TOKENS = 32

# A prefix must be so much of a row: behind one, attention computes the scores of later tokens too.
WORTH_IT = 0.1


@dataclass(frozen=True, slots=True)
class Prefixes:
    """What the rows of a chunk share.

    Attributes:
        lengths: leading tokens that a row shares, fewer than it has, shape (num_rows,), int64; 0 for none.
        groups: number of the rows that share them, shape (num_rows,), int64; -1 for none.
    """

    lengths: IntArray
    groups: IntArray


def share_prefixes(
    tokenized: TokenizedRows, lengths: IntArray, max_tokens: int
) -> tuple[TokenizedRows, Iterator[IntArray]]:
    """Return the rows with what they share, and the batches to compute them in.

    Args:
        tokenized: the chunk's tokens.
        lengths: tokens of each row, shape (num_rows,); rows of length 0 are in no batch.
        max_tokens: most tokens that a batch computes; a single longer row is a batch of its own.
    """
    prefixes = find_prefixes(tokenized)
    if prefixes is None:
        return tokenized, plan_batches(lengths, max_tokens)
    shared = replace(tokenized, shared_lengths=prefixes.lengths)
    return shared, plan_prefix_batches(lengths, prefixes, max_tokens)


def find_prefixes(tokenized: TokenizedRows) -> Prefixes | None:
    """Return the prefixes that save most tokens, one for each row at most; None where none is worth it.

    Args:
        tokenized: the chunk's tokens.
    """
    starts = np.cumsum(tokenized.lengths) - tokenized.lengths
    rows = _in_order_of_tokens(tokenized, starts)
    if not rows:
        return None
    common = [0]
    for before, row in pairwise(rows):
        # Each row keeps a token of its own, whose hidden state stands for it.
        most = int(min(tokenized.lengths[before], tokenized.lengths[row])) - 1
        first, second = (tokenized.token_ids[starts[r] : starts[r] + most] for r in (before, row))
        differs = np.flatnonzero(first != second)
        length = int(differs[0]) if len(differs) else most
        longer = int(max(tokenized.lengths[before], tokenized.lengths[row]))
        common.append(length if length >= max(MIN_SHARED_TOKENS, WORTH_IT * longer) else 0)
    shared, groups = _best_groups(common)
    if not shared.any():
        return None
    found = Prefixes(np.zeros_like(tokenized.lengths), np.full_like(tokenized.lengths, -1))
    found.lengths[rows], found.groups[rows] = shared, groups
    return found


def plan_prefix_batches(lengths: IntArray, prefixes: Prefixes, max_tokens: int) -> Iterator[IntArray]:
    """Group rows into batches in which a prefix counts once.

    Args:
        lengths: tokens of each row, shape (num_rows,); rows of length 0 are in no batch.
        prefixes: what they share.
        max_tokens: most tokens that a batch computes; a single longer row is a batch of its own.

    Yields:
        Row numbers of a batch, shape (num_rows,), int64: first rows that are over the budget or share
        nothing, then those that share a prefix, as neighbours, longest first.
    """
    is_alone = (prefixes.lengths == 0) | (lengths > max_tokens)
    yield from plan_batches(np.where(is_alone, lengths, 0), max_tokens)
    own = lengths - prefixes.lengths
    rows = np.flatnonzero(~is_alone & (lengths > 0))
    batch: list[int] = []
    num_tokens, group = 0, -1
    for row in rows[np.lexsort((-own[rows], prefixes.groups[rows]))].tolist():
        # What it costs with the prefix before it, and without.
        whole, added = int(lengths[row]), int(own[row] if prefixes.groups[row] == group else lengths[row])
        if batch and num_tokens + added > max_tokens:
            yield np.asarray(batch, np.int64)
            batch, num_tokens, added = [], 0, whole
        batch.append(row)
        num_tokens, group = num_tokens + added, int(prefixes.groups[row])
    if batch:
        yield np.asarray(batch, np.int64)


def _in_order_of_tokens(tokenized: TokenizedRows, starts: IntArray) -> list[int]:
    """Return the rows whose first tokens another row has too, those that begin alike next to each other."""
    ids, size = tokenized.token_ids.tobytes(), tokenized.token_ids.itemsize
    begins, ends = size * starts, size * (starts + tokenized.lengths)
    by_start: dict[bytes, list[int]] = {}
    for row in np.flatnonzero(tokenized.lengths > MIN_SHARED_TOKENS).tolist():
        by_start.setdefault(ids[begins[row] : begins[row] + size * MIN_SHARED_TOKENS], []).append(row)
    rows = [row for group in by_start.values() if len(group) > 1 for row in group]
    # Any order of the bytes will do: equal ones become neighbours.
    return sorted(rows, key=lambda row: ids[begins[row] : ends[row]])


@dataclass(slots=True)
class _Node:
    """Rows from `first` on that have `depth` tokens in common.

    `num_rows` of them share just these, the others more; `saved` is what those save.
    """

    number: int
    depth: int
    first: int
    num_rows: int = 0
    saved: int = 0


def _best_groups(common: list[int]) -> tuple[IntArray, IntArray]:
    """Choose groups that save most tokens, from the tree of all prefixes.

    Args:
        common: tokens that each row, in order of tokens, shares with the one before it; 0 for the first.

    Returns:
        Tokens shared and number of the group, for each row; 0 and -1 where it is in none.
    """
    shared, groups = np.zeros(len(common), np.int64), np.full(len(common), -1)
    open_nodes: list[_Node] = []
    num_nodes = 0
    for end, depth in enumerate([*common[1:], 0], start=1):
        first, saved = end - 1, 0
        # The rows from `first` on share nothing deeper with those to come: they go to the node above them.
        while above := max(depth, open_nodes[-1].depth if open_nodes else 0):
            if not open_nodes or open_nodes[-1].depth < above:
                open_nodes.append(_Node(num_nodes, above, first))
                num_nodes += 1
            node = open_nodes[-1]
            if saved < (end - first) * above:
                shared[first:end], groups[first:end] = above, node.number
                node.num_rows += end - first
            else:
                node.saved += saved
            if above == depth:
                break
            open_nodes.pop()
            first, saved = node.first, node.saved + max(0, node.num_rows - 1) * above
    sizes = np.bincount(groups + 1, minlength=num_nodes + 1)
    is_alone = sizes[groups + 1] < 2
    shared[is_alone], groups[is_alone] = 0, -1
    return shared, groups
