"""What becomes of long texts, against windows that transformers computes one by one."""

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoTokenizer

from poolembed import LongTextConfig
from poolembed.config import EmbedConfig
from poolembed.errors import ConfigError, InputError
from poolembed.model.embed import Embed
from poolembed.model.long_text import window_means

TEXT = " ".join(f"word {number} of a long text" for number in range(120))
WINDOWS = LongTextConfig(on_long="windows", overlap_tokens=7)


@pytest.fixture(scope="module")
def by_hand(models):
    """The vector of TEXT by the definition: windows of the tokenizer, one forward each, a weighted mean."""
    tokenizer = AutoTokenizer.from_pretrained(models / "bert-mean")
    model = AutoModel.from_pretrained(models / "bert-mean").eval()
    encoded = tokenizer(TEXT, truncation=True, max_length=256, stride=7, return_overflowing_tokens=True)
    total, weight = np.zeros(64), 0
    for ids in encoded["input_ids"]:
        with torch.no_grad():
            vector = model(torch.tensor([ids])).last_hidden_state[0].double().mean(0).numpy()
        total += vector / np.linalg.norm(vector) * (len(ids) - 2)
        weight += len(ids) - 2
    assert len(encoded["input_ids"]) > 2
    mean = total / weight
    return mean / np.linalg.norm(mean)


def test_windows_give_the_weighted_mean_of_their_vectors_normalised_again(by_hand, model_of):
    vectors = model_of("bert-mean").embed(["short", TEXT, ""], long_texts=WINDOWS)
    np.testing.assert_allclose(vectors[1], by_hand, rtol=0, atol=1e-5)


def test_a_text_that_fits_gives_the_same_with_windows_as_without(model_of):
    texts = ["short", "", "a bit longer than that"]
    windows = model_of("bert-mean").embed(texts, long_texts=WINDOWS)
    np.testing.assert_allclose(windows, model_of("bert-mean").embed(texts), rtol=0, atol=1e-6)


def test_probabilities_of_windows_add_up_to_one(model_of):
    [found] = model_of("bert-seqcls").classify([TEXT * 3], long_texts=WINDOWS)
    assert found.probs.sum() == pytest.approx(1, abs=1e-6)
    [cut] = model_of("bert-seqcls").classify([TEXT * 3])
    assert not np.allclose(found.probs, cut.probs, atol=1e-3)


def test_an_error_names_the_text_that_is_too_long(model_of):
    with pytest.raises(InputError, match="text 1: the text has more than 256 tokens"):
        model_of("bert-mean").embed(["short", TEXT], long_texts=LongTextConfig(on_long="error"))


def test_texts_that_are_too_long_are_not_computed(model_of):
    operation = Embed.of(model_of("bert-mean").runner, "", EmbedConfig(on_long="error"))
    done = []
    outcome = operation.compute(
        operation.tokenize({"text": [TEXT, "one", TEXT]}), lambda rows, tokens: done.append((rows, tokens))
    )
    assert sorted(outcome.failures) == [0, 2]
    assert sum(rows for rows, _ in done) == 3
    assert sum(tokens for _, tokens in done) == outcome.num_tokens[1] == 3
    expected = model_of("bert-mean").embed(["one"])
    np.testing.assert_allclose(outcome.columns["embedding"][1:2], expected, rtol=0, atol=1e-6)


def test_rows_of_windows_are_for_files(model_of):
    rows = LongTextConfig(on_long="window-rows")
    with pytest.raises(ConfigError, match="is for files"):
        model_of("bert-mean").embed(["short"], long_texts=rows)
    with pytest.raises(ConfigError, match="is for files"):
        model_of("bert-seqcls").classify(["short"], long_texts=rows)


@pytest.mark.parametrize(
    "config",
    [LongTextConfig(on_long="cut"), LongTextConfig(overlap_tokens=3), LongTextConfig(overlap_tokens=-1)],
)
def test_a_policy_that_contradicts_itself_is_refused(config, model_of):
    with pytest.raises(ConfigError, match=r"--on-long|--overlap-tokens"):
        model_of("bert-mean").embed(["short"], long_texts=config)


def test_means_are_those_of_a_loop():
    generator = np.random.default_rng(5)
    counts, weights = np.asarray([1, 3, 2]), np.asarray([0, 4, 4, 1, 7, 2])
    values = generator.normal(size=(6, 5)).astype(np.float32)
    expected = [
        values[0],
        (values[1] * 4.0 + values[2] * 4.0 + values[3]) / 9.0,
        (values[4] * 7.0 + values[5] * 2.0) / 9.0,
    ]
    np.testing.assert_allclose(window_means(values, counts, weights), expected, rtol=1e-6)
