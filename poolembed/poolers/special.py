"""Poolers that wrap or join other poolers: pass-through, special-token filter, BGE-M3."""

from collections.abc import Set

import torch
from torch import Tensor

from poolembed.poolers.base import Pooler, PoolerOutput, PoolingParamsUpdate, TokenPoolerOutput
from poolembed.poolers.metadata import PoolingMetadata
from poolembed.tasks import PoolingTask

_OFF = -1


class IdentityPooler(Pooler):
    """Returns the packed hidden states themselves, for whatever a plugin makes of them."""

    def get_supported_tasks(self) -> Set[PoolingTask]:
        """Return `plugin`."""
        return {"plugin"}

    def forward(self, hidden_states: Tensor, pooling_metadata: PoolingMetadata) -> PoolerOutput:
        """Return `hidden_states`."""
        del pooling_metadata
        return hidden_states


class BOSEOSFilter(Pooler):
    """Drops the rows of the first and last special token from another pooler's token outputs.

    A last dimension of 1 is dropped as well, so that one weight a token comes as (num_tokens,). Rows
    with late chunking stay as they are: their rows stand for groups of tokens.

    Args:
        pooler: gives one matrix a row.
        bos_token_id: the first row goes when the row's first token is this one; -1 keeps it.
        eos_token_id: the last row goes when the row's last token is this one; -1 keeps it.

    Source:
        vLLM 0.33.0 `BOSEOSFilter`.
    """

    def __init__(self, pooler: Pooler, bos_token_id: int = _OFF, eos_token_id: int = _OFF) -> None:
        super().__init__()
        self.pooler = pooler
        self.bos_token_id = bos_token_id
        self.eos_token_id = eos_token_id

    def get_supported_tasks(self) -> Set[PoolingTask]:
        """Return the tasks of the wrapped pooler."""
        return self.pooler.get_supported_tasks()

    def get_pooling_updates(self, task: PoolingTask) -> PoolingParamsUpdate:
        """Return what the wrapped pooler needs, and the token ids."""
        return self.pooler.get_pooling_updates(task) | PoolingParamsUpdate(requires_token_ids=True)

    def forward(self, hidden_states: Tensor, pooling_metadata: PoolingMetadata) -> TokenPoolerOutput:
        """Return the filtered matrix of each row; None stays None."""
        rows: TokenPoolerOutput = self.pooler(hidden_states, pooling_metadata)
        ids = pooling_metadata.get_prompt_token_ids_cpu()
        params = pooling_metadata.pooling_params
        return [
            row if row is None or param.late_chunking_params is not None else self._filter(row, row_ids)
            for row, row_ids, param in zip(rows, ids, params, strict=True)
        ]

    def _filter(self, row: Tensor, token_ids: Tensor) -> Tensor:
        # A lone special token that is both must go once, not twice: the slice takes care of it.
        first = int(self.bos_token_id != _OFF and bool(token_ids[0] == self.bos_token_id))
        last = int(self.eos_token_id != _OFF and bool(token_ids[-1] == self.eos_token_id))
        return row[first : len(row) - last].squeeze(-1)


class BgeM3Pooler(Pooler):
    """Dense vector and token weights of each row in one flat vector, for `embed&token_classify`.

    Args:
        token_classify_pooler: gives the token weights of each row.
        embed_pooler: gives the dense vector of each row.

    Source:
        vLLM 0.33.0 `BgeM3Pooler`.
    """

    def __init__(self, token_classify_pooler: Pooler, embed_pooler: Pooler) -> None:
        super().__init__()
        self.token_classify_pooler = token_classify_pooler
        self.embed_pooler = embed_pooler

    def get_supported_tasks(self) -> Set[PoolingTask]:
        """Return `embed&token_classify`."""
        return {"embed&token_classify"}

    def get_pooling_updates(self, task: PoolingTask) -> PoolingParamsUpdate:
        """Return what either pooler needs for its own task."""
        del task
        dense = self.embed_pooler.get_pooling_updates("embed")
        return dense | self.token_classify_pooler.get_pooling_updates("token_classify")

    def forward(self, hidden_states: Tensor, pooling_metadata: PoolingMetadata) -> TokenPoolerOutput:
        """Return dense vector, then weights, of each row: shape (hidden_size + num_kept_tokens,)."""
        dense = self.embed_pooler(hidden_states, pooling_metadata)
        weights = self.token_classify_pooler(hidden_states, pooling_metadata)
        return [
            None if row is None else torch.cat([vector.flatten(), row.flatten()])
            for vector, row in zip(dense, weights, strict=True)
        ]
