"""Rankings are what sorting the scores of pairs gives."""

from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolembed.config import PairConfig, RerankConfig
from poolembed.model.operation import Outcome
from poolembed.model.rerank import Rerank, best_first
from poolembed.model.score import make_score
from poolembed.runner import RowFailure


def reranked(runner, queries, documents, on_batch=None, **config):
    """The rankings, as lists of dicts, and the outcome."""
    operation = Rerank(make_score(runner, PairConfig()), RerankConfig(**config))
    outcome = operation.compute(operation.tokenize({"query": queries, "documents": documents}), on_batch)
    column = outcome.columns["ranking"]
    names = [field.name for field in operation.columns[0].fields]
    assert list(column.values) == names
    ranked = [dict(zip(names, values, strict=True)) for values in zip(*column.values.values(), strict=True)]
    ends = np.cumsum(column.lengths)
    return [ranked[end - size : end] for end, size in zip(ends, column.lengths, strict=True)], outcome


DOCUMENTS = [
    [("a", "Knead the dough."), ("b", "Stars are dense."), ("c", "Bake the bread.")],
    [],
    [("0", "A river bank."), ("1", "Stars are dense.")],
]
QUERIES = ["how to bake bread", "nothing", "why are stars dense"]


@pytest.mark.parametrize("family", ["bert-mean", "bert-colbert", "bert-crossencoder", "qwen3-seqcls"])
def test_a_ranking_is_the_scores_of_the_pairs_sorted(family, runner_of):
    runner = runner_of(family)
    ours, outcome = reranked(runner, QUERIES, DOCUMENTS)
    score = make_score(runner, PairConfig())
    for query, documents, ranking in zip(QUERIES, DOCUMENTS, ours, strict=True):
        texts = {"query": [query] * len(documents), "document": [text for _, text in documents]}
        scored = score.compute(score.tokenize(texts)).columns["score"].tolist()
        wanted = sorted(range(len(documents)), key=lambda place, scored=scored: -scored[place])
        assert [one["index"] for one in ranking] == wanted
        assert [one["id"] for one in ranking] == [documents[place][0] for place in wanted]
        np.testing.assert_allclose(
            [one["score"] for one in ranking], [scored[place] for place in wanted], atol=1e-5
        )
    assert outcome.num_tokens[1] == 0
    assert outcome.failures == {}


def test_the_best_are_kept_with_their_texts(runner_of):
    [ranking, _, _], _ = reranked(runner_of("bert-mean"), QUERIES, DOCUMENTS, top_k=2, texts=True)
    assert len(ranking) == 2
    assert [dict(DOCUMENTS[0])[one["id"]] for one in ranking] == [one["text"] for one in ranking]


def test_documents_with_equal_scores_keep_their_order(runner_of):
    documents = [[(str(number), "the same text") for number in range(5)]]
    [ranking], _ = reranked(runner_of("bert-crossencoder"), ["a query"], documents, top_k=3)
    assert [one["index"] for one in ranking] == [0, 1, 2]


def test_a_query_is_encoded_once_for_all_its_documents(runner_of):
    runner = runner_of("bert-mean")
    counted = []
    reranked(runner, QUERIES, DOCUMENTS, lambda rows, tokens: counted.append((rows, tokens)))
    texts = [QUERIES[0], QUERIES[2], *{text for its_own in DOCUMENTS for _, text in its_own}]
    assert sum(tokens for _, tokens in counted) == runner.tokenizers.texts()(texts).lengths.sum()
    assert sum(rows for rows, _ in counted) == len(QUERIES)


def test_rows_without_documents_are_told_as_done(runner_of):
    told = []
    ours, _ = reranked(runner_of("bert-mean"), ["a", "b"], [[], []], lambda *batch: told.append(batch))
    assert ours == [[], []]
    assert sum(rows for rows, _ in told) == 2


class FailingScore:
    """Scores every pair 1, but those of the document `bad`, which fail."""

    columns = ()
    metadata: ClassVar = {}

    def tokenize(self, texts):
        return texts["document"]

    def compute(self, tokens, on_batch=None):
        del on_batch
        return Outcome(
            columns={"score": np.ones(len(tokens), np.float32)},
            num_tokens=np.ones(len(tokens), np.int32),
            truncated=np.zeros(len(tokens), np.bool_),
            failures={
                pair: RowFailure("no_tokens", "the text has no tokens")
                for pair, text in enumerate(tokens)
                if text == "bad"
            },
        )


def test_a_document_without_a_score_fails_its_row_and_no_other():
    documents = [[("0", "good")], [("0", "good"), ("1", "bad"), ("2", "bad")], [("0", "good")]]
    operation = Rerank(FailingScore(), RerankConfig())
    outcome = operation.compute(operation.tokenize({"query": ["a", "b", "c"], "documents": documents}))
    assert {row: failure.message for row, failure in outcome.failures.items()} == {
        1: "document 1: the text has no tokens"
    }
    assert outcome.columns["ranking"].lengths.tolist() == [1, 0, 1]


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), max_size=20),
    st.one_of(st.none(), st.integers(1, 4)),
)
def test_best_first_is_a_stable_sort_in_every_group(pairs, top_k):
    pairs = sorted(pairs, key=lambda pair: pair[0])
    groups = np.asarray([group for group, _ in pairs], np.int64)
    scores = np.asarray([score for _, score in pairs], np.float32)
    wanted = []
    for group in range(4):
        places = [place for place, (owner, _) in enumerate(pairs) if owner == group]
        wanted += sorted(places, key=lambda place: -pairs[place][1])[:top_k]
    assert best_first(scores, groups, top_k).tolist() == wanted


def test_bad_values_are_all_told():
    assert RerankConfig(top_k=0, max_query_tokens=0).check() == [
        "--max-query-tokens must be at least 1, got 0",
        "--top-k must be at least 1, got 0",
    ]


def test_the_metadata_tell_how_documents_were_ranked(runner_of):
    score = make_score(runner_of("bert-mean"), PairConfig())
    assert Rerank(score, RerankConfig()).metadata["top_k"] == "all"
    assert Rerank(score, RerankConfig(top_k=3)).metadata == {**score.metadata, "top_k": "3"}
