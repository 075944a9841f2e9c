"""Puts pooled data, which comes in order of length, where its rows are."""

import numpy as np
import numpy.typing as npt
import torch

from poolembed.poolers import PoolerOutput
from poolembed.runner.results import PooledRows, RowFailure


class RowCollector:
    """Puts the pooled data of batches, which come in order of length, where their rows are.

    Args:
        num_rows: rows of the chunk.
        size: width of the pooled data.
        per_token: whether a row has one result for each of its tokens, or one in all.
    """

    def __init__(self, num_rows: int, size: int, *, per_token: bool) -> None:
        self._size = size
        self._values = None if per_token else np.zeros((num_rows, size), np.float32)
        self._rows: list[npt.NDArray[np.float32]] = [np.zeros((0, size), np.float32)] * num_rows
        self.failures: dict[int, RowFailure] = {}

    def place(
        self, rows: npt.NDArray[np.int64], pooled: PoolerOutput, kept: list[torch.Tensor] | None = None
    ) -> None:
        """Take the pooled data of a batch; a row with a number that is not finite is a failure.

        Args:
            rows: row number of each result, shape (num_results,).
            pooled: shape (num_results, size), or one matrix a row.
            kept: token tasks: which rows of each matrix are wanted, bool; None for all.
        """
        if self._values is not None:
            assert isinstance(pooled, torch.Tensor)  # all rows ask for the same, so all have one width
            block = pooled.float().cpu()
            self._fail_where(rows, ~torch.isfinite(block).all(dim=-1).numpy())
            self._values[rows] = block.numpy()
            return
        # One weight a token may come without its second dimension.
        blocks = [data.float().cpu().view(len(data), self._size) for data in pooled if data is not None]
        if kept is not None:
            blocks = [data[wanted] for data, wanted in zip(blocks, kept, strict=True)]
        self._fail_where(rows, np.asarray([not bool(torch.isfinite(data).all()) for data in blocks]))
        for row, data in zip(rows.tolist(), blocks, strict=True):
            if row not in self.failures:
                self._rows[row] = data.numpy()

    def finish(self) -> PooledRows:
        """Return what was placed, in the order of the rows."""
        if self._values is not None:
            self._values[list(self.failures)] = 0
            return PooledRows(values=self._values, failures=self.failures)
        return PooledRows(
            values=np.concatenate([np.zeros((0, self._size), np.float32), *self._rows]),
            lengths=np.asarray([len(data) for data in self._rows], np.int64),
            failures=self.failures,
        )

    def _fail_where(self, rows: npt.NDArray[np.int64], failed: npt.NDArray[np.bool_]) -> None:
        for row in rows[failed].tolist():
            self.failures[row] = RowFailure("non_finite", "the model gave numbers that are not finite")
