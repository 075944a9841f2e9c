"""Scores of pairs whose texts are encoded apart: similarity of vectors (bi-encoder), MaxSim."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from poolembed.model.operation import OnBatch, Operation, Outcome, Texts
from poolembed.model.progress import in_rows
from poolembed.results import ResultColumn
from poolembed.runner import (
    IntArray,
    Pairs,
    PooledRows,
    PoolingParams,
    PoolingRunner,
    RowFailure,
    TokenizedRows,
    joined,
)

# Numbers of pooled data that are held at once, 256 MB of them.
MAX_POOLED_NUMBERS = 64 * 2**20

Tokenize = Callable[[Sequence[str]], TokenizedRows]
Compare = Callable[[PooledRows, Pairs], npt.NDArray[np.float32]]


@dataclass(frozen=True, slots=True)
class TextPairs:
    """Some pairs and what they are made of.

    Attributes:
        texts: the tokens of each distinct text.
        pairs: which of them belong together.
    """

    texts: TokenizedRows
    pairs: Pairs


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedPairs(Operation):
    """Gives each pair a score that compares what its texts were encoded to, each text by itself.

    Attributes:
        runner: the model.
        params: what texts are encoded to.
        tokenize_queries: queries to tokens.
        tokenize_documents: documents to tokens; the same object where both are treated alike.
        compare: encoded texts and pairs of them to scores, shape (num_pairs,), float32.
        settings: what decides a score beside the texts and what the runner says.
    """

    runner: PoolingRunner
    params: PoolingParams
    tokenize_queries: Tokenize
    tokenize_documents: Tokenize
    compare: Compare
    settings: Mapping[str, str]

    @property
    def columns(self) -> Sequence[ResultColumn]:
        """`score`."""
        return (ResultColumn("score", "float32"),)

    @property
    def metadata(self) -> Mapping[str, str]:
        """What the runner says, and the settings."""
        return {**self.runner.describe(self.params), **self.settings}

    def tokenize(self, texts: Texts) -> tuple[TextPairs, ...]:
        """Tokenize each distinct text of the roles `query` and `document` once."""
        num_pairs = len(texts["query"])
        if self.tokenize_queries is self.tokenize_documents:
            distinct, numbers = _distinct([*texts["query"], *texts["document"]])
            tokens = self.tokenize_queries(distinct)
            pairs = Pairs(numbers[:num_pairs], numbers[num_pairs:])
        else:
            queries, query_of = _distinct(texts["query"])
            documents, document_of = _distinct(texts["document"])
            tokens = joined(self.tokenize_queries(queries), self.tokenize_documents(documents))
            pairs = Pairs(query_of, document_of + len(queries))
        return tuple(blocks_of(tokens, pairs, self._pooled_sizes(tokens)))

    def compute(self, tokens: tuple[TextPairs, ...], on_batch: OnBatch | None = None) -> Outcome:
        """Encode every text, and compare those of each pair.

        The tokens of a pair are those of both texts, whether or not another pair has the same text.
        """
        num_pairs = sum(len(block.pairs) for block in tokens)
        on_text = in_rows(on_batch, sum(len(block.texts.lengths) for block in tokens), num_pairs)
        scores = [np.zeros(0, np.float32)]
        failures: dict[int, RowFailure] = {}
        for block in tokens:
            pooled = self.runner.pool(block.texts, self.params, on_text)
            num_done = sum(map(len, scores))
            found = _failures(pooled, block.pairs)
            failures.update({num_done + pair: failure for pair, failure in found.items()})
            scores.append(self._compared(pooled, block.pairs, found))
        return Outcome(
            columns={"score": np.concatenate(scores)},
            num_tokens=_sums_of_pairs(tokens, lambda texts: texts.lengths).astype(np.int32),
            truncated=_sums_of_pairs(tokens, lambda texts: texts.truncated) > 0,
            failures=failures,
        )

    def _pooled_sizes(self, tokens: TokenizedRows) -> IntArray:
        size = self.runner.result_size(self.params)
        if self.params.task == "token_embed":
            return tokens.lengths * size
        return np.full(len(tokens.lengths), size)

    def _compared(
        self, pooled: PooledRows, pairs: Pairs, failed: Mapping[int, RowFailure]
    ) -> npt.NDArray[np.float32]:
        good = np.asarray([pair for pair in range(len(pairs)) if pair not in failed], np.int64)
        scores = np.zeros(len(pairs), np.float32)
        scores[good] = self.compare(pooled, Pairs(pairs.query_of[good], pairs.document_of[good]))
        return scores


def _distinct(texts: Sequence[str]) -> tuple[list[str], IntArray]:
    """Return the distinct texts in order, and the number among them of every text."""
    numbers: dict[str, int] = {}
    number_of = [numbers.setdefault(text, len(numbers)) for text in texts]
    return list(numbers), np.asarray(number_of, np.int64)


def blocks_of(
    texts: TokenizedRows, pairs: Pairs, pooled_sizes: IntArray, most: int = MAX_POOLED_NUMBERS
) -> Iterator[TextPairs]:
    """Cut pairs into neighbours whose texts may be encoded together.

    Args:
        texts: the tokens of every text.
        pairs: which of them belong together.
        pooled_sizes: numbers that each text is encoded to, shape (num_texts,), int64.
        most: numbers of a block; a pair over it is a block of its own.

    Yields:
        Blocks, each with the texts it needs and no other.
    """
    sizes = pooled_sizes.tolist()
    start, held, seen = 0, 0, set[int]()
    for pair, both in enumerate(zip(pairs.query_of.tolist(), pairs.document_of.tolist(), strict=True)):
        new = set(both) - seen
        if pair > start and held + sum(sizes[text] for text in new) > most:
            yield _block(texts, pairs, slice(start, pair))
            start, held, seen, new = pair, 0, set(), set(both)
        held += sum(sizes[text] for text in new)
        seen |= new
    if len(pairs):
        yield _block(texts, pairs, slice(start, len(pairs)))


def _block(texts: TokenizedRows, pairs: Pairs, wanted: slice) -> TextPairs:
    both = np.stack([pairs.query_of[wanted], pairs.document_of[wanted]])
    needed, numbers = np.unique(both, return_inverse=True)
    query_of, document_of = numbers.reshape(both.shape)
    return TextPairs(texts.take(needed), Pairs(query_of, document_of))


def _sums_of_pairs(
    blocks: Sequence[TextPairs], numbers_of: Callable[[TokenizedRows], npt.NDArray[np.generic]]
) -> IntArray:
    """Return the sum of a number of both texts of each pair, shape (num_pairs,)."""
    sums = [np.zeros(0, np.int64)]
    for block in blocks:
        numbers = numbers_of(block.texts).astype(np.int64)
        sums.append(numbers[block.pairs.query_of] + numbers[block.pairs.document_of])
    return np.concatenate(sums)


def _failures(pooled: PooledRows, pairs: Pairs) -> dict[int, RowFailure]:
    """Return the pairs that lack one of their texts, by number."""
    failures = dict(pooled.failures)
    if pooled.lengths is not None:
        for text in np.flatnonzero(pooled.lengths == 0).tolist():
            failures.setdefault(text, RowFailure("no_tokens", "every token of the text is left out"))
    found: dict[int, RowFailure] = {}
    for side, text_of in (("document", pairs.document_of), ("query", pairs.query_of)):
        for text, failure in failures.items():
            for pair in np.flatnonzero(text_of == text).tolist():
                found[pair] = RowFailure(failure.code, f"the {side}: {failure.message}")
    return found
