"""Texts to weights of vocabulary entries: SPLADE, and the lexical weights of BGE-M3."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from poolembed.config import SparseConfig
from poolembed.errors import ConfigError
from poolembed.model.operation import OnBatch, Outcome, Texts
from poolembed.model.prompted import Prompted
from poolembed.results import Ragged, ResultColumn
from poolembed.runner import ModelSpec, PoolingParams, RowFailure, TokenizedRows, request

if TYPE_CHECKING:
    from poolembed.runner import PoolingRunner

DENSE_BYTES = 256 * 2**20
"""Most bytes of rows that are as wide as the vocabulary, held before their zeros are dropped."""

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Entries:
    """Weights that are not zero, in any order.

    Attributes:
        rows: row of each entry, shape (num_entries,).
        ids: token id of each entry, shape (num_entries,).
        weights: shape (num_entries,), above 0.
    """

    rows: Ints
    ids: Ints
    weights: Floats


@dataclass(frozen=True, slots=True)
class Sparse(Prompted[SparseConfig]):
    """Gives each text the weights of the tokens that matter.

    Attributes:
        runner: the model.
        params: what is computed; its task is `embed`, or `token_classify` for BGE-M3.
        prompt: text put before every text.
        config: what is given.
        vocabulary: every token by its id.
        special_ids: tokens that stand for no text, which BGE-M3 gives no weight.
    """

    vocabulary: Sequence[str]
    special_ids: Sequence[int]

    @staticmethod
    def check(spec: ModelSpec, config: SparseConfig, given: PoolingParams | None = None) -> PoolingParams:
        """Return what every row asks for.

        Args:
            spec: what the model declares.
            config: what is given; nothing in it can contradict a model.
            given: what the user asks of the pooler.

        Raises:
            ConfigError: the model gives no weights for tokens, or is asked to leave out its activation.
        """
        del config
        if spec.kind != "sparse" and spec.bge_m3 is None:
            raise ConfigError(
                f"{spec.name} is a model of kind {spec.kind!r} and gives no weights for tokens",
                "SPLADE models and BGE-M3 do",
            )
        params = request(spec, "embed" if spec.kind == "sparse" else "token_classify", given)
        if params.use_activation is False:
            raise ConfigError(
                "weights of tokens cannot do without their activation", "leave out --no-activation"
            )
        return params

    @staticmethod
    def extras(runner: "PoolingRunner", params: PoolingParams, config: SparseConfig) -> dict[str, Any]:
        """Return the vocabulary of `runner`, as long as rows of `params` are; `config` changes nothing."""
        del config
        tokenizers = runner.tokenizers
        size = runner.result_size(params) if params.task == "embed" else tokenizers.num_tokens
        return {"vocabulary": tokenizers.vocabulary(size), "special_ids": tokenizers.special_ids}

    @property
    def columns(self) -> Sequence[ResultColumn]:
        """`sparse`: tokens with their weights, heaviest first."""
        fields = (ResultColumn("token", "str"), ResultColumn("weight", "float32"))
        return (ResultColumn("sparse", is_list=True, fields=fields),)

    @property
    def metadata(self) -> Mapping[str, str]:
        """What the runner says, and the prompt."""
        return self.runner.describe(self.params) | {"prompt": self.prompt}

    def tokenize(self, texts: Texts) -> TokenizedRows:
        """Tokenize the role `text`."""
        return self.runner.tokenizers.texts(self.prompt)(texts["text"])

    def compute(self, tokens: TokenizedRows, on_batch: OnBatch | None = None) -> Outcome:
        """Compute the weights of every row."""
        by_token = self.params.task == "token_classify"
        entries, failures = (self._of_tokens if by_token else self._of_rows)(tokens, on_batch)
        return Outcome(
            columns={"sparse": self._heaviest_first(entries, len(tokens.lengths))},
            num_tokens=tokens.lengths.astype(np.int32),
            truncated=tokens.truncated,
            failures=failures,
        )

    def _of_rows(
        self, tokens: TokenizedRows, on_batch: OnBatch | None
    ) -> tuple[Entries, dict[int, RowFailure]]:
        """Pool rows as wide as the vocabulary, few enough at a time, and drop the zeros."""
        num_rows = max(1, DENSE_BYTES // (4 * self.runner.result_size(self.params)))
        order = np.argsort(-tokens.lengths, kind="stable")
        parts, failures = [_no_entries()], {}
        for start in range(0, len(order), num_rows):
            rows = order[start : start + num_rows]
            pooled = self.runner.pool(tokens.take(rows), self.params, on_batch)
            failures.update({int(rows[row]): failure for row, failure in pooled.failures.items()})
            own, ids = np.nonzero(pooled.values)
            parts.append(Entries(rows[own], ids, pooled.values[own, ids]))
        return _joined(parts), failures

    def _of_tokens(
        self, tokens: TokenizedRows, on_batch: OnBatch | None
    ) -> tuple[Entries, dict[int, RowFailure]]:
        """Give each token of a text the largest weight of its occurrences; special tokens have none.

        Source:
            FlagEmbedding, `BGEM3FlagModel`: `_process_token_weights`.
        """
        pooled = self.runner.pool(tokens, self.params, on_batch)
        assert pooled.lengths is not None
        has = self.runner.has_output(tokens, self.params)
        rows = np.repeat(np.arange(len(tokens.lengths)), tokens.lengths)[has]
        ids = tokens.token_ids[has]
        usable = ~np.isin(rows, list(pooled.failures))
        rows, ids, weights = rows[usable], ids[usable], pooled.values[:, 0]
        wanted = (weights > 0) & ~np.isin(ids, self.special_ids)
        rows, ids, weights = rows[wanted], ids[wanted], weights[wanted]
        order = np.lexsort((-weights, ids, rows))
        rows, ids, weights = rows[order], ids[order], weights[order]
        is_first = np.ones(len(rows), np.bool_)
        is_first[1:] = (rows[1:] != rows[:-1]) | (ids[1:] != ids[:-1])
        return Entries(rows[is_first], ids[is_first], weights[is_first]), dict(pooled.failures)

    def _heaviest_first(self, entries: Entries, num_rows: int) -> Ragged:
        order = np.lexsort((entries.ids, -entries.weights, entries.rows))
        lengths = np.bincount(entries.rows, minlength=num_rows)
        if self.config.top_k is not None:
            places = np.arange(len(order)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
            order = order[places < self.config.top_k]
            lengths = np.minimum(lengths, self.config.top_k)
        names = [self.vocabulary[token_id] for token_id in entries.ids[order].tolist()]
        return Ragged(lengths, {"token": names, "weight": entries.weights[order]})


def _no_entries() -> Entries:
    return Entries(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.float32))


def _joined(parts: Sequence[Entries]) -> Entries:
    return Entries(
        np.concatenate([part.rows for part in parts]),
        np.concatenate([part.ids for part in parts]),
        np.concatenate([part.weights for part in parts]),
    )
