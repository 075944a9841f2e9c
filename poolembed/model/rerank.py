"""Queries with many documents each to rankings, by the scores of pairs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from poolembed.config import RerankConfig
from poolembed.model.operation import OnBatch, Operation, Outcome
from poolembed.model.progress import in_rows
from poolembed.results import Ragged, ResultColumn, Values
from poolembed.runner import IntArray, RowFailure

ListTexts = Mapping[str, Sequence[Any]]
"""Texts by role: `query` has a string a row, `documents` a list of (id, text)."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """Queries and their documents, tokenized as pairs.

    Attributes:
        documents: (id, text) of every document of each query.
        pairs: what the operation on pairs made of them, end to end.
    """

    documents: Sequence[Sequence[tuple[str, str]]]
    pairs: Any

    @property
    def counts(self) -> IntArray:
        """Documents of each query, shape (num_queries,), int64."""
        return np.asarray([len(documents) for documents in self.documents], np.int64)


@dataclass(frozen=True, slots=True)
class Rerank(Operation):
    """Ranks the documents of each query.

    Attributes:
        score: gives each pair its `score`.
        config: how much of a ranking is given.
    """

    score: Operation
    config: RerankConfig

    @property
    def columns(self) -> Sequence[ResultColumn]:
        """`ranking`: documents, best first; place in the row's list, id, score, and text on request."""
        fields = [ResultColumn("index", "int32"), ResultColumn("id", "str"), ResultColumn("score", "float32")]
        if self.config.texts:
            fields.append(ResultColumn("text", "str"))
        return (ResultColumn("ranking", is_list=True, fields=tuple(fields)),)

    @property
    def metadata(self) -> Mapping[str, str]:
        """What the operation on pairs says, how much of a ranking is given, and what the run is called."""
        top_k = "all" if self.config.top_k is None else str(self.config.top_k)
        tag = {} if self.config.run_tag is None else {"run_tag": self.config.run_tag}
        return {**self.score.metadata, "top_k": top_k, **tag}

    def tokenize(self, texts: ListTexts) -> Candidates:
        """Tokenize every document of the role `documents` with its `query`, all rows together."""
        documents = texts["documents"]
        queries = [query for query, its_own in zip(texts["query"], documents, strict=True) for _ in its_own]
        flat = [text for its_own in documents for _, text in its_own]
        return Candidates(documents, self.score.tokenize({"query": queries, "document": flat}))

    def compute(self, tokens: Candidates, on_batch: OnBatch | None = None) -> Outcome:
        """Score every pair, and sort; of equal scores the document that stands first goes first.

        The tokens of a row are those of its pairs.
        """
        counts = tokens.counts
        query_of = np.repeat(np.arange(len(counts)), counts)
        scored = self.score.compute(tokens.pairs, in_rows(on_batch, len(query_of), len(counts)))
        if on_batch is not None and not len(query_of):
            on_batch(len(counts), 0)
        scores = scored.columns["score"]
        assert isinstance(scores, np.ndarray)
        failures = _failures(scored.failures, query_of, np.cumsum(counts) - counts)
        wanted = ~np.isin(query_of, list(failures))
        order = best_first(scores[wanted], query_of[wanted], self.config.top_k)
        return Outcome(
            columns={"ranking": self._ranking(tokens, np.flatnonzero(wanted)[order], scores)},
            num_tokens=np.bincount(query_of, scored.num_tokens, len(counts)).astype(np.int32),
            truncated=np.bincount(query_of, scored.truncated, len(counts)) > 0,
            failures=failures,
        )

    def _ranking(self, tokens: Candidates, pairs: IntArray, scores: npt.NDArray[Any]) -> Ragged:
        """Return the ranking of each row, given its pairs in order."""
        counts = tokens.counts
        query_of = np.repeat(np.arange(len(counts)), counts)
        index = (np.arange(len(query_of)) - (np.cumsum(counts) - counts)[query_of])[pairs]
        chosen = [
            tokens.documents[query][place]
            for query, place in zip(query_of[pairs].tolist(), index.tolist(), strict=True)
        ]
        values: dict[str, Values] = {
            "index": index.astype(np.int32),
            "id": [name for name, _ in chosen],
            "score": scores[pairs],
        }
        if self.config.texts:
            values["text"] = [text for _, text in chosen]
        return Ragged(np.bincount(query_of[pairs], minlength=len(counts)), values)


def best_first(scores: npt.NDArray[Any], group_of: IntArray, top_k: int | None = None) -> IntArray:
    """Return the order of scores, best first in every group, groups in their order.

    Equal scores stay in the order in which they stand.

    Args:
        scores: any numbers, shape (num_scores,).
        group_of: group of each, shape (num_scores,), ascending.
        top_k: most of each group; None for all.
    """
    order = np.lexsort((-scores, group_of))
    if top_k is None:
        return order
    sizes = np.bincount(group_of) if len(group_of) else np.zeros(0, np.int64)
    rank = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return order[rank < top_k]


def _failures(
    failures: Mapping[int, RowFailure], query_of: IntArray, first_pair: IntArray
) -> dict[int, RowFailure]:
    """Return the queries of which some pair failed, each with its first failure."""
    found: dict[int, RowFailure] = {}
    for pair in sorted(failures, reverse=True):
        query = int(query_of[pair])
        place = pair - int(first_pair[query])
        found[query] = RowFailure(failures[pair].code, f"document {place}: {failures[pair].message}")
    return found
