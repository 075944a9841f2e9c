"""`poolembed token-classify` from end to end."""

import json

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from poolembed.cli import cli


@pytest.fixture
def classify_tokens(shared, tmp_path):
    """Write rows, find their entities with a family of the zoo, and return how the command ended."""

    def run(rows, *arguments, family="bert-tokencls"):
        path = tmp_path / "mails.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
        model = str(shared / "zoo" / "models" / family)
        common = ["token-classify", str(path), "--model", model, "--device", "cpu", "--batch-tokens", "512"]
        return CliRunner().invoke(cli, [*common, *arguments])

    run.output = tmp_path / "mails.token-classify.parquet"
    return run


def test_rows_come_out_with_their_entities(classify_tokens):
    rows = [{"id": 1, "body": "Angela Merkel was born in Hamburg 🙂."}, {"id": 2, "body": ""}]
    done = classify_tokens(rows, "--aggregation", "first")
    assert done.exit_code == 0, done.output
    written = pq.read_table(classify_tokens.output)
    assert written.column("id").to_pylist() == [1, 2]
    first, second = written.column("entities").to_pylist()
    assert second == []
    assert first
    for entity in first:
        assert list(entity) == ["label", "score", "start", "end", "text"]
        assert entity["text"] == rows[0]["body"][entity["start"] : entity["end"]]


def test_a_model_without_classes_for_tokens_is_refused(classify_tokens):
    done = classify_tokens([{"text": "a"}], family="bert-mean")
    assert done.exit_code == 2
    assert "cannot token_classify" in done.stderr
    assert not classify_tokens.output.exists()


def test_an_overlap_as_large_as_a_window_is_refused(classify_tokens):
    done = classify_tokens([{"text": "a"}], "--max-length", "8", "--overlap-tokens", "6")
    assert done.exit_code == 2
    assert "--overlap-tokens must be below 6" in done.stderr


def test_help_has_two_examples_and_calls_an_overlap_an_overlap():
    help_text = CliRunner().invoke(cli, ["token-classify", "--help"]).output
    assert help_text.count("\n    poolembed token-classify ") == 2
    assert "stride" not in help_text
