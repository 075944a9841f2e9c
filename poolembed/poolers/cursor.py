"""Where the rows of a packed batch begin and end in its hidden states."""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from poolembed.errors import PoolingError


@dataclass(slots=True, eq=False)
class PoolingCursor:
    """Where the rows of a batch lie in its packed hidden states.

    Attributes:
        first_token_indices_gpu: index of each row's first token, shape (num_rows,), on the device.
        last_token_indices_gpu: index of each row's last token, shape (num_rows,), on the device.
        prompt_lens_cpu: tokens of each row in all, shape (num_rows,).
        seq_lens_cpu: tokens of each row computed so far, this batch included, shape (num_rows,).
        num_scheduled_tokens_cpu: tokens of each row in this batch, shape (num_rows,).
        num_excluded_tokens_cpu: tokens at each row's start that sequence pooling leaves out, shape
            (num_rows,); None leaves out none.
        partial_prefill: some row is not whole in this batch.
        finished_mask: which rows are complete after this batch, shape (num_rows,), on the CPU.
    """

    first_token_indices_gpu: Tensor
    last_token_indices_gpu: Tensor
    prompt_lens_cpu: Tensor
    seq_lens_cpu: Tensor
    num_scheduled_tokens_cpu: Tensor
    num_excluded_tokens_cpu: Tensor | None = None
    partial_prefill: bool = field(init=False)
    finished_mask: Tensor = field(init=False)

    def __post_init__(self) -> None:
        """Derive the two flags, so that they cannot disagree with the lengths."""
        self.partial_prefill = not torch.equal(self.prompt_lens_cpu, self.num_scheduled_tokens_cpu)
        self.finished_mask = self.prompt_lens_cpu == self.seq_lens_cpu

    def __getitem__(self, rows: slice) -> "PoolingCursor":
        """Return the cursor of consecutive rows, whose first token has index 0 again."""
        rows = consecutive(rows, len(self.prompt_lens_cpu))
        first = self.first_token_indices_gpu[rows]
        excluded = self.num_excluded_tokens_cpu
        return PoolingCursor(
            first_token_indices_gpu=first - first[:1],
            last_token_indices_gpu=self.last_token_indices_gpu[rows] - first[:1],
            prompt_lens_cpu=self.prompt_lens_cpu[rows],
            seq_lens_cpu=self.seq_lens_cpu[rows],
            num_scheduled_tokens_cpu=self.num_scheduled_tokens_cpu[rows],
            num_excluded_tokens_cpu=None if excluded is None else excluded[rows],
        )

    def token_range(self, rows: slice) -> slice:
        """Return the packed indices of the tokens that belong to consecutive `rows`."""
        rows = consecutive(rows, len(self.prompt_lens_cpu))
        start = int(self.num_scheduled_tokens_cpu[: rows.start].sum())
        return slice(start, start + int(self.num_scheduled_tokens_cpu[rows].sum()))


def row_starts(num_scheduled_tokens: Tensor, device: torch.device, given: Tensor | None = None) -> Tensor:
    """Return where each row starts in the packed batch, and where the last one ends.

    Args:
        num_scheduled_tokens: tokens of each row, shape (num_rows,), on the CPU.
        device: where the result must live.
        given: the result, when the attention has it already.

    Returns:
        Offsets, shape (num_rows + 1,), on `device`.

    Raises:
        PoolingError: `given` has another shape or lives elsewhere.
    """
    if given is None:
        return torch.nn.functional.pad(num_scheduled_tokens.cumsum(0), (1, 0)).to(device, non_blocking=True)
    shape = (len(num_scheduled_tokens) + 1,)
    if given.shape != shape or given.device != torch.empty(0, device=device).device:
        raise PoolingError(
            f"query_start_loc_gpu: shape {tuple(given.shape)} on {given.device}, needed {shape} on {device}"
        )
    return given


def check_lengths(scheduled: Tensor, seq_lens: Tensor, prompt_lens: Tensor) -> None:
    """Raise a PoolingError unless 1 <= scheduled <= computed <= prompt length holds for every row.

    Args:
        scheduled: tokens of each row in this batch, shape (num_rows,), on the CPU.
        seq_lens: tokens of each row computed by its end, same shape.
        prompt_lens: tokens of each whole row, same shape.
    """
    if not len(scheduled) == len(seq_lens) == len(prompt_lens):
        raise PoolingError(
            f"{len(prompt_lens)} rows, but {len(scheduled)} scheduled and {len(seq_lens)} sequence lengths"
        )
    wrong = ~((scheduled >= 1) & (scheduled <= seq_lens) & (seq_lens <= prompt_lens))
    if bool(wrong.any()):
        row = int(wrong.nonzero()[0])
        raise PoolingError(
            f"row {row}: 1 <= {scheduled[row]} scheduled <= {seq_lens[row]} computed"
            f" <= {prompt_lens[row]} prompt tokens does not hold"
        )


def consecutive(rows: slice, num_rows: int) -> slice:
    """Return `rows` with plain bounds; a PoolingError when they are not consecutive.

    Args:
        rows: a slice, as Python lets users write it.
        num_rows: rows of the batch.
    """
    start, stop, step = rows.indices(num_rows)
    if step != 1:
        raise PoolingError(f"rows of a packed batch must be consecutive, not every {step}")
    return slice(start, max(start, stop))
