"""The rows of a packed batch: their lengths, their token ids and what each asks of its pooler."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from poolembed.config.params import PoolingParams
from poolembed.errors import PoolingError, PoolingStateError
from poolembed.poolers.cursor import PoolingCursor, check_lengths, consecutive, row_starts
from poolembed.tasks import PoolingTask

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(slots=True, eq=False)
class PoolingStates:
    """What is kept of one row between the batches that compute it piece by piece.

    Attributes:
        hidden_states_cache: pooled token rows of the pieces so far, each (num_tokens, hidden_size).
    """

    hidden_states_cache: list[Tensor] = field(default_factory=list)

    def clean(self) -> None:
        """Forget the pieces."""
        self.hidden_states_cache = []


@dataclass(slots=True, eq=False)
class PoolingMetadata:
    """The rows of a batch: how long they are and what each asks of its pooler.

    Attributes:
        prompt_lens: tokens of each row in all, shape (num_rows,), int64, on the CPU.
        prompt_token_ids: token ids on the device, packed (sum of prompt_lens,) or padded on the right
            (num_rows, max_len); None where no pooler asks for them.
        prompt_token_ids_cpu: the same on the CPU.
        pooling_params: one for each row, with a task.
        pooling_states: one for each row.
        pooling_cursor: set by `build_pooling_cursor`.
        num_excluded_tokens_cpu: tokens at each row's start that sequence pooling leaves out, because
            the model's prompt must not be pooled, shape (num_rows,), int64; None leaves out none.
        tasks: the task of each row.

    Raises:
        PoolingError: a row has no task, the parts disagree on the number of rows, or a row would
            be left without tokens.
    """

    prompt_lens: Tensor
    prompt_token_ids: Tensor | None
    prompt_token_ids_cpu: Tensor | None
    pooling_params: list[PoolingParams]
    pooling_states: list[PoolingStates]
    pooling_cursor: PoolingCursor | None = None
    num_excluded_tokens_cpu: Tensor | None = None
    tasks: list[PoolingTask] = field(init=False)

    def __post_init__(self) -> None:
        """Check that all parts speak of the same rows."""
        self.prompt_lens = self.prompt_lens.to(torch.int64)
        num_rows = len(self.prompt_lens)
        for name in ("pooling_params", "pooling_states", "num_excluded_tokens_cpu"):
            part = getattr(self, name)
            if part is not None and len(part) != num_rows:
                raise PoolingError(f"{name} has {len(part)} entries for {num_rows} rows")
        self.tasks = [params.task for params in self.pooling_params if params.task is not None]
        if len(self.tasks) != num_rows:
            raise PoolingError("every row needs a pooling task", "set PoolingParams.task")
        excluded = self.num_excluded_tokens_cpu
        if excluded is not None:
            wrong = ((excluded < 0) | (excluded >= self.prompt_lens)).nonzero().flatten().tolist()
            if wrong:
                raise PoolingError(f"row {wrong[0]} has no token beside its prompt", "reject such rows")

    def __getitem__(self, rows: slice) -> "PoolingMetadata":
        """Return the metadata of consecutive rows, for the hidden states of just these rows."""
        rows = consecutive(rows, len(self.prompt_lens))
        excluded = self.num_excluded_tokens_cpu
        return PoolingMetadata(
            prompt_lens=self.prompt_lens[rows],
            prompt_token_ids=self._ids_of_rows(self.prompt_token_ids, rows),
            prompt_token_ids_cpu=self._ids_of_rows(self.prompt_token_ids_cpu, rows),
            pooling_params=self.pooling_params[rows],
            pooling_states=self.pooling_states[rows],
            pooling_cursor=None if self.pooling_cursor is None else self.pooling_cursor[rows],
            num_excluded_tokens_cpu=None if excluded is None else excluded[rows],
        )

    def get_prompt_token_ids(self) -> list[Tensor]:
        """Return the token ids of each row, shape (prompt_len,), on the device."""
        return self._split_ids(self.prompt_token_ids)

    def get_prompt_token_ids_cpu(self) -> list[Tensor]:
        """Return the token ids of each row, shape (prompt_len,), on the CPU."""
        return self._split_ids(self.prompt_token_ids_cpu)

    def get_pooling_cursor(self) -> PoolingCursor:
        """Return the cursor; a PoolingStateError (a RuntimeError) before it is built."""
        if self.pooling_cursor is None:
            raise PoolingStateError("the pooling cursor is not built", "call build_pooling_cursor first")
        return self.pooling_cursor

    def build_pooling_cursor(
        self,
        num_scheduled_tokens_np: "NDArray[np.integer] | Tensor",
        seq_lens_cpu: Tensor,
        device: torch.device,
        query_start_loc_gpu: Tensor | None = None,
    ) -> None:
        """Set `pooling_cursor` for the tokens that this batch computes.

        Where rows are computed whole, scheduled tokens, sequence and prompt lengths are the same.

        Args:
            num_scheduled_tokens_np: tokens of each row in this batch, at least 1, shape (num_rows,).
            seq_lens_cpu: tokens of each row computed so far, this batch included, shape (num_rows,).
            device: where the hidden states live.
            query_start_loc_gpu: where each row starts in the packed batch and where the last one ends,
                shape (num_rows + 1,), on `device`; computed when None.

        Raises:
            PoolingError: shapes, devices or lengths contradict each other.
        """
        scheduled = torch.as_tensor(num_scheduled_tokens_np, dtype=torch.int64)
        check_lengths(scheduled, seq_lens_cpu, self.prompt_lens)
        starts = row_starts(scheduled, device, query_start_loc_gpu)
        self.pooling_cursor = PoolingCursor(
            first_token_indices_gpu=starts[:-1],
            last_token_indices_gpu=starts[1:] - 1,
            prompt_lens_cpu=self.prompt_lens,
            seq_lens_cpu=seq_lens_cpu.to(torch.int64),
            num_scheduled_tokens_cpu=scheduled,
            num_excluded_tokens_cpu=self.num_excluded_tokens_cpu,
        )

    def _ids_of_rows(self, ids: Tensor | None, rows: slice) -> Tensor | None:
        if ids is None or ids.dim() > 1:
            return None if ids is None else ids[rows]
        start = int(self.prompt_lens[: rows.start].sum())
        return ids[start : start + int(self.prompt_lens[rows].sum())]

    def _split_ids(self, ids: Tensor | None) -> list[Tensor]:
        if ids is None:
            raise PoolingError("the batch carries no token ids", "set requires_token_ids")
        lens: list[int] = self.prompt_lens.tolist()
        packed = ids.dim() == 1
        if len(ids) != (sum(lens) if packed else len(lens)) or (
            not packed and ids.shape[1] < max(lens, default=0)
        ):
            raise PoolingError(f"token ids of shape {tuple(ids.shape)} do not fit rows of {lens} tokens")
        rows = torch.split(ids, lens) if packed else ids
        return [row[:length] for row, length in zip(rows, lens, strict=True)]
