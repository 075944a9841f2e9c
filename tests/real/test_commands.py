"""The commands on real models give what the reference library gives for the same files."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from poolembed.cli import cli
from tests.real.conftest import TEXTS

pytestmark = pytest.mark.slow

transformers = pytest.importorskip("transformers")
library = pytest.importorskip("sentence_transformers")

# Vectors of length 1 and probabilities; raw numbers, as in the zoo.
UNIT, RAW = 2e-5, 1e-4

QUERIES = {"bread": "How do I bake bread at home?", "stars": "why are neutron stars so heavy"}
DOCUMENTS = {
    "knead": "Knead the dough for ten minutes, let it rise overnight, and bake it in a very hot oven.",
    "fox": "The quick brown fox jumps over the lazy dog near the river bank.",
    "star": "A neutron star is the collapsed core of a giant star, as dense as the nucleus of an atom.",
    "court": "The appeals court overturned the ruling.",
    "long": "Bread needs flour, water, salt and time. " * 100,
}
PEOPLE = [
    "My name is Angela Merkel and my mail is angela@example.com",
    "Call Bob Smith at 555-0199 in Zürich, or write to him: 12 Main Street, Springfield.",
    "Nobody is named here.",
]


@pytest.fixture
def run(real, tmp_path, monkeypatch):
    """Write rows, run a command on them with a real model, and return the rows of its output."""
    monkeypatch.chdir(tmp_path)

    def run(command, model, rows, *arguments):
        path = tmp_path / "input.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
        inputs = [] if "--candidates" in arguments else [str(path)]
        common = [
            "--model",
            str(real(model)),
            "--device",
            "cpu",
            "--batch-tokens",
            "512",
            "-o",
            "out.parquet",
        ]
        done = CliRunner().invoke(cli, [command, *inputs, *common, *arguments])
        assert done.exit_code == 0, done.output
        return pq.read_table("out.parquet").to_pylist()

    return run


def rows_of(texts):
    return [{"id": row, "text": text} for row, text in enumerate(texts)]


def test_score_gives_what_a_cross_encoder_predicts(run, real):
    pairs = [(query, document) for query in QUERIES.values() for document in (*DOCUMENTS.values(), "")]
    found = run(
        "score", "ms-marco-MiniLM-L12-v2", [{"query": query, "document": text} for query, text in pairs]
    )
    expected = library.CrossEncoder(str(real("ms-marco-MiniLM-L12-v2")), device="cpu").predict(pairs)
    np.testing.assert_allclose([row["score"] for row in found], expected, rtol=0, atol=RAW)


def test_rerank_gives_the_order_of_a_cross_encoder_from_files_that_it_joins(run, real, tmp_path):
    files = {
        "queries.jsonl": [{"qid": name, "text": text} for name, text in QUERIES.items()],
        "documents.jsonl": [{"docid": name, "text": text} for name, text in DOCUMENTS.items()],
        "candidates.jsonl": [{"qid": name, "documents": list(DOCUMENTS)} for name in QUERIES],
    }
    inputs = []
    for name, rows in files.items():
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
        inputs += [f"--{name.partition('.')[0]}", name]
    found = run("rerank", "ms-marco-MiniLM-L12-v2", [], *inputs, "--top-k", "3")
    reference = library.CrossEncoder(str(real("ms-marco-MiniLM-L12-v2")), device="cpu")
    for row, query in zip(found, QUERIES.values(), strict=True):
        expected = reference.rank(query, list(DOCUMENTS.values()), top_k=3)
        assert [one["index"] for one in row["ranking"]] == [one["corpus_id"] for one in expected]
        wanted = [one["score"] for one in expected]
        np.testing.assert_allclose([one["score"] for one in row["ranking"]], wanted, rtol=0, atol=RAW)
    assert [row["query_id"] for row in found] == list(QUERIES)
    assert found[1]["ranking"][0]["id"] == "star"


def test_classify_gives_what_a_pipeline_gives(run, real):
    found = run("classify", "movie-sentiment", rows_of(TEXTS))
    pipeline = transformers.pipeline(
        "text-classification", model=str(real("movie-sentiment")), device="cpu", top_k=None, truncation=True
    )
    for row, classes in zip(found, pipeline(list(TEXTS)), strict=True):
        assert row["label"] == max(classes, key=lambda one: one["score"])["label"]
        expected = {one["label"]: one["score"] for one in classes}
        wanted = [expected["negative"], expected["positive"]]
        np.testing.assert_allclose(row["probs"], wanted, rtol=0, atol=UNIT)


@pytest.mark.parametrize("aggregation", ["none", "simple", "first", "average", "max"])
def test_token_classify_finds_the_entities_of_a_pipeline(run, real, aggregation):
    found = run("token-classify", "rampart-pii-ner", rows_of(PEOPLE), "--aggregation", aggregation)
    folder = str(real("rampart-pii-ner"))
    pipeline = transformers.pipeline(
        "token-classification", model=folder, device="cpu", aggregation_strategy=aggregation
    )
    label = "entity" if aggregation == "none" else "entity_group"
    assert sum(len(row["entities"]) for row in found) > 5
    for row, expected in zip(found, pipeline(PEOPLE), strict=True):
        assert [(one["label"], one["start"], one["end"]) for one in row["entities"]] == [
            (one[label], one["start"], one["end"]) for one in expected
        ]
        scores = [one["score"] for one in row["entities"]]
        np.testing.assert_allclose(scores, [one["score"] for one in expected], rtol=0, atol=UNIT)


def test_sparse_gives_what_a_sparse_encoder_encodes(run, real):
    found = run("sparse", "splade-tiny", rows_of(TEXTS))
    reference = library.SparseEncoder(str(real("splade-tiny")), device="cpu")
    dense = reference.encode(list(TEXTS), convert_to_sparse_tensor=False).numpy()
    vocabulary = reference.tokenizer.get_vocab()
    for row, expected in zip(found, dense, strict=True):
        weights = np.zeros_like(expected)
        weights[[vocabulary[one["token"]] for one in row["sparse"]]] = [
            one["weight"] for one in row["sparse"]
        ]
        np.testing.assert_allclose(weights, expected, rtol=0, atol=UNIT)


def test_embed_gives_what_sentence_transformers_encodes(run, real):
    found = run("embed", "all-MiniLM-L6-v2", rows_of(TEXTS))
    reference = library.SentenceTransformer(str(real("all-MiniLM-L6-v2")), device="cpu")
    vectors = [row["embedding"] for row in found]
    np.testing.assert_allclose(vectors, reference.encode(list(TEXTS)), rtol=0, atol=UNIT)


def test_score_of_a_bi_encoder_is_the_similarity_of_its_vectors(run, real):
    pairs = [(query, document) for query in QUERIES.values() for document in DOCUMENTS.values()]
    found = run("score", "all-MiniLM-L6-v2", [{"query": query, "document": text} for query, text in pairs])
    reference = library.SentenceTransformer(str(real("all-MiniLM-L6-v2")), device="cpu")
    queries, documents = (reference.encode([pair[side] for pair in pairs]) for side in (0, 1))
    expected = reference.similarity_pairwise(queries, documents).numpy()
    np.testing.assert_allclose([row["score"] for row in found], expected, rtol=0, atol=UNIT)
