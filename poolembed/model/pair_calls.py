"""Scores, rankings and entities of texts that a Python program hands over."""

from collections.abc import Iterable, Iterator, Mapping, Sized
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from poolembed.config import EntityConfig, PairConfig, PoolerConfig
from poolembed.errors import ConfigError, InputError
from poolembed.model.calls import chunks_of, joined, outcomes_of
from poolembed.model.entities import check_entities, make_entities
from poolembed.model.operation import Outcome
from poolembed.model.per_text import Given, PerText
from poolembed.model.rerank import best_first
from poolembed.model.score import make_score
from poolembed.model.score_check import check_score
from poolembed.results import Ragged
from poolembed.runner import PoolingParams, PoolingRunner


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedDocument:
    """A document in a ranking.

    Attributes:
        index: its place among the documents as they were given, from 0.
        score: how well it fits the query; more is better.
        text: the document.
    """

    index: int
    score: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Entity:
    """Something that was found in a text.

    Attributes:
        label: what it is.
        score: probability of that, from 0 to 1.
        start: its first character.
        end: the character after its last.
        text: the characters between.
    """

    label: str
    score: float
    start: int
    end: int
    text: str


def score_texts(
    runner: PoolingRunner,
    data_1: str | Iterable[str],
    data_2: str | Iterable[str],
    config: PairConfig,
    given: Given = None,
) -> npt.NDArray[np.float32]:
    """Return the score of each pair: one text with each of several, or as many with as many.

    Args:
        runner: the model.
        data_1: queries; held as a whole.
        data_2: documents; a generator is computed chunk by chunk.
        config: limits and prompts.
        given: what the user asks of the pooler, for all pairs or for each.

    Returns:
        Shape (number of texts in `data_2`,), float32.

    Raises:
        ConfigError: the model scores no pairs, has no use for the configuration, a side is empty or has the
            wrong number of texts, or `given` has not as many records as there are pairs.
        InputError: a text is no string, or a pair has no score; its number is named.
    """
    check_score(runner.spec, config, PoolerConfig())
    operations = PerText(partial(make_score, runner, config), given)
    given_queries = [data_1] if isinstance(data_1, str) else data_1
    queries = [query for _, chunk in chunks_of(given_queries) for query in chunk]
    documents = [data_2] if isinstance(data_2, str) else data_2
    if isinstance(documents, Sized):
        _check_sizes(len(queries), len(documents))
    scores, num_documents = [], 0
    for first, chunk in chunks_of(documents):
        num_documents = first + len(chunk)
        its_own = queries * len(chunk) if len(queries) == 1 else queries[first:num_documents]
        _check_sizes(len(queries), len(queries) if len(its_own) == len(chunk) else num_documents)
        scores.append(np.zeros(len(chunk), np.float32))
        for operation, places in operations.groups(first, len(chunk)):
            pairs = {"query": [its_own[place] for place in places]}
            pairs["document"] = [chunk[place] for place in places]
            outcome = operation.compute(operation.tokenize(pairs))
            if outcome.failures:
                row = min(outcome.failures)
                raise InputError(f"pair {first + places[row]}: {outcome.failures[row].message}")
            scores[-1][places] = np.asarray(outcome.columns["score"], np.float32)
    _check_sizes(len(queries), num_documents)
    operations.check_count(num_documents)
    return joined(np.zeros(0, np.float32), scores)


def rank_texts(
    runner: PoolingRunner,
    query: str,
    documents: Iterable[str],
    config: PairConfig,
    top_k: int | None = None,
) -> list[RankedDocument]:
    """Return the documents, best first; of equal scores the one given first goes first.

    Args:
        runner: the model.
        query: what is looked for.
        documents: where.
        config: limits and prompts.
        top_k: give the best only; at least 1; None gives all.

    Raises:
        ConfigError: see `score_texts`; or `top_k` is below 1.
        InputError: see `score_texts`.
    """
    if top_k is not None and top_k < 1:
        raise ConfigError(f"top_k must be at least 1, got {top_k}")
    texts = list(documents)
    scores = score_texts(runner, query, texts, config)
    order = best_first(scores, np.zeros(len(texts), np.int64), top_k).tolist()
    return [RankedDocument(index=place, score=float(scores[place]), text=texts[place]) for place in order]


def entities_of(
    runner: PoolingRunner, texts: Iterable[str], config: EntityConfig, given: PoolingParams | None = None
) -> Iterator[list[Entity]]:
    """Yield the entities of each text, in the order in which they stand.

    Args:
        runner: the model.
        texts: the texts.
        config: how tokens become entities.
        given: what the user asks of the pooler.

    Raises:
        ConfigError: the model has no classes for tokens.
        InputError: a text is no string or has no result.
    """
    check_entities(runner.spec)
    for outcome in outcomes_of(make_entities(runner, config, given), texts):
        yield from _entities(outcome)


def _entities(outcome: Outcome) -> Iterator[list[Entity]]:
    column = cast(Ragged, outcome.columns["entities"])
    values = cast(Mapping[str, Any], column.values)
    columns = [np.asarray(values[name]).tolist() for name in ("label", "score", "start", "end")]
    found = [
        Entity(label=label, score=score, start=start, end=end, text=text)
        for label, score, start, end, text in zip(*columns, values["text"], strict=True)
    ]
    ends = np.cumsum(column.lengths).tolist()
    for end, size in zip(ends, column.lengths.tolist(), strict=True):
        yield found[end - size : end]


def _check_sizes(num_queries: int, num_documents: int) -> None:
    if not num_queries or not num_documents:
        raise ConfigError(
            f"a score needs a text on both sides, got {num_queries} and {num_documents}",
            "leave out the call where there is nothing to score",
        )
    if num_queries not in (1, num_documents):
        raise ConfigError(
            f"cannot pair {num_queries} texts with {num_documents}",
            "give one text and any number of texts, or the same number of both",
        )
