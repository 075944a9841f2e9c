"""Scores, rankings and entities from Python: how many texts may meet how many, and what comes back."""

import numpy as np
import pytest

from poolembed import ModelConfig, PairConfig, PoolingModel, PoolingParams
from poolembed.errors import ConfigError, InputError
from poolembed.model import calls
from poolembed.model.pair_calls import score_texts
from tests.model.failing import FailingRunner


@pytest.fixture(scope="module")
def model_of(zoo):
    """Return a model of a family in memory."""
    made = {}

    def make(family):
        if family not in made:
            made[family] = PoolingModel(ModelConfig(model=str(zoo / "models" / family), device="cpu"))
        return made[family]

    return make


def test_one_text_meets_one_or_many_and_many_meet_as_many(model_of):
    model = model_of("bert-crossencoder-sigmoid")
    queries, documents = ["bread", "stars", "rivers"], ["dough", "light", "banks"]
    one = model.score("bread", "dough")
    assert (one.shape, one.dtype) == ((1,), np.float32)
    many = model.score("bread", documents)
    by_one = [model.score("bread", document)[0] for document in documents]
    np.testing.assert_allclose(many, by_one, atol=1e-6)
    paired = model.score(queries, documents)
    wanted = [model.score(query, document)[0] for query, document in zip(queries, documents, strict=True)]
    np.testing.assert_allclose(paired, wanted, atol=1e-6)
    np.testing.assert_allclose(model.score(["bread"], (text for text in documents)), many, atol=1e-6)


@pytest.mark.parametrize(
    ("data_1", "data_2", "message"),
    [
        (["a", "b"], ["c", "d", "e"], "cannot pair 2 texts with 3"),
        (["a", "b"], iter(["c"]), "cannot pair 2 texts with 1"),
        (["a", "b"], iter(["c", "d", "e"]), "cannot pair 2 texts with 3"),
        ([], ["a"], "a score needs a text on both sides, got 0 and 1"),
        ("a", [], "a score needs a text on both sides, got 1 and 0"),
        ("a", iter([]), "a score needs a text on both sides, got 1 and 0"),
    ],
)
def test_other_numbers_of_texts_are_refused(data_1, data_2, message, model_of):
    with pytest.raises(ConfigError, match=message):
        model_of("bert-mean").score(data_1, data_2)


def test_many_pairs_are_computed_in_chunks_of_texts(model_of):
    model = model_of("bert-mean")
    documents = [f"text {number % 7}" for number in range(calls.CHUNK_TEXTS + 3)]
    few = model.score("text 3", documents[:7])
    many = model.score("text 3", documents)
    assert many.shape == (len(documents),)
    np.testing.assert_allclose(many, few[np.arange(len(documents)) % 7], atol=1e-6)
    np.testing.assert_allclose(model.score(documents, documents), np.ones(len(documents)), atol=1e-6)


def test_a_text_that_is_no_string_is_told(model_of):
    with pytest.raises(InputError, match="text 1 is no string but int"):
        model_of("bert-mean").score("a", ["b", 3])
    with pytest.raises(InputError, match="text 0 is no string but NoneType"):
        model_of("bert-mean").score([None], ["b"])


def test_empty_texts_have_a_score_and_some_models_have_none(model_of):
    assert model_of("bert-colbert").score("", [""]).shape == (1,)
    with pytest.raises(ConfigError, match="has 3 labels, so it gives no single score"):
        model_of("bert-seqcls").score("a", "b")


def test_a_pair_that_failed_ends_the_call_with_its_number(model_of):
    model = model_of("bert-crossencoder")
    with pytest.raises(InputError, match="pair 0: the model gave numbers that are not finite"):
        score_texts(FailingRunner(model.runner), "a", ["b", "c"], PairConfig())


def test_raw_scores_may_be_asked_for(model_of):
    model = model_of("bert-crossencoder-sigmoid")
    raw = model.score("a", ["b"], PoolingParams(use_activation=False))
    np.testing.assert_allclose(1 / (1 + np.exp(-raw)), model.score("a", ["b"]), atol=1e-6)


def test_limits_of_pairs_are_checked(model_of):
    with pytest.raises(ConfigError, match="--max-query-tokens must be at least 1"):
        model_of("bert-crossencoder").score("a", "b", pairs=PairConfig(max_query_tokens=0))
    with pytest.raises(ConfigError, match="is for cross-encoders"):
        model_of("bert-mean").rerank("a", ["b"], pairs=PairConfig(max_query_tokens=3))


def test_a_ranking_is_the_scores_sorted(model_of):
    model = model_of("bert-mean")
    documents = ["stars are dense", "bread", "bake the bread", "bread"]
    ranking = model.rerank("bread", documents)
    scores = model.score("bread", documents)
    assert [one.index for one in ranking] == sorted(range(4), key=lambda place: -scores[place])
    assert [one.index for one in ranking][:2] == [1, 3]
    assert [one.text for one in ranking] == [documents[one.index] for one in ranking]
    assert [one.score for one in ranking] == [float(scores[one.index]) for one in ranking]
    assert model.rerank("bread", documents, top_k=1) == ranking[:1]
    with pytest.raises(ConfigError, match="top_k must be at least 1, got 0"):
        model.rerank("bread", documents, top_k=0)


def test_entities_come_text_by_text(model_of):
    text = "Angela Merkel was born in Hamburg"
    model = model_of("bert-tokencls")
    first, second, third = model.token_classify([text, "", text], aggregation="first")
    assert first == third
    assert second == []
    assert [entity.text for entity in first] == [text[entity.start : entity.end] for entity in first]
    assert all(0 < entity.score <= 1 for entity in first)
    assert model.token_classify([]) == []
    with pytest.raises(ConfigError, match="--aggregation must be one of"):
        model.token_classify([text], aggregation="best")
    with pytest.raises(ConfigError, match="cannot token_classify"):
        model_of("bert-mean").token_classify([text])
