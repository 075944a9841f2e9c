"""A run computes what nobody has computed, and its output is that of a fresh run."""

import json
import random

import numpy as np
import pyarrow.parquet as pq
import pytest

from poolembed.config import (
    EmbedConfig,
    InputConfig,
    JobConfig,
    ModelConfig,
    OutputConfig,
    PairConfig,
    RerankConfig,
    RunConfig,
    TokenEmbedConfig,
)
from poolembed.errors import InputError, OutputError
from poolembed.pipeline import run_job

# float32 sums in another order, in batches of other rows; the vectors have length 1.
SAME = {"rtol": 0, "atol": 1e-5}


class Watcher:
    """Counts what a run tells."""

    num_rows = num_done = 0

    def note(self, message):
        pass

    def start(self, num_rows):
        self.num_rows = num_rows

    def advance(self, num_rows, num_tokens, *, num_rejected=0, num_reused=0):
        self.num_done += num_rows


@pytest.fixture
def run(tmp_path, models):
    """Write rows, run over them, and return the summary and the output."""

    def run(rows, output="out.parquet", *, model="bert-mean", overwrite=False, task=None, **settings):
        source = tmp_path / "corpus.jsonl"
        source.write_text("".join(json.dumps(row) + "\n" for row in rows))
        path = tmp_path / output
        job = JobConfig(
            command=settings.pop("command", "embed"),
            task=EmbedConfig() if task is None else task,
            input=InputConfig(paths=(str(source),), on_error=settings.pop("on_error", "fail")),
            model=ModelConfig(
                model=str(models / model), device="cpu", max_length=settings.pop("max_length", None)
            ),
            output=OutputConfig(output=str(path), overwrite=overwrite),
            run=RunConfig(batch_tokens=512, **settings),
        )
        watcher = Watcher()
        summary = run_job(job, watcher)
        assert watcher.num_done == watcher.num_rows == len(rows)
        assert summary.num_rows + summary.num_rejected == len(rows)
        return summary, pq.read_table(path).combine_chunks()

    return run


def counts(summary):
    return summary.num_computed, summary.num_reused, summary.num_shared, summary.num_removed


def assert_equal(found, expected):
    assert found.schema.equals(expected.schema)
    for name in expected.column_names:
        ours, theirs = found[name].combine_chunks(), expected[name].combine_chunks()
        if name == "embedding":
            np.testing.assert_allclose(ours.flatten().to_numpy(), theirs.flatten().to_numpy(), **SAME)
        else:
            assert ours.equals(theirs), name


@pytest.mark.slow
def test_of_ten_thousand_rows_only_those_that_changed_are_computed(run):
    numbers = random.Random(0)
    rows = [{"id": number, "text": f"{numbers.random()}"} for number in range(10_000)]
    first, _ = run(rows)
    assert counts(first) == (10_000, 0, 0, 0)
    changed = [dict(row) for row in rows]
    for number in numbers.sample(range(10_000), 7):
        changed[number]["text"] = f"edited {number}"
    for number in sorted(numbers.sample(range(10_000), 3), reverse=True):
        del changed[number]
    for number in range(5):
        changed.insert(numbers.randrange(len(changed)), {"id": 20_000 + number, "text": f"added {number}"})
    num_edited = sum(row["text"].startswith("edited") for row in changed)
    summary, table = run(changed)
    assert counts(summary) == (num_edited + 5, 10_002 - num_edited - 5, 0, 3 + 7)
    assert num_edited + 5 == 12
    assert_equal(table, run(changed, "fresh.parquet")[1])


def test_equal_texts_are_computed_once_whatever_the_chunks(run):
    rows = [{"id": number, "text": f"text {number % 7}"} for number in range(50)]
    summary, table = run(rows, chunk_rows=4)
    assert counts(summary) == (7, 0, 43, 0)
    vectors = table["embedding"].combine_chunks().flatten().to_numpy().reshape(50, -1)
    for number in range(50):
        np.testing.assert_array_equal(vectors[number], vectors[number % 7])
    alone = run(rows[:7], "alone.parquet")[1]["embedding"].combine_chunks().flatten().to_numpy()
    np.testing.assert_allclose(vectors[:7].reshape(-1), alone, **SAME)
    assert table["id"].to_pylist() == list(range(50))


def test_rows_that_swap_their_texts_get_each_others_vectors(run):
    _, before = run([{"id": "a", "text": "one"}, {"id": "b", "text": "two"}])
    summary, after = run([{"id": "a", "text": "two"}, {"id": "b", "text": "one"}])
    assert counts(summary) == (0, 2, 0, 0)
    assert after["embedding"].to_pylist() == before["embedding"].to_pylist()[::-1]
    assert after["id"].to_pylist() == ["a", "b"]


def test_columns_that_are_no_text_follow_the_input(run):
    run([{"text": "one", "n": 1}])
    summary, table = run([{"text": "one", "n": 2, "more": "x"}])
    assert counts(summary) == (0, 1, 0, 0)
    assert table.column_names == ["text", "n", "more", "embedding", "num_tokens", "truncated"]
    assert table["n"].to_pylist() == [2]


def test_truncated_rows_are_counted_whoever_computed_them(run):
    rows = [{"text": "word " * 30}, {"text": "word"}, {"text": "word " * 30}]
    assert run(rows, max_length=8)[0].num_truncated == 2
    assert run(rows, max_length=8)[0].num_truncated == 2


def test_other_settings_are_refused_before_anything_is_computed(run, tmp_path):
    run([{"text": "one"}])
    before = (tmp_path / "out.parquet").read_bytes()
    with pytest.raises(OutputError, match="was made with other settings: max_length '256', not '8'"):
        run([{"text": "one"}], max_length=8)
    assert (tmp_path / "out.parquet").read_bytes() == before
    assert counts(run([{"text": "one"}], max_length=8, overwrite=True)[0]) == (1, 0, 0, 0)


def test_what_was_computed_before_a_bad_row_is_kept(run):
    rows = [{"text": f"row {number}"} for number in range(9)]
    with pytest.raises(InputError, match="max"):
        run([*rows, {"text": "word " * 300}], task=EmbedConfig(on_long="error"), chunk_rows=5)
    summary, _ = run(rows, task=EmbedConfig(on_long="error"), chunk_rows=5)
    assert counts(summary) == (0, 9, 0, 0)


def test_every_row_of_a_text_without_a_result_is_refused(run):
    long = {"text": "word " * 300}
    rows = [long, {"text": "a"}, long, {"text": "b"}, long]
    summary, table = run(rows, task=EmbedConfig(on_long="error"), chunk_rows=2, on_error="skip")
    assert (summary.num_rejected, table["text"].to_pylist()) == (3, ["a", "b"])


def test_bounds_of_quantised_vectors_stay_when_the_first_rows_change(run):
    task = EmbedConfig(output_dtype="int8")
    rows = [{"text": f"row {number}"} for number in range(20)]
    _, before = run(rows, task=task)
    summary, after = run([{"text": "quite another text"}, *rows], task=task)
    assert counts(summary) == (1, 20, 0, 0)
    assert after["embedding"].to_pylist()[1:] == before["embedding"].to_pylist()
    assert after.schema.metadata[b"poolembed.ranges"] == before.schema.metadata[b"poolembed.ranges"]


@pytest.mark.parametrize(
    ("command", "model", "task", "row"),
    [
        ("token-embed", "bert-mean", TokenEmbedConfig(tokens=True, offsets=True), {"text": "some words"}),
        ("score", "bert-crossencoder", PairConfig(), {"query": "some", "document": "words"}),
        ("rerank", "bert-crossencoder", RerankConfig(), {"query": "some", "documents": ["a", "b"]}),
    ],
)
def test_results_of_every_shape_are_reused(run, command, model, task, row):
    key, *_ = row
    rows = [row | {key: f"{row[key]} {number % 4}"} for number in range(8)]
    given = {"command": command, "model": model, "task": task, "chunk_rows": 3}
    summary, before = run(rows, **given)
    assert counts(summary) == (4, 0, 4, 0)
    again, after = run(rows[::-1], **given)
    assert counts(again) == (0, 8, 0, 0)
    assert after.take(list(range(7, -1, -1))).to_pylist() == before.to_pylist()
