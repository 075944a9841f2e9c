"""Texts to entities: what a model of token classes finds, with its place in the text."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from poolembed.config import EntityConfig
from poolembed.errors import ConfigError
from poolembed.model.entity_groups import Units, find_entities
from poolembed.model.operation import OnBatch, Operation, Outcome, Texts
from poolembed.model.progress import in_rows
from poolembed.results import Ragged, ResultColumn
from poolembed.runner import (
    IntArray,
    LocatedTokens,
    LocatingTokenizer,
    ModelSpec,
    PooledRows,
    PoolingParams,
    RowFailure,
    request,
)

if TYPE_CHECKING:
    from poolembed.runner import PoolingRunner

# Probabilities that are held at once, 128 MB of them.
MAX_PROBABILITIES = 32 * 2**20

FIELDS = (
    ResultColumn("label", "str"),
    ResultColumn("score", "float32"),
    ResultColumn("start", "int32"),
    ResultColumn("end", "int32"),
    ResultColumn("text", "str"),
)


@dataclass(frozen=True, slots=True)
class LocatedTexts:
    """Texts with their tokens.

    Attributes:
        texts: the texts.
        tokens: their tokens.
    """

    texts: Sequence[str]
    tokens: LocatedTokens


@dataclass(frozen=True, slots=True)
class Entities(Operation):
    """Finds the entities of each text.

    Attributes:
        runner: the model.
        params: what is computed; its task is `token_classify`.
        config: how tokens become entities.
        tokenizer: texts to tokens.
    """

    runner: "PoolingRunner"
    params: PoolingParams
    config: EntityConfig
    tokenizer: LocatingTokenizer

    @property
    def columns(self) -> Sequence[ResultColumn]:
        """`entities`: label, score, first character, the one after the last, and the text between."""
        return (ResultColumn("entities", is_list=True, fields=FIELDS),)

    @property
    def metadata(self) -> Mapping[str, str]:
        """What the runner says, and how tokens become entities."""
        return {
            **self.runner.describe(self.params),
            "aggregation": self.config.aggregation,
            "overlap_tokens": str(self.tokenizer.overlap_tokens),
        }

    def tokenize(self, texts: Texts) -> LocatedTexts:
        """Tokenize the role `text`."""
        return LocatedTexts(texts["text"], self.tokenizer(texts["text"]))

    def compute(self, tokens: LocatedTexts, on_batch: OnBatch | None = None) -> Outcome:
        """Classify every token, and find the entities."""
        located = tokens.tokens
        on_window = in_rows(on_batch, len(located.windows.lengths), len(tokens.texts))
        failures: dict[int, RowFailure] = {}
        found: list[tuple[Units, list[str]]] = []
        for first, stop in blocks_of(located.num_tokens, len(self.runner.spec.labels)):
            windows = np.arange(located.num_windows[:first].sum(), located.num_windows[:stop].sum())
            pooled = self.runner.pool(located.windows.take(windows), self.params, on_window)
            window_of = np.repeat(np.arange(first, stop), located.num_windows[first:stop])
            for window in sorted(pooled.failures, reverse=True):
                failures[int(window_of[window])] = pooled.failures[window]
            found.append(self._found(located, pooled, window_of, set(failures)))
        window_text = np.repeat(np.arange(len(tokens.texts)), located.num_windows)
        num_tokens = np.bincount(window_text, located.windows.lengths, minlength=len(tokens.texts))
        return Outcome(
            columns={"entities": _column(tokens.texts, found)},
            num_tokens=num_tokens.astype(np.int32),
            truncated=np.zeros(len(tokens.texts), np.bool_),
            failures=failures,
        )

    def _found(
        self, located: LocatedTokens, pooled: PooledRows, window_of: IntArray, failed: set[int]
    ) -> tuple[Units, list[str]]:
        """Return the entities of a block of texts, of which some may have failed."""
        assert pooled.lengths is not None
        text_of = np.repeat(np.arange(len(located.num_tokens)), located.num_tokens)
        texts = np.asarray(sorted(set(window_of.tolist()) - failed), np.int64)
        wanted = np.isin(text_of, texts)
        has_values = np.isin(np.repeat(window_of, pooled.lengths), texts)
        tokens = Units(
            text_of=text_of[wanted],
            starts=located.spans[wanted, 0],
            ends=located.spans[wanted, 1],
            scores=pooled.values[has_values],
        )
        return find_entities(
            tokens, located.continues[wanted], self.runner.spec.labels, self.config.aggregation
        )


def make_entities(
    runner: "PoolingRunner", config: EntityConfig, given: PoolingParams | None = None
) -> Entities:
    """Return the operation that finds entities with a model.

    Args:
        runner: the model; it passed `check_entities`.
        config: how tokens become entities.
        given: what the user asks of the pooler.

    Raises:
        ConfigError: windows have no room for their overlap.
    """
    tokenizer = runner.tokenizers.located(config.overlap_tokens)
    return Entities(runner, runner.params("token_classify", given), config, tokenizer)


def check_entities(spec: ModelSpec) -> None:
    """See that a model gives classes to tokens; needs no weights.

    Raises:
        ConfigError: it does not.
    """
    request(spec, "token_classify")
    if spec.kind not in ("token-classifier", "classifier"):
        raise ConfigError(
            f"{spec.name} is a model of kind {spec.kind!r}, whose tokens have no classes",
            "token-classify takes token classifiers, such as models of named entities",
        )


def blocks_of(
    num_tokens: IntArray, num_labels: int, most: int = MAX_PROBABILITIES
) -> Iterator[tuple[int, int]]:
    """Cut texts into ranges whose tokens may be classified together.

    Args:
        num_tokens: tokens of each text, shape (num_texts,), int64.
        num_labels: classes of a token.
        most: probabilities of a range; a text over it is a range of its own.

    Yields:
        First text of a range, and the first that is no more in it.
    """
    start, held = 0, 0
    for text, size in enumerate((num_tokens * num_labels).tolist()):
        if text > start and held + size > most:
            yield start, text
            start, held = text, 0
        held += size
    if len(num_tokens):
        yield start, len(num_tokens)


def _column(texts: Sequence[str], found: Sequence[tuple[Units, list[str]]]) -> Ragged:
    entities = [units for units, _ in found]
    text_of = np.concatenate([np.zeros(0, np.int64), *(units.text_of for units in entities)])
    starts = np.concatenate([np.zeros(0, np.int64), *(units.starts for units in entities)])
    ends = np.concatenate([np.zeros(0, np.int64), *(units.ends for units in entities)])
    places = zip(text_of.tolist(), starts.tolist(), ends.tolist(), strict=True)
    return Ragged(
        lengths=np.bincount(text_of, minlength=len(texts)),
        values={
            "label": [name for _, names in found for name in names],
            "score": np.concatenate([np.zeros(0, np.float32), *(units.scores for units in entities)]),
            "start": starts.astype(np.int32),
            "end": ends.astype(np.int32),
            "text": [texts[text][start:end] for text, start, end in places],
        },
    )
