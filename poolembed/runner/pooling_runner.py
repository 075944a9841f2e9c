"""A loaded model as one object: texts to tokens, tokens to pooled data."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from poolembed.poolers import Pooler, PoolingMetadata, PoolingParams
from poolembed.runner.backbone import Backbone
from poolembed.runner.locate import ModelFolder
from poolembed.runner.packing import IntArray, PackedBatch, TokenizedRows, pack, plan_batches
from poolembed.runner.results import PooledRows, RowFailure
from poolembed.runner.self_check import SelfCheck
from poolembed.runner.spec import ModelSpec
from poolembed.runner.tokenizer import RowTokenizer

OnBatch = Callable[[int, int], None]
"""Called after each batch with its numbers of rows and of tokens."""

# Tokens of a batch. On the CPU so few that activations stay in the cache: ten times more are slower,
# since each batch then writes fresh memory.
CPU_BATCH_TOKENS = 2048
GPU_BATCH_TOKENS = 32_768


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolingRunner:
    """Runs packed batches of tokens through a transformer and pools what comes out.

    Attributes:
        spec: what the checkpoint declares and the user overrode.
        folder: where the checkpoint was found.
        tokenizer: texts to tokens.
        backbone: tokens to hidden states.
        pooler: hidden states to pooled data.
        check: verdict of the self-check.
        batch_tokens: most tokens of a batch.
    """

    spec: ModelSpec
    folder: ModelFolder
    tokenizer: RowTokenizer
    backbone: Backbone
    pooler: Pooler
    check: SelfCheck
    batch_tokens: int

    def tokenize(self, texts: Sequence[str]) -> TokenizedRows:
        """Turn texts into tokens, one row each."""
        return self.tokenizer(texts)

    def pool(
        self, tokenized: TokenizedRows, params: PoolingParams, on_batch: OnBatch | None = None
    ) -> PooledRows:
        """Compute pooled data of a chunk.

        Rows are computed in batches of neighbouring lengths; the result is in the order of the rows.

        Args:
            tokenized: the chunk's tokens.
            params: what to compute, the same for every row; its task must be set.
            on_batch: told after each batch how many rows and tokens it had.
        """
        collector = RowCollector(
            len(tokenized.lengths), self.result_size(params), per_token=params.task in TOKEN_TASKS
        )
        for row in np.flatnonzero(tokenized.lengths == 0).tolist():
            collector.failures[row] = RowFailure("no_tokens", "the text has no tokens")
        equal_lengths = self.backbone.path == "equal-length"
        for rows in plan_batches(tokenized.lengths, self.batch_tokens, equal_lengths=equal_lengths):
            self._pool_rows(tokenized, rows, params, collector)
            if on_batch is not None:
                on_batch(len(rows), int(tokenized.lengths[rows].sum()))
        return collector.finish()

    def _pool_rows(
        self, tokenized: TokenizedRows, rows: IntArray, params: PoolingParams, collector: RowCollector
    ) -> None:
        """Compute one batch, in halves where the device has no room for it."""
        try:
            collector.place(rows, self._pool_batch(pack(tokenized, rows), params))
        except torch.OutOfMemoryError:
            if len(rows) > 1:
                for half in np.array_split(rows, 2):
                    self._pool_rows(tokenized, half, params, collector)
                return
            length = int(tokenized.lengths[rows[0]])
            message = f"{length} tokens do not fit the memory of {self.backbone.device}"
            collector.failures[int(rows[0])] = RowFailure("too_large", message)
