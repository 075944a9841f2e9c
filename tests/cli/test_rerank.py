"""`poolembed rerank` from end to end."""

import json

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from poolembed.cli import cli


@pytest.fixture
def rerank(shared, tmp_path):
    """Write rows, rank their documents with a family of the zoo, and return how the command ended."""

    def run(rows, *arguments, family="bert-mean"):
        path = tmp_path / "searches.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
        model = str(shared / "zoo" / "models" / family)
        common = ["rerank", str(path), "--model", model, "--device", "cpu", "--batch-tokens", "512"]
        return CliRunner().invoke(cli, [*common, *arguments])

    run.output = tmp_path / "searches.rerank.parquet"
    return run


ROWS = [
    {"n": 1, "query": "bread", "documents": [{"id": "s", "text": "stars"}, {"id": "b", "text": "bread"}]},
    {"n": 2, "query": "stars", "documents": []},
]


def test_rows_come_out_with_their_rankings(rerank):
    done = rerank(ROWS, "--texts", "--columns", "n")
    assert done.exit_code == 0, done.output
    first, second = pq.read_table(rerank.output).to_pylist()
    assert (first["n"], second["n"], second["ranking"]) == (1, 2, [])
    assert [(one["index"], one["id"], one["text"]) for one in first["ranking"]] == [
        (1, "b", "bread"),
        (0, "s", "stars"),
    ]
    assert first["ranking"][0]["score"] == pytest.approx(1, abs=1e-6)


def test_the_best_alone_may_be_asked_for(rerank):
    assert rerank(ROWS, "--top-k", "1").exit_code == 0
    [one] = pq.read_table(rerank.output).to_pylist()[0]["ranking"]
    assert list(one) == ["index", "id", "score"]


def test_a_row_without_a_list_goes_to_the_rejects(rerank):
    done = rerank([*ROWS, {"n": 3, "query": "a", "documents": None}], "--on-error", "skip", "--json")
    assert done.exit_code == 0, done.output
    summary = json.loads(done.stdout)
    assert (summary["num_rows"], summary["num_rejected"]) == (2, 1)


def test_a_model_that_scores_no_pairs_is_refused(rerank):
    done = rerank(ROWS, family="bert-tokencls")
    assert done.exit_code == 2
    assert "scores no pairs" in done.stderr


def test_help_has_two_examples():
    help_text = CliRunner().invoke(cli, ["rerank", "--help"]).output
    assert help_text.count("\n    poolembed rerank ") == 2
