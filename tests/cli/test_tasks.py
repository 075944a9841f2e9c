"""The commands that read one text a row: their columns, their options, and what they refuse."""

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from poolembed import PoolingModel
from tests.cli.conftest import ROWS, table_of, vectors, write

TEXTS = [row["text"] for row in ROWS]


@pytest.fixture
def run(poolembed, corpus, models):
    """Run a command on the corpus with a family of the zoo."""

    def call(command, family, *arguments, path=corpus):
        common = ("--model", models / family, "--batch-tokens", "512", "--overwrite")
        return poolembed(command, path, *common, *arguments)

    return call


def columns_of(table):
    known = {*ROWS[0], "num_tokens", "truncated"}
    return {field.name: str(field.type) for field in table.schema if field.name not in known}


@pytest.mark.parametrize(
    ("command", "family", "arguments", "columns"),
    [
        ("embed", "bert-mean", (), {"embedding": "fixed_size_list<element: float>[64]"}),
        (
            "embed",
            "bert-mean",
            ("--on-long", "windows"),
            {"embedding": "fixed_size_list<element: float>[64]", "num_windows": "int32"},
        ),
        (
            "classify",
            "bert-seqcls",
            (),
            {"label": "string", "score": "float", "probs": "fixed_size_list<element: float>[3]"},
        ),
        (
            "classify",
            "bert-seqcls",
            ("--no-activation",),
            {"label": "string", "score": "float", "logits": "fixed_size_list<element: float>[3]"},
        ),
        (
            "classify",
            "bert-seqcls-multilabel",
            ("--top-k", "2"),
            {
                "label": "string",
                "score": "float",
                "labels": "large_list<element: string>",
                "top": "large_list<element: struct<label: string not null, score: float not null>>",
            },
        ),
        ("classify", "bert-seqcls-regression", (), {"values": "fixed_size_list<element: float>[1]"}),
        (
            "token-embed",
            "bert-mean",
            ("--tokens", "--offsets"),
            {
                "embeddings": "large_list<element: fixed_size_list<element: float>[64]>",
                "tokens": "large_list<element: string>",
                "offsets": "large_list<element: struct<start: int32 not null, end: int32 not null>>",
            },
        ),
        (
            "sparse",
            "bert-splade",
            ("--top-k", "3"),
            {"sparse": "large_list<element: struct<token: string not null, weight: float not null>>"},
        ),
        ("reward", "qwen2-rm", ("--limit", "2"), {"reward": "float"}),
        ("reward", "qwen2-prm", ("--limit", "2"), {"rewards": "large_list<element: float>"}),
        (
            "reward",
            "qwen2-prm",
            ("--limit", "2", "--no-activation"),
            {"rewards": "large_list<element: fixed_size_list<element: float>[2]>"},
        ),
    ],
)
def test_a_command_adds_these_columns(run, command, family, arguments, columns):
    table = table_of(run(command, family, *arguments), f"corpus.{command}.parquet")
    assert columns_of(table) == columns
    assert table["id"].to_pylist() == [row["id"] for row in ROWS][: table.num_rows]


def test_classes_are_those_of_the_python_call_and_labels_are_in_the_metadata(run, models):
    table = table_of(
        run("classify", "bert-seqcls-multilabel", "--threshold", "0.2"), "corpus.classify.parquet"
    )
    found = PoolingModel(str(models / "bert-seqcls-multilabel")).classify(TEXTS, threshold=0.2)
    assert table["label"].to_pylist() == [one.label for one in found]
    assert table["labels"].to_pylist() == [list(one.labels) for one in found]
    assert any(one.labels for one in found)
    np.testing.assert_allclose(table["probs"].to_pylist(), [one.probs for one in found], atol=1e-6)
    metadata = table.schema.metadata
    assert json.loads(metadata[b"poolembed.labels"]) == ["toxic", "obscene", "threat", "insult"]
    assert metadata[b"poolembed.threshold"] == b"0.2"


def test_the_best_classes_come_best_first(run):
    whole = table_of(run("classify", "bert-seqcls"), "corpus.classify.parquet")
    table = table_of(run("classify", "bert-seqcls", "--top-k", "2"), "corpus.classify.parquet")
    labels = json.loads(table.schema.metadata[b"poolembed.labels"])
    for probs, top in zip(whole["probs"].to_pylist(), table["top"].to_pylist(), strict=True):
        best = sorted(zip(probs, labels, strict=True), reverse=True)[:2]
        assert [(one["score"], one["label"]) for one in top] == best


def test_tokens_of_a_sparse_row_come_heaviest_first_and_none_is_zero(run):
    whole = table_of(run("sparse", "bert-splade"), "corpus.sparse.parquet")["sparse"].to_pylist()
    few = table_of(run("sparse", "bert-splade", "--top-k", "3"), "corpus.sparse.parquet")[
        "sparse"
    ].to_pylist()
    for row, heaviest in zip(whole, few, strict=True):
        weights = [one["weight"] for one in row]
        assert weights == sorted(weights, reverse=True)
        assert weights[-1] > 0
        assert heaviest == row[:3]


def test_a_template_joins_columns(run, models):
    table = table_of(run("embed", "bert-mean", "--template", r"{title}\n{text}"))
    joined = [f"{row['title']}\n{row['text']}" for row in ROWS]
    expected = PoolingModel(str(models / "bert-mean")).embed(joined)
    np.testing.assert_allclose(vectors(table), expected, rtol=0, atol=1e-6)
    assert table.schema.metadata[b"poolembed.template"] == rb"{title}\n{text}"


def test_a_column_of_a_template_that_is_null_or_missing_is_named(run, folder):
    rows = [{"title": "a", "text": "b"}, {"title": None, "text": "c"}]
    path = write(folder / "gaps.jsonl", rows)
    done = run("embed", "bert-mean", "--template", "{title} {text}", path=path)
    assert (done.exit_code, "gaps.jsonl:2" in done.stderr, "title" in done.stderr) == (3, True, True)
    done = run("embed", "bert-mean", "--template", "{titel} {text}", path=path)
    assert done.exit_code == 3
    assert "no column is named 'titel'\n  did you mean 'title'?" in done.stderr


def test_bytes_of_two_runs_agree_when_they_share_their_bounds(run, folder):
    first = table_of(
        run("embed", "bert-mean", "--output-dtype", "int8", "-o", "first.parquet"), "first.parquet"
    )
    half = write(folder / "half.jsonl", ROWS[2:])
    own = table_of(run("embed", "bert-mean", "--output-dtype", "int8", path=half), "half.embed.parquet")
    shared = run("embed", "bert-mean", "--output-dtype", "int8", "--ranges-from", "first.parquet", path=half)
    shared = table_of(shared, "half.embed.parquet")
    assert str(first.schema.field("embedding").type) == "fixed_size_list<element: int8>[64]"
    np.testing.assert_array_equal(vectors(shared), vectors(first)[2:])
    assert not np.array_equal(vectors(own), vectors(first)[2:])
    assert shared.schema.metadata[b"poolembed.ranges"] == first.schema.metadata[b"poolembed.ranges"]


def test_bounds_do_not_depend_on_the_size_of_chunks(run):
    ranges = {
        table_of(run("embed", "bert-mean", "--output-dtype", "uint8", "--chunk-rows", size)).schema.metadata[
            b"poolembed.ranges"
        ]
        for size in ("1", "3", "8192")
    }
    assert len(ranges) == 1


def test_bounds_of_other_vectors_are_refused(run):
    table_of(run("embed", "bert-cls", "--output-dtype", "int8", "-o", "other.parquet"), "other.parquet")
    table_of(run("embed", "bert-mean", "-o", "floats.parquet"), "floats.parquet")
    for file, words in (("other.parquet", "are of other vectors"), ("floats.parquet", "has no bounds")):
        done = run("embed", "bert-mean", "--output-dtype", "int8", "--ranges-from", file)
        assert (done.exit_code, words in done.stderr) == (2, True), done.stderr
    done = run("embed", "bert-mean", "--output-dtype", "int8", "--ranges-from", "corpus.jsonl")
    assert (done.exit_code, "cannot be read as an output of poolembed" in done.stderr) == (3, True)


def test_an_input_without_rows_gives_a_typed_output(run, folder):
    empty = write(folder / "empty.jsonl", [])
    table = table_of(run("embed", "bert-mean", "--output-dtype", "int8", path=empty), "empty.embed.parquet")
    assert (table.num_rows, columns_of(table)) == (0, {"embedding": "fixed_size_list<element: int8>[64]"})


def test_long_rows_can_be_refused(run):
    limits = ("--max-length", "8", "--on-long", "error")
    done = run("embed", "bert-mean", *limits)
    assert done.exit_code == 3
    assert "corpus.jsonl:1: the text has more than 8 tokens, the maximum length" in done.stderr
    table = table_of(run("embed", "bert-mean", *limits, "--on-error", "skip"))
    assert table["id"].to_pylist() == [3]
    rejects = Path("corpus.embed.parquet.rejects.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line)["code"] for line in rejects] == ["too_long"] * 3


def test_windows_count_all_their_tokens_and_truncate_nothing(run):
    table = table_of(run("embed", "bert-mean", "--max-length", "8", "--on-long", "windows"))
    assert table["truncated"].to_pylist() == [False] * 4
    assert table["num_windows"][2].as_py() == 1
    assert all(n > 1 for n in table["num_windows"].to_pylist()[:2])


REFUSED = [
    ("classify", "bert-mean", (), "is a model of kind 'embedding' and cannot classify"),
    ("classify", "bert-mean", ("--dimensions", "8"), "No such option"),
    ("classify", "bert-seqcls", ("--threshold", "0.5"), "--threshold is for models of several labels"),
    ("classify", "bert-seqcls", ("--top-k", "0"), "--top-k must be at least 1"),
    ("classify", "bert-seqcls-multilabel", ("--threshold", "0.5", "--no-activation"), "for probabilities"),
    ("classify", "bert-seqcls-regression", ("--top-k", "2"), "--top-k is for classes"),
    ("embed", "bert-seqcls", (), "cannot embed"),
    ("embed", "bert-splade", (), "use `poolembed sparse`"),
    ("embed", "bert-mean", ("--dimensions", "32"), "no matryoshka dimensions"),
    ("embed", "bert-mean", ("--prompt-name", "query"), "declares no prompt 'query'"),
    ("embed", "bert-mean", ("--ranges-from", "x"), "--ranges-from is for --output-dtype int8 or uint8"),
    ("embed", "bert-mean", ("--overlap-tokens", "2"), "--overlap-tokens is for --on-long windows"),
    ("embed", "bert-mean", ("--template", "{text}", "--text-field", "text"), "exclude each other"),
    ("sparse", "bert-mean", (), "gives no weights for tokens"),
    ("sparse", "bert-splade", ("--no-activation",), "cannot do without their activation"),
    ("reward", "bert-mean", (), "gives no rewards"),
    ("reward", "qwen2-prm", ("--level", "sequence"), "cannot reward by sequence"),
    ("token-embed", "bert-mean", ("--role", "query"), "has no roles"),
    ("token-embed", "bert-colbert", ("--prompt", "x"), "not by a prompt"),
    ("token-embed", "bert-colbert", ("--chunk-tokens", "4"), "cannot be averaged in groups"),
    ("token-embed", "bert-mean", ("--tokens", "--chunk-tokens", "4"), "exclude each other"),
]


@pytest.mark.parametrize(("command", "family", "arguments", "words"), REFUSED)
def test_what_cannot_be_done_is_said_before_weights_are_loaded(
    run, folder, models, command, family, arguments, words
):
    # Weights that cannot be loaded are noticed only by those who load them.
    broken = folder / "broken"
    broken.mkdir()
    for file in (models / family).iterdir():
        (broken / file.name).symlink_to(file)
    weights = broken / "model.safetensors"
    content = weights.read_bytes()
    header = int.from_bytes(content[:8], "little")
    weights.unlink()
    weights.write_bytes(content[: 8 + header])
    done = run(command, broken, *arguments)
    assert done.exit_code == 2, done.stderr
    assert words in " ".join(done.stderr.split())
    assert not list(folder.glob("*.parquet"))


def test_float16_vectors_are_rounded(run, models):
    model = PoolingModel(str(models / "bert-mean-nonorm"))
    table = table_of(run("embed", "bert-mean-nonorm", "--output-dtype", "float16"))
    assert str(table.schema.field("embedding").type) == "fixed_size_list<element: halffloat>[64]"
    np.testing.assert_array_equal(vectors(table), model.embed(TEXTS).astype(np.float16))
    assert pq.read_schema("corpus.embed.parquet").metadata[b"poolembed.output_dtype"] == b"float16"
