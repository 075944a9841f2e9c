"""Methods that keep token vectors: all of them, or those at the end of a step."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from poolembed.config.params import PoolingParams
from poolembed.errors import PoolingError
from poolembed.poolers.base import PoolingParamsUpdate, TokenPoolerOutput
from poolembed.poolers.metadata import PoolingMetadata, PoolingStates
from poolembed.poolers.methods.base import TokenPoolingMethod
from poolembed.poolers.segments import check_packed
from poolembed.tasks import PoolingTask

OutputSizesFn = Callable[[PoolingMetadata], Sequence[int]]
"""Tells for each row of a batch how many columns are kept."""


class AllPool(TokenPoolingMethod):
    """Every token of each row, special tokens included; dtype unchanged.

    A row that is computed in pieces gives None until its last piece; the pieces are kept, as copies,
    in the row's pooling state and joined in order.

    Args:
        output_sizes_fn: how many columns are kept of each row; None keeps all.

    Source:
        vLLM 0.33.0 `AllPool`.
    """

    def __init__(self, output_sizes_fn: OutputSizesFn | None = None) -> None:
        super().__init__()
        self.output_sizes_fn = output_sizes_fn

    def forward(self, hidden_states: Tensor, pooling_metadata: PoolingMetadata) -> TokenPoolerOutput:
        """Return the token vectors of each row."""
        cursor = pooling_metadata.get_pooling_cursor()
        check_packed(hidden_states, cursor)
        pieces = list(torch.split(hidden_states, cursor.num_scheduled_tokens_cpu.tolist()))
        if self.output_sizes_fn is not None:
            sizes = self.output_sizes_fn(pooling_metadata)
            if len(sizes) != len(pieces):
                raise PoolingError(f"output_sizes_fn gave {len(sizes)} sizes for {len(pieces)} rows")
            pieces = [piece[:, :size] for piece, size in zip(pieces, sizes, strict=True)]
        finished = cursor.finished_mask.tolist()
        rows = zip(pieces, finished, pooling_metadata.pooling_states, strict=True)
        return [_join(piece, state, finished=done) for piece, done, state in rows]


class StepPool(AllPool):
    """The tokens of each row that end a step, and of those the asked-for columns.

    Both filters come from the row's parameters: first the columns `returned_token_ids`, then the rows
    whose token id is `step_tag_id`; what is not set (or is an empty list of columns) keeps all.

    Source:
        vLLM 0.33.0 `StepPool`.
    """

    def get_pooling_updates(self, task: PoolingTask) -> PoolingParamsUpdate:
        """Ask for the token ids."""
        del task
        return PoolingParamsUpdate(requires_token_ids=True)

    def forward(self, hidden_states: Tensor, pooling_metadata: PoolingMetadata) -> TokenPoolerOutput:
        """Return the kept vectors of each row, shape (0, width) where no token matches."""
        rows = super().forward(hidden_states, pooling_metadata)
        ids = pooling_metadata.get_prompt_token_ids()
        params = pooling_metadata.pooling_params
        return [
            None if row is None else _filter_steps(row, row_ids, param)
            for row, row_ids, param in zip(rows, ids, params, strict=True)
        ]


def _join(piece: Tensor, state: PoolingStates, *, finished: bool) -> Tensor | None:
    if not finished:
        # A copy: the piece is a view of hidden states that the next batch may overwrite.
        state.hidden_states_cache.append(piece.clone())
        return None
    if not state.hidden_states_cache:
        return piece
    whole = torch.cat([*state.hidden_states_cache, piece], dim=0)
    state.clean()
    return whole


def _filter_steps(row: Tensor, token_ids: Tensor, params: PoolingParams) -> Tensor:
    if params.returned_token_ids is not None and len(params.returned_token_ids) > 0:
        row = row[:, list(params.returned_token_ids)]
    if params.step_tag_id is not None:
        row = row[token_ids == params.step_tag_id]
    return row
