"""A loaded model as one object: tokens to pooled data."""

from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import numpy.typing as npt
import torch

from poolembed.poolers import (
    Pooler,
    PoolerOutput,
    PoolingMetadata,
    PoolingParams,
    PoolingStates,
    SpladePooler,
)
from poolembed.runner.backbone import Backbone
from poolembed.runner.locate import ModelFolder
from poolembed.runner.packing import IntArray, PackedBatch, TokenizedRows, pack, plan_batches
from poolembed.runner.pooling_request import request
from poolembed.runner.precision import in_precision
from poolembed.runner.prefix import PIECEWISE, share_prefixes
from poolembed.runner.results import PooledRows, RowFailure
from poolembed.runner.row_collector import RowCollector
from poolembed.runner.seconds import Seconds
from poolembed.runner.self_check import SelfCheck
from poolembed.runner.spec import ModelSpec
from poolembed.runner.tokenizers import Tokenizers
from poolembed.runner.weights_hash import weights_hash
from poolembed.runner.workers import ALONE, Workers
from poolembed.tasks import PoolingTask

OnBatch = Callable[[int, int], None]
"""Called after each batch with its numbers of rows and of tokens."""

TOKEN_TASKS = ("token_embed", "token_classify")


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolingRunner:
    """Runs packed batches of tokens through a transformer and pools what comes out.

    Attributes:
        spec: what the checkpoint declares and the user overrode.
        folder: where the checkpoint was found.
        tokenizers: texts, pairs and roles to tokens.
        backbone: tokens to hidden states.
        pooler: hidden states to pooled data.
        check: verdict of the self-check.
        batch_tokens: most tokens of a batch.
        workers: how many batches are computed at once.
        seconds: what computing has cost so far.
        int8_cosine: mean cosine between hidden states of random tokens with and without eight bits; None
            where the transformer has none.
    """

    spec: ModelSpec
    folder: ModelFolder
    tokenizers: Tokenizers
    backbone: Backbone
    pooler: Pooler
    check: SelfCheck
    batch_tokens: int
    workers: Workers = ALONE
    seconds: Seconds = field(default_factory=Seconds)
    int8_cosine: float | None = None

    @property
    def dtype(self) -> str:
        """Precision of the transformer."""
        if self.int8_cosine is not None:
            return "int8"
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

    def params(self, task: PoolingTask, given: PoolingParams | None = None) -> PoolingParams:
        """Return what every row asks for, from the user's choices and the model's declarations.

        Args:
            task: the pooling task.
            given: what the user asks for; it is not changed.

        Raises:
            ConfigError: the model cannot do the task, or cannot do it as asked.
        """
        return self.ready(request(self.spec, task, given))

    def ready(self, checked: PoolingParams) -> PoolingParams:
        """Return parameters that `request` has checked, with what the pooler needs beside them."""
        assert checked.task is not None
        params = checked.clone()
        self.pooler.get_pooling_updates(checked.task).apply(params)
        return params

    def result_size(self, params: PoolingParams) -> int:
        """Return the width of a row's, or a token's, pooled data."""
        if isinstance(self.pooler, SpladePooler):
            return len(self.pooler.decoder_weight)
        if params.task == "embed":
            return params.dimensions or self.spec.embedding_size
        if params.task == "token_embed":
            # BGE-M3 has a head of its own for token vectors, as wide as its hidden states.
            full = self.spec.hidden_size if self.spec.bge_m3 else self.spec.embedding_size
            return params.dimensions or full
        return 1 if self.spec.bge_m3 else self.spec.num_labels

    def has_output(self, tokenized: TokenizedRows, params: PoolingParams) -> npt.NDArray[np.bool_]:
        """Return whether a token task gives an output for each token, shape (num_tokens,).

        Args:
            tokenized: the chunk's tokens.
            params: what is computed, without late chunking or steps, which have outputs of their own.
        """
        has = np.ones(len(tokenized.token_ids), np.bool_) if tokenized.kept is None else tokenized.kept.copy()
        if self.spec.bge_m3 is not None:
            # Its heads leave out the tokens around a text; the vectors only the first one.
            ids, config = tokenized.token_ids, self.backbone.model.config
            lengths = tokenized.lengths[tokenized.lengths > 0]
            last = np.cumsum(lengths) - 1
            first = last + 1 - lengths
            has[first[ids[first] == config.bos_token_id]] = False
            if params.task == "token_classify":
                has[last[ids[last] == config.eos_token_id]] = False
        return has

    def describe(self, params: PoolingParams) -> dict[str, str]:
        """Return all that decides a result beside the texts, as text, for the output's metadata."""
        spec = self.spec
        return {
            "model": self.folder.name,
            "revision": self.folder.revision or weights_hash(spec),
            "task": str(params.task),
            "pooling": spec.pooling,
            "activation": spec.activation if params.use_activation else "none",
            "dimensions": str(self.result_size(params)),
            "dtype": self.dtype,
            "model_impl": self.backbone.model_impl,
            "device": self.backbone.device.type,
            "max_length": str(spec.max_length),
            "attention": self.check.path,
            "int8_cosine": "" if self.int8_cosine is None else f"{self.int8_cosine:.5f}",
            "self_check": "" if self.check.max_difference is None else f"{self.check.max_difference:.1e}",
        }

    def pool(
        self, tokenized: TokenizedRows, params: PoolingParams, on_batch: OnBatch | None = None
    ) -> PooledRows:
        """Compute pooled data of a chunk.

        Rows are computed in batches of neighbouring lengths; the result is in the order of the rows. A row
        whose numbers are not finite in half precision is computed again in float32; one that stays so, has
        no tokens, or does not fit the device alone is a failure.

        Args:
            tokenized: the chunk's tokens.
            params: what to compute, the same for every row; its task must be set.
            on_batch: told after each batch how many rows and tokens it had.

        Returns:
            One result a row, in the order of the rows, and the rows that failed.
        """
        collector = RowCollector(
            len(tokenized.lengths), self.result_size(params), per_token=params.task in TOKEN_TASKS
        )
        usable = tokenized.lengths.copy()
        for row in np.flatnonzero(tokenized.lengths == 0).tolist():
            collector.failures[row] = RowFailure("no_tokens", "the text has no tokens")
        if tokenized.prompt_lengths is not None:
            for row in np.flatnonzero((usable > 0) & (usable <= tokenized.prompt_lengths)).tolist():
                collector.failures[row] = RowFailure("only_prompt", "the prompt leaves no room for the text")
                usable[row] = 0
        packed = self.backbone.path == "packed"
        batches = plan_batches(usable, self.batch_tokens, equal_lengths=not packed)
        if packed and self.check.shares_prefixes and params.task not in TOKEN_TASKS:
            tokenized, batches = share_prefixes(tokenized, usable, self.batch_tokens)
        compute = partial(self._pool_rows, tokenized, params=params, collector=collector)
        with closing(self._computed(compute, list(batches), tokenized.lengths)) as computed:
            for rows in computed:
                if on_batch is not None:
                    on_batch(len(rows), int(tokenized.lengths[rows].sum()))
        self._retry_in_float32(tokenized, params, collector)
        return collector.finish()

    def _computed(
        self, compute: Callable[[IntArray], None], batches: Sequence[IntArray], lengths: IntArray
    ) -> Generator[IntArray]:
        """Compute batches; yield the rows of each that is done."""
        # A row over the budget comes first, has all cores, and may switch the model's attention for a while.
        num_alone = sum(len(rows) == 1 and int(lengths[rows[0]]) > self.batch_tokens for rows in batches)
        yield from ALONE.run(compute, batches[:num_alone])
        yield from self.workers.run(compute, batches[num_alone:])

    def _pool_rows(
        self, tokenized: TokenizedRows, rows: IntArray, *, params: PoolingParams, collector: RowCollector
    ) -> None:
        """Compute one batch, in halves where the device has no room for it."""
        batch = pack(tokenized, rows)
        kept = None if batch.kept is None else torch.from_numpy(batch.kept).split(batch.lengths.tolist())
        try:
            output = self._pool_batch(batch, params)
            with self.seconds.of_pooling():
                collector.place(rows, output, kept)
        except torch.OutOfMemoryError:
            if len(rows) > 1:
                for half in np.array_split(rows, 2):
                    self._pool_rows(tokenized, half, params=params, collector=collector)
                return
            message = f"{batch.num_tokens} tokens do not fit the memory of {self.backbone.device}"
            collector.failures[int(rows[0])] = RowFailure("too_large", message)

    def _pool_batch(self, batch: PackedBatch, params: PoolingParams) -> PoolerOutput:
        if len(batch.rows) == 1 and batch.num_tokens > self.batch_tokens and self._takes_pieces(params):
            return self._pool_in_pieces(batch, params)
        if self._takes_first(params) and batch.prompt_lengths is None:
            hidden_states, batch = self.backbone.forward_first(batch), batch.first_tokens()
        else:
            hidden_states = self.backbone.forward(batch)
        with torch.inference_mode(), self.seconds.of_pooling():
            output: PoolerOutput = self.pooler(hidden_states, self._metadata(batch, params))
        return output

    def _takes_first(self, params: PoolingParams) -> bool:
        """Tell whether nothing but the first token of each row is looked at."""
        is_cls = self.spec.pooling == "CLS" and params.task not in TOKEN_TASKS
        return is_cls and self.spec.kind != "sparse" and self.backbone.gives_first

    def _takes_pieces(self, params: PoolingParams) -> bool:
        piecewise = params.task in TOKEN_TASKS or self.spec.pooling in PIECEWISE
        return self.spec.is_causal and piecewise and self.backbone.takes_pieces

    def _pool_in_pieces(self, batch: PackedBatch, params: PoolingParams) -> PoolerOutput:
        """Compute a row over the budget piece by piece; the pooler joins what must be joined."""
        states, num_done = [PoolingStates()], 0
        output: PoolerOutput = []
        for hidden_states in self.backbone.forward_in_pieces(batch, self.batch_tokens):
            num_done += len(hidden_states)
            metadata = self._metadata(batch, params, states, piece=(len(hidden_states), num_done))
            with torch.inference_mode(), self.seconds.of_pooling():
                output = self.pooler(hidden_states, metadata)
        return output

    def _metadata(
        self,
        batch: PackedBatch,
        params: PoolingParams,
        states: list[PoolingStates] | None = None,
        piece: tuple[int, int] | None = None,
    ) -> PoolingMetadata:
        """Describe a batch to the pooler; `piece` has the tokens of a piece, and those computed so far."""
        num_rows, device = len(batch.rows), self.backbone.device
        lengths = torch.from_numpy(batch.lengths)
        token_ids = torch.from_numpy(batch.token_ids) if params.requires_token_ids else None
        metadata = PoolingMetadata(
            prompt_lens=lengths,
            prompt_token_ids=None if token_ids is None else token_ids.to(device),
            prompt_token_ids_cpu=token_ids,
            pooling_params=[params] * num_rows,
            pooling_states=states or [PoolingStates() for _ in range(num_rows)],
            num_excluded_tokens_cpu=None
            if batch.prompt_lengths is None
            else torch.from_numpy(batch.prompt_lengths),
        )
        if piece is None:
            metadata.build_pooling_cursor(batch.own_lengths, lengths, device)
        else:
            scheduled, done = np.asarray(piece[:1], np.int64), torch.tensor(piece[1:])
            metadata.build_pooling_cursor(scheduled, done, device)
        return metadata

    def _retry_in_float32(
        self, tokenized: TokenizedRows, params: PoolingParams, collector: RowCollector
    ) -> None:
        """Give rows that overflowed in half precision a second chance."""
        failed = [row for row, failure in collector.failures.items() if failure.code == "non_finite"]
        model = self.backbone.model
        if not failed or model.dtype == torch.float32:
            return
        try:
            with in_precision(model, torch.float32):
                for row in failed:
                    del collector.failures[row]
                    self._pool_rows(tokenized, np.asarray([row]), params=params, collector=collector)
        except torch.OutOfMemoryError:
            # Only the weights get here, not a row: without room for them the rows stay failures.
            return
