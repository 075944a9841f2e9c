"""A loaded model as one object: texts to tokens, tokens to pooled data."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from poolembed import __version__
from poolembed.errors import ConfigError
from poolembed.poolers import Pooler, PoolerOutput, PoolingMetadata, PoolingParams, PoolingStates
from poolembed.runner.backbone import Backbone
from poolembed.runner.locate import ModelFolder
from poolembed.runner.packing import IntArray, PackedBatch, TokenizedRows, pack, plan_batches
from poolembed.runner.results import PooledRows, RowCollector, RowFailure
from poolembed.runner.self_check import SelfCheck
from poolembed.runner.spec import ModelSpec
from poolembed.runner.tokenizer import RowTokenizer
from poolembed.runner.weights_hash import weights_hash
from poolembed.tasks import PoolingTask

OnBatch = Callable[[int, int], None]
"""Called after each batch with its numbers of rows and of tokens."""

# Tokens of a batch. On the CPU so few that activations stay in the cache: ten times more are slower,
# since each batch then writes fresh memory.
TOKEN_TASKS = ("token_embed", "token_classify")

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

    @property
    def dtype(self) -> str:
        """Precision of the transformer."""
        return str(self.backbone.model.dtype).removeprefix("torch.")

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the user should know about how this model is run."""
        if self.check.reason is None:
            return self.spec.warnings
        return (
            *self.spec.warnings,
            f"{self.folder.name} cannot be packed ({self.check.reason}); rows of equal length run together",
        )

    def params(self, task: PoolingTask) -> PoolingParams:
        """Return what every row asks for, from the user's choices and the model's declarations.

        Raises:
            ConfigError: the model cannot do the task, or cannot do it as asked.
        """
        if task not in self.spec.tasks:
            raise ConfigError(
                f"{self.folder.name} is a {self.spec.kind} model and cannot {task}",
                f"it can {', '.join(self.spec.tasks)}",
            )
        params = PoolingParams(task=task)
        params.verify(self.spec)
        self.pooler.get_pooling_updates(task).apply(params)
        return params

    def result_size(self, params: PoolingParams) -> int:
        """Return the width of a row's, or a token's, pooled data."""
        if params.task in ("embed", "token_embed"):
            return params.dimensions or self.spec.embedding_size
        return self.spec.num_labels

    def describe(self, params: PoolingParams) -> dict[str, str]:
        """Return all that decides a result, as text, for the output's metadata."""
        spec, tokenizer = self.spec, self.tokenizer
        return {
            "version": __version__,
            "model": self.folder.name,
            "revision": self.folder.revision or weights_hash(spec),
            "task": str(params.task),
            "pooling": spec.pooling,
            "activation": spec.activation if params.use_activation else "none",
            "dimensions": str(self.result_size(params)),
            "dtype": self.dtype,
            "device": self.backbone.device.type,
            "prompt": tokenizer.prompt,
            "max_length": str(tokenizer.max_length),
            "attention": self.check.path,
            "self_check": "" if self.check.max_difference is None else f"{self.check.max_difference:.1e}",
        }

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
            batch = pack(tokenized, rows)
            kept = None if batch.kept is None else torch.from_numpy(batch.kept).split(batch.lengths.tolist())
            collector.place(rows, self._pool_batch(batch, params), kept)
        except torch.OutOfMemoryError:
            if len(rows) > 1:
                for half in np.array_split(rows, 2):
                    self._pool_rows(tokenized, half, params, collector)
                return
            length = int(tokenized.lengths[rows[0]])
            message = f"{length} tokens do not fit the memory of {self.backbone.device}"
            collector.failures[int(rows[0])] = RowFailure("too_large", message)

    def _pool_batch(self, batch: PackedBatch, params: PoolingParams) -> PoolerOutput:
        hidden_states = self.backbone.forward(batch)
        with torch.inference_mode():
            output: PoolerOutput = self.pooler(hidden_states, self._metadata(batch, params))
        return output

    def _metadata(self, batch: PackedBatch, params: PoolingParams) -> PoolingMetadata:
        num_rows = len(batch.rows)
        lengths = torch.from_numpy(batch.lengths)
        token_ids = torch.from_numpy(batch.token_ids) if params.requires_token_ids else None
        excluded = None if batch.prompt_lengths is None else torch.from_numpy(batch.prompt_lengths)
        metadata = PoolingMetadata(
            prompt_lens=lengths,
            prompt_token_ids=None if token_ids is None else token_ids.to(self.backbone.device),
            prompt_token_ids_cpu=token_ids,
            pooling_params=[params] * num_rows,
            pooling_states=[PoolingStates() for _ in range(num_rows)],
            num_excluded_tokens_cpu=excluded,
        )
        metadata.build_pooling_cursor(batch.lengths, lengths, self.backbone.device)
        return metadata
