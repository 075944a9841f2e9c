"""`poolembed score` from end to end."""

import json

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from poolembed.cli import cli


@pytest.fixture
def score(shared, tmp_path):
    """Write rows, score them with a family of the zoo, and return how the command ended."""

    def run(rows, *arguments, family="bert-prompts"):
        path = tmp_path / "pairs.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
        model = str(shared / "zoo" / "models" / family)
        common = ["score", str(path), "--model", model, "--device", "cpu", "--batch-tokens", "512"]
        return CliRunner().invoke(cli, [*common, *arguments])

    run.output = tmp_path / "pairs.score.parquet"
    return run


def test_rows_come_out_with_their_scores(score, shared):
    lines = (shared / "zoo" / "inputs" / "pairs.jsonl").read_text("utf-8").splitlines()
    rows = [json.loads(line) for line in lines[:5]]
    done = score(rows, "--json")
    assert done.exit_code == 0, done.output
    written = pq.read_table(score.output)
    assert written.column("id").to_pylist() == [row["id"] for row in rows]
    assert str(written.schema.field("score").type) == "float"
    assert json.loads(done.stdout)["num_rows"] == 5
    expected = pq.read_table(
        shared / "zoo" / "expected" / "bert-prompts.parquet",
        filters=[("task", "=", "score"), ("reference", "=", "transformers"), ("params", "=", "{}")],
    ).to_pylist()
    wanted = {row["input_id"]: row["output"][0] for row in expected}
    assert written.column("score").to_pylist() == pytest.approx([wanted[row["id"]] for row in rows], abs=1e-5)


def test_the_summary_counts_a_shared_text_once(score):
    rows = [{"query": "the same query", "document": f"document {number}"} for number in range(4)]
    counted = json.loads(score(rows, "--json").stdout)["num_tokens"]
    assert counted < sum(pq.read_table(score.output).column("num_tokens").to_pylist())


def test_a_known_pair_of_names_is_taken_whole(score):
    done = score([{"query": 1, "question": "a", "answer": "b"}])
    assert done.exit_code == 0, done.output


def test_columns_may_be_named(score):
    done = score([{"a": "x", "b": "y"}], "--query-field", "a", "--document-field", "b")
    assert done.exit_code == 0, done.output


def test_input_without_a_known_pair_is_told_what_there_is(score):
    done = score([{"query": "a", "body": "b"}])
    assert done.exit_code == 3
    assert "no column 'query' with 'document' or 'query' with 'passage'" in done.stderr
    assert "columns: query (string), body (string)" in done.stderr
    assert "--query-field and --document-field name them" in done.stderr


def test_raw_gives_logits(score):
    rows = [{"query": "a", "document": "b"}]
    assert score(rows, family="bert-crossencoder-sigmoid").exit_code == 0
    [probability] = pq.read_table(score.output).column("score").to_pylist()
    done = score(rows, "--raw", "--overwrite", family="bert-crossencoder-sigmoid")
    assert done.exit_code == 0, done.output
    [logit] = pq.read_table(score.output).column("score").to_pylist()
    assert not 0 <= logit <= 1 or logit != pytest.approx(probability)


def test_a_model_with_three_labels_is_refused_before_it_is_loaded(score):
    done = score([{"query": "a", "document": "b"}], family="bert-seqcls")
    assert done.exit_code == 2
    assert "has 3 labels, so it gives no single score to a pair" in done.stderr
    assert not score.output.exists()


def test_help_has_two_examples():
    help_text = CliRunner().invoke(cli, ["score", "--help"]).output
    assert help_text.count("\n    poolembed score ") == 2
