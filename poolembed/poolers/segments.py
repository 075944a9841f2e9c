"""Sums and maxima over the rows of a packed batch, in float32 and in bounded memory.

Only the arithmetic; which tokens count and what a sum is divided by is decided by the methods.
"""

import torch
from torch import Tensor

from poolembed.errors import PoolingError, PoolingStateError
from poolembed.poolers.cursor import PoolingCursor

MAX_CHUNK_BYTES = 16 * 1024 * 1024
"""Most bytes of the float32 copies that exist at once beside input and result."""


def check_packed(hidden_states: Tensor, cursor: PoolingCursor) -> None:
    """Raise a PoolingError unless `hidden_states` has one row for every token of the cursor.

    Args:
        hidden_states: what the model gave, to be of shape (num_tokens, hidden_size).
        cursor: where the rows lie.
    """
    num_tokens = int(cursor.num_scheduled_tokens_cpu.sum())
    if hidden_states.dim() != 2 or len(hidden_states) != num_tokens:
        raise PoolingError(
            f"hidden states of shape {tuple(hidden_states.shape)} do not fit a batch of {num_tokens} tokens",
            "pass them packed, without padding",
        )


def check_whole(cursor: PoolingCursor, method: str) -> None:
    """Raise a PoolingStateError when some row is not whole in this batch.

    Args:
        cursor: where the rows lie.
        method: name of the pooling method, for the message.
    """
    if cursor.partial_prefill:
        raise PoolingStateError(f"partial prefill is not supported with {method} pooling")


def segment_ids(cursor: PoolingCursor, device: torch.device) -> Tensor:
    """Return for every token the row it counts for; excluded tokens count for row `num_rows`.

    Args:
        cursor: rows that are whole in this batch.
        device: where the result lives.

    Returns:
        Row numbers, shape (num_tokens,), int64.
    """
    lens = cursor.num_scheduled_tokens_cpu
    num_rows = len(lens)
    rows = torch.arange(num_rows)
    if cursor.num_excluded_tokens_cpu is None:
        return torch.repeat_interleave(rows, lens).to(device, non_blocking=True)
    # Two stretches a row, the excluded one first: [n, 0, n, 1, n, 2, ...].
    excluded = cursor.num_excluded_tokens_cpu
    owners = torch.stack([torch.full_like(rows, num_rows), rows], dim=1).flatten()
    stretches = torch.stack([excluded, lens - excluded], dim=1).flatten()
    return torch.repeat_interleave(owners, stretches).to(device, non_blocking=True)


def segment_sums(
    values: Tensor,
    ids: Tensor,
    num_segments: int,
    weights: Tensor | None = None,
    max_chunk_bytes: int = MAX_CHUNK_BYTES,
) -> Tensor:
    """Return the float32 sum of the tokens of every segment.

    Tokens are added one after the other, so a result does not depend on what else is in the batch
    or on the size of the chunks (on CUDA the order of additions is not fixed).

    Args:
        values: packed vectors, shape (num_tokens, width), any floating dtype.
        ids: segment of every token, shape (num_tokens,), in [0, num_segments]; the last is dropped.
        num_segments: number of segments that are wanted.
        weights: factor of every token, shape (num_tokens,), float32; None means 1.
        max_chunk_bytes: bound of the float32 copy of `values` that exists at once; at least one token.

    Returns:
        Sums, shape (num_segments, width), float32, on the device of `values`.
    """
    width = values.shape[1]
    sums = torch.zeros(num_segments + 1, width, dtype=torch.float32, device=values.device)
    step = max(1, max_chunk_bytes // (4 * max(1, width)))
    for start in range(0, len(values), step):
        chunk = values[start : start + step].float()
        if weights is not None:
            chunk = chunk * weights[start : start + step, None]
        sums.index_add_(0, ids[start : start + step], chunk)
    return sums[:num_segments]


def segment_maxima(values: Tensor, ids: Tensor, num_segments: int) -> Tensor:
    """Return the largest value of every segment in each column.

    Args:
        values: packed vectors, shape (num_tokens, width), any floating dtype.
        ids: segment of every token, shape (num_tokens,), in [0, num_segments]; the last is dropped.
        num_segments: number of segments that are wanted, each with a token.

    Returns:
        Maxima, shape (num_segments, width), dtype and device of `values`.
    """
    shape = (num_segments + 1, values.shape[1])
    largest = torch.full(shape, -torch.inf, dtype=values.dtype, device=values.device)
    largest.scatter_reduce_(0, ids[:, None].expand_as(values), values, "amax")
    return largest[:num_segments]
