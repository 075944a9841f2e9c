"""Texts to results, whatever their length: cut, refused, or computed in windows, averaged or one by one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from poolembed.config import LongTextConfig
from poolembed.model.operation import OnBatch
from poolembed.results import WINDOW_TOKENS, ColumnData, Ragged, ResultColumn, Values
from poolembed.runner import IntArray, PooledRows, PoolingParams, RowFailure, TokenizedRows, Windows

if TYPE_CHECKING:
    from poolembed.runner import PoolingRunner

Tokens = TokenizedRows | Windows


@dataclass(frozen=True, slots=True, kw_only=True)
class PooledTexts:
    """One result a text, or one a window of each.

    Attributes:
        values: shape (num_texts, size) or (num_windows, size), float32; meaningless at a failed text.
        num_tokens: tokens computed, shape (num_texts,), int32.
        truncated: whether text was lost, shape (num_texts,), bool.
        failures: the texts without a result, by number.
        columns: what the policy for long texts adds, in the shape of `values`.
        counts: windows of each text, shape (num_texts,), int64, where there is a result for each.
    """

    values: npt.NDArray[np.float32]
    num_tokens: npt.NDArray[np.int32]
    truncated: npt.NDArray[np.bool_]
    failures: Mapping[int, RowFailure]
    columns: Mapping[str, Values] = field(default_factory=dict)
    counts: IntArray | None = None

    @property
    def owners(self) -> IntArray:
        """The text that each of `values` belongs to, shape (len(values),), int64."""
        texts = np.arange(len(self.num_tokens))
        return texts if self.counts is None else np.repeat(texts, self.counts)

    def with_columns(self, content: Mapping[str, ColumnData]) -> dict[str, ColumnData]:
        """Return columns that were made of `values`, and those of the policy, with an entry for each text.

        Args:
            content: columns with an entry for each of `values`; no lists where texts have several.
        """
        columns: dict[str, ColumnData] = {**content, **self.columns}
        if self.counts is None:
            return columns
        counts = self.counts
        return {name: Ragged(counts, data) for name, data in columns.items() if not isinstance(data, Ragged)}


@dataclass(frozen=True, slots=True)
class LongTexts:
    """How texts become tokens and tokens one result a text.

    Attributes:
        runner: the model.
        params: what is computed; a sequence task.
        prompt: text put before every text.
        config: what becomes of long ones.
    """

    runner: "PoolingRunner"
    params: PoolingParams
    prompt: str
    config: LongTextConfig

    @property
    def gives_windows(self) -> bool:
        """Whether each window has its result, and not each text."""
        return self.config.on_long == "window-rows"

    def declared(self, *columns: ResultColumn) -> Sequence[ResultColumn]:
        """Return all columns of an operation.

        Args:
            columns: what it makes of one result.

        Returns:
            The same with `num_windows` where results of windows are averaged; or lists of them where each
            window has its own, with `window`, `start`, `end` and `WINDOW_TOKENS`.
        """
        if self.gives_windows:
            places = [ResultColumn(name, "int32") for name in ("window", "start", "end", WINDOW_TOKENS)]
            return tuple(replace(column, is_list=True) for column in (*columns, *places))
        return (*columns, ResultColumn("num_windows", "int32")) if self.config.in_windows else columns

    @property
    def metadata(self) -> dict[str, str]:
        """Prompt and policy."""
        described = {"prompt": self.prompt, "on_long": self.config.on_long}
        if self.config.in_windows:
            described["overlap_tokens"] = str(self.config.overlap_tokens)
        return described

    def tokenize(self, texts: Sequence[str]) -> Tokens:
        """Turn texts into tokens, or windows of tokens."""
        if self.config.in_windows:
            divide = self.runner.tokenizers.windows(
                self.prompt, self.config.overlap_tokens, with_spans=self.gives_windows
            )
            return divide(texts)
        return self.runner.tokenizers.texts(self.prompt)(texts)

    def pool(self, tokens: Tokens, on_batch: OnBatch | None = None) -> PooledTexts:
        """Return the results of the texts that `tokenize` was given.

        Texts that are too long and must not be are told as failures without being computed.

        Args:
            tokens: what `tokenize` made of them.
            on_batch: told after each batch how many rows and tokens it had.
        """
        if isinstance(tokens, Windows):
            return self._pool_windows(tokens, on_batch)
        if self.config.on_long == "error" and tokens.truncated.any():
            return self._pool_short(tokens, on_batch)
        pooled = self.runner.pool(tokens, self.params, on_batch)
        return PooledTexts(
            values=pooled.values,
            num_tokens=tokens.lengths.astype(np.int32),
            truncated=tokens.truncated,
            failures=pooled.failures,
        )

    def _pool_short(self, tokens: TokenizedRows, on_batch: OnBatch | None) -> PooledTexts:
        """Compute the texts that are not too long; the others have no tokens."""
        short = np.flatnonzero(~tokens.truncated)
        pooled = self.runner.pool(tokens.take(short), self.params, on_batch)
        values = np.zeros((len(tokens.lengths), pooled.values.shape[1]), np.float32)
        values[short] = pooled.values
        failures = {int(short[row]): failure for row, failure in pooled.failures.items()}
        message = f"the text has more than {self.runner.spec.max_length} tokens, the maximum length"
        for row in np.flatnonzero(tokens.truncated).tolist():
            failures[row] = RowFailure("too_long", message)
        if on_batch is not None:
            on_batch(len(values) - len(short), 0)
        return PooledTexts(
            values=values,
            num_tokens=np.where(tokens.truncated, 0, tokens.lengths).astype(np.int32),
            truncated=np.zeros(len(values), np.bool_),
            failures=failures,
        )

    def _pool_windows(self, windows: Windows, on_batch: OnBatch | None) -> PooledTexts:
        counts = windows.num_windows
        pooled = self.runner.pool(windows.tokens, self.params, _tokens_only(on_batch))
        if on_batch is not None:
            on_batch(len(counts), 0)
        num_tokens = _sums(windows.tokens.lengths, counts).astype(np.int32)
        truncated, failures = np.zeros(len(counts), np.bool_), _failures_of_texts(pooled, counts)
        if windows.spans is not None:
            return PooledTexts(
                values=pooled.values,
                num_tokens=num_tokens,
                truncated=truncated,
                failures=failures,
                columns=_places(windows, windows.spans),
                counts=counts,
            )
        values = window_means(pooled.values, counts, windows.num_text_tokens)
        if self.params.task == "embed" and self.params.use_activation:
            values = self._renormalized(values, counts)
        return PooledTexts(
            values=values,
            num_tokens=num_tokens,
            truncated=truncated,
            failures=failures,
            columns={"num_windows": counts.astype(np.int32)},
        )

    def _renormalized(
        self, means: npt.NDArray[np.float32], counts: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.float32]:
        """Give the mean of several unit vectors unit length; a lone window's vector stays as it is."""
        if self.runner.spec.activation != "normalize":
            return means
        norms = np.maximum(np.linalg.norm(means, axis=1, keepdims=True), np.float32(1e-12))
        return np.where(counts[:, None] > 1, means / norms, means)


def window_means(
    values: npt.NDArray[np.float32], counts: npt.NDArray[np.int64], weights: npt.NDArray[np.int64]
) -> npt.NDArray[np.float32]:
    """Return the mean over each text's windows, weighted by their tokens of text.

    Sums are taken in float64. A text of one window keeps its values to the bit.

    Args:
        values: shape (num_windows, size).
        counts: windows of each text, shape (num_texts,), each at least 1.
        weights: tokens of text in each window, shape (num_windows,).

    Returns:
        Shape (num_texts, size), float32.

    Source:
        vLLM 0.33.0, chunked processing of embeddings, which weights by tokens as well; there, windows
        in the middle have no special tokens.
    """
    if not len(counts):
        return values
    starts = np.cumsum(counts) - counts
    shares = np.maximum(weights, 1).astype(np.float64)
    means = np.add.reduceat(values * shares[:, None], starts) / np.add.reduceat(shares, starts)[:, None]
    return np.where(counts[:, None] > 1, means.astype(np.float32), values[starts])


def _places(windows: Windows, spans: IntArray) -> dict[str, Values]:
    """Return where each window stands in its text, and its tokens."""
    counts = windows.num_windows
    first = np.repeat(np.cumsum(counts) - counts, counts)
    places = np.arange(len(first)) - first, spans[:, 0], spans[:, 1], windows.tokens.lengths
    names = "window", "start", "end", WINDOW_TOKENS
    return {name: values.astype(np.int32) for name, values in zip(names, places, strict=True)}


def _sums(numbers: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    return np.add.reduceat(numbers, np.cumsum(counts) - counts) if len(counts) else numbers


def _failures_of_texts(pooled: PooledRows, counts: npt.NDArray[np.int64]) -> dict[int, RowFailure]:
    owners = np.repeat(np.arange(len(counts)), counts)
    return {int(owners[window]): pooled.failures[window] for window in sorted(pooled.failures, reverse=True)}


def _tokens_only(on_batch: OnBatch | None) -> OnBatch | None:
    """Report tokens as they are computed; a batch of windows has no number of rows to tell."""
    return None if on_batch is None else lambda _, num_tokens: on_batch(0, num_tokens)
