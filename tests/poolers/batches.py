"""Batches for the tests of the room, and the tolerance they share."""

import torch

from poolembed.poolers import PoolingMetadata, PoolingParams, PoolingStates

FLOAT32 = {"rtol": 1e-5, "atol": 1e-5}
"""float32 sums of a few hundred values of size 1 against the same in float64."""


def batch(
    lens, task="embed", *, scheduled=None, seq_lens=None, excluded=None, ids=None, params=None, states=None
):
    """Metadata with a built cursor; rows are whole unless `scheduled` and `seq_lens` say otherwise."""
    packed_ids = None if ids is None else torch.tensor([i for row in ids for i in row], dtype=torch.int64)
    metadata = PoolingMetadata(
        prompt_lens=torch.tensor(lens, dtype=torch.int64),
        prompt_token_ids=packed_ids,
        prompt_token_ids_cpu=packed_ids,
        pooling_params=params or [PoolingParams(task=task) for _ in lens],
        pooling_states=states or [PoolingStates() for _ in lens],
        num_excluded_tokens_cpu=None if excluded is None else torch.tensor(excluded, dtype=torch.int64),
    )
    metadata.build_pooling_cursor(
        torch.tensor(scheduled or lens, dtype=torch.int64),
        torch.tensor(seq_lens or scheduled or lens, dtype=torch.int64),
        torch.device("cpu"),
    )
    return metadata


def rows_of(num_rows, task="embed", **params):
    """Metadata of rows for heads, which look at nothing but the parameters."""
    return batch([1] * num_rows, params=[PoolingParams(task=task, **params) for _ in range(num_rows)])


def mixed_rows(task, *settings):
    """Metadata of rows for heads, one for each dictionary of parameters."""
    return batch([1] * len(settings), params=[PoolingParams(task=task, **s) for s in settings])


def packed(lens, width=8, dtype=torch.float32, seed=0):
    """Random packed hidden states."""
    return torch.randn(sum(lens), width, generator=torch.Generator().manual_seed(seed)).to(dtype)


def rows64(hidden, lens):
    """The rows of packed hidden states as lists of float64 vectors, for loops written out in tests."""
    return [[token.double() for token in row] for row in torch.split(hidden, lens)]
