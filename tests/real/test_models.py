"""Real models give what their reference library gives."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.real.conftest import TEXTS

pytestmark = pytest.mark.slow

transformers = pytest.importorskip("transformers")
library = pytest.importorskip("sentence_transformers")

# Vectors of length 1 and probabilities; raw numbers, as in the zoo.
UNIT, RAW = 2e-5, 1e-4


def pooled(runner, task, texts=TEXTS):
    return runner.pool(runner.tokenizers.texts()(texts), runner.params(task))


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("all-MiniLM-L6-v2", "packed"),
        ("bge-small-en-v1.5", "packed"),
        ("paraphrase-MiniLM-L3-v2", "packed"),
        ("all-mpnet-base-v2", "packed"),
    ],
)
def test_embeddings_are_those_of_sentence_transformers(real, runner_of, name, path):
    runner = runner_of(name)
    reference = library.SentenceTransformer(str(real(name)), device="cpu")
    assert runner.check.path == path
    assert runner.spec.max_length == reference.max_seq_length
    expected = reference.encode(list(TEXTS))
    limit = UNIT if np.allclose(np.linalg.norm(expected, axis=1), 1, atol=1e-4) else RAW
    np.testing.assert_allclose(pooled(runner, "embed").values, expected, rtol=0, atol=limit)


PAIRS = [
    ("How many people live in Berlin?", "Berlin has a population of 3,520,031 registered inhabitants."),
    ("How many people live in Berlin?", "New York City is famous for the Metropolitan Museum of Art."),
    ("what is a cat", "The cat is a small carnivorous mammal, often kept as a pet."),
    ("what is a cat", ""),
    ("", "The cat is a small carnivorous mammal."),
    ("long " * 40, "document " * 700),
]


def test_a_cross_encoder_scores_as_sentence_transformers_does(real, runner_of):
    runner = runner_of("ms-marco-MiniLM-L12-v2")
    reference = library.CrossEncoder(str(real("ms-marco-MiniLM-L12-v2")), device="cpu")
    expected = reference.predict(PAIRS)
    tokens = runner.tokenizers.pairs()(*zip(*PAIRS, strict=True))
    scores = runner.pool(tokens, runner.params("classify")).values[:, 0]
    np.testing.assert_allclose(scores, expected, rtol=0, atol=RAW)


def test_a_cross_encoder_gives_known_scores(runner_of):
    runner = runner_of("ms-marco-MiniLM-L12-v2")
    query = "How many people live in Berlin?"
    documents = [
        "Berlin has a population of 3,520,031 registered inhabitants in an area of 891.82 square kilometers.",
        "New York City is famous for the Metropolitan Museum of Art.",
        "Berlin is well known for its museums.",
    ]
    tokens = runner.tokenizers.pairs()([query] * 3, documents)
    scores = runner.pool(tokens, runner.params("classify")).values[:, 0]
    assert scores.tolist() == pytest.approx([9.267, -11.187, -3.934], abs=1e-3)


@torch.no_grad()
def logits_of(real, kind, name):
    """Logits of each text alone, written out."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(real(name))
    model = getattr(transformers, kind).from_pretrained(real(name)).eval()
    return [
        model(**tokenizer(text, return_tensors="pt", truncation=True, max_length=512)).logits[0]
        for text in TEXTS
    ]


def test_a_classifier_gives_the_probabilities_of_transformers(real, runner_of):
    runner = runner_of("movie-sentiment")
    expected = torch.stack(logits_of(real, "AutoModelForSequenceClassification", "movie-sentiment")).softmax(
        dim=1
    )
    assert runner.spec.labels == ("negative", "positive")
    np.testing.assert_allclose(pooled(runner, "classify").values, expected.numpy(), rtol=0, atol=UNIT)


def test_a_token_classifier_gives_the_probabilities_of_transformers(real, runner_of):
    runner = runner_of("rampart-pii-ner")
    found = pooled(runner, "token_classify")
    expected = [
        row.softmax(dim=1) for row in logits_of(real, "AutoModelForTokenClassification", "rampart-pii-ner")
    ]
    assert found.lengths.tolist() == [len(row) for row in expected]
    np.testing.assert_allclose(found.values, torch.cat(expected).numpy(), rtol=0, atol=UNIT)


def test_a_token_classifier_finds_what_it_was_trained_for(runner_of):
    runner = runner_of("rampart-pii-ner")
    values = pooled(
        runner, "token_classify", ["My name is Angela Merkel and my mail is angela@example.com"]
    ).values
    found = {runner.spec.labels[index].partition("-")[2] for index in values.argmax(axis=1)}
    assert {"GIVEN_NAME", "SURNAME", "EMAIL"} <= found


def test_splade_gives_the_largest_saturated_logits(real, runner_of):
    runner = runner_of("splade-tiny")
    logits = logits_of(real, "AutoModelForMaskedLM", "splade-tiny")
    expected = torch.stack([row.relu().log1p().amax(dim=0) for row in logits])
    np.testing.assert_allclose(pooled(runner, "embed").values, expected.numpy(), rtol=0, atol=UNIT)


LONG = "The cat sat on the mat and looked at the dog. " * 30
SOME = [*TEXTS[:3], "a", LONG]


@pytest.fixture(scope="module")
def last_states(real):
    """Hidden state of the last token of each text, by transformers, one text at a time."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(real("SmolLM2-135M"))
    model = transformers.AutoModel.from_pretrained(real("SmolLM2-135M")).eval()
    with torch.no_grad():
        states = [model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0, -1] for text in SOME]
    return torch.stack(states)


def test_a_decoder_gives_the_vector_of_its_last_token(runner_of, last_states):
    runner = runner_of("SmolLM2-135M")
    assert runner.check.path == "packed"
    expected = torch.nn.functional.normalize(last_states, dim=1)
    np.testing.assert_allclose(pooled(runner, "embed", SOME).values, expected.numpy(), rtol=0, atol=UNIT)


def test_a_decoder_gives_the_same_when_its_long_rows_run_in_pieces(runner_of, last_states):
    runner = replace(runner_of("SmolLM2-135M"), batch_tokens=64)
    assert runner.tokenizers.texts()([LONG]).lengths[0] > 128
    expected = torch.nn.functional.normalize(last_states, dim=1)
    np.testing.assert_allclose(pooled(runner, "embed", SOME).values, expected.numpy(), rtol=0, atol=RAW)
