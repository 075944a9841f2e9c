"""Parameters for each text: what a text asks for is what it gets, wherever it stands."""

import numpy as np
import pytest

from poolembed import LateChunkingParams, PoolingParams
from poolembed.config import ClassifyConfig
from poolembed.errors import ConfigError, InputError
from poolembed.model.classify import Classify
from poolembed.model.per_text import results_of
from poolembed.model.records import column_of

TEXTS = ["one", "two words", "", "three words, all of them long", "one"]
RAW, CUT, WHOLE = PoolingParams(use_activation=False), PoolingParams(dimensions=32), PoolingParams()
GROUPS = PoolingParams(late_chunking_params=LateChunkingParams(2))

# Batches of other texts change float32 sums; logits of these models go up to about 10.
SAME = {"rtol": 0, "atol": 2e-5}


def each_alone(call, texts, params):
    """What a call gives for every text by itself, with its own parameters for all texts."""
    return [call([text], one)[0] for text, one in zip(texts, params, strict=True)]


@pytest.mark.parametrize(
    ("family", "method", "params"),
    [
        ("bert-dense-matryoshka", "embed", [CUT, WHOLE, RAW, CUT, WHOLE]),
        (
            "bert-mean",
            "token_embed",
            [RAW, GROUPS, WHOLE] * 2,
        ),
        ("qwen2-rm", "reward", [RAW, PoolingParams(use_activation=True)] * 3),
        ("bert-splade", "sparse", [WHOLE] * 5),
    ],
)
def test_every_text_gets_what_it_asks_for(family, method, params, model_of):
    texts = TEXTS if family != "qwen2-rm" else [text or "four" for text in TEXTS]
    params = params[: len(texts)]

    def call(texts, given):
        return getattr(model_of(family), method)(texts, pooling_params=given)

    found, wanted = call(iter(texts), params), each_alone(call, texts, params)
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        if isinstance(other, dict):
            assert one.keys() == other.keys()
            one, other = list(one.values()), [other[token] for token in one]
        np.testing.assert_allclose(one, other, **SAME)


def test_classes_and_pooled_data_are_asked_for_one_by_one(model_of):
    model, params = model_of("bert-seqcls"), [RAW, WHOLE, RAW, WHOLE, WHOLE]
    found = model.classify(TEXTS, params)
    for one, other in zip(found, each_alone(model.classify, TEXTS, params), strict=True):
        assert one.label == other.label
        np.testing.assert_allclose(one.probs, other.probs, **SAME)
    pooled = model.encode(TEXTS, "classify", params)
    assert isinstance(pooled, list)
    np.testing.assert_allclose(pooled, [one.probs for one in found], **SAME)


def test_pairs_are_asked_for_one_by_one(model_of):
    model, documents = model_of("bert-crossencoder-sigmoid"), ["dough", "light", "banks"]
    params = [RAW, WHOLE, RAW]
    found = model.score("bread", documents, params)
    wanted = [model.score("bread", text, one)[0] for text, one in zip(documents, params, strict=True)]
    np.testing.assert_allclose(found, wanted, **SAME)
    with pytest.raises(ConfigError, match="pooling_params has 2 records for at least 3 texts"):
        model.score("bread", documents, params[:2])
    with pytest.raises(ConfigError, match="pooling_params has 3 records for 2 texts"):
        model.score("bread", documents[:2], params)


@pytest.mark.parametrize("num_params", [0, 4, 6])
def test_as_many_records_as_texts_are_needed(num_params, model_of):
    with pytest.raises(ConfigError, match=f"pooling_params has {num_params} records for (at least )?5 texts"):
        model_of("bert-mean").embed(TEXTS, [WHOLE] * num_params)


def test_no_texts_with_no_records_give_no_results(model_of):
    assert model_of("bert-mean").embed([], []) == []


def test_what_one_text_asks_for_in_vain_is_said_before_any_is_computed(model_of):
    def texts():
        raise AssertionError("a text was read")
        yield

    with pytest.raises(ConfigError, match="no matryoshka dimensions"):
        model_of("bert-mean").embed(texts(), [WHOLE, CUT])


def test_the_text_that_fails_is_named_by_its_place_in_the_call(model_of):
    runner = model_of("gpt2-seqcls").runner

    def make(given):
        return Classify.of(runner, "", ClassifyConfig(), given)

    with pytest.raises(InputError, match="text 3: the text has no tokens"):
        results_of(
            make, column_of("score"), ["a", "b", "c", "", "d"], [RAW, WHOLE, RAW, WHOLE, RAW], max_texts=2
        )
