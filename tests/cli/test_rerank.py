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


@pytest.fixture
def join(shared, tmp_path):
    """Write the rows of `ROWS` as three files, rank, and return how the command ended."""

    def run(*arguments, candidates="one\ts\none\tb\n"):
        files = {
            "queries.jsonl": '{"id": "one", "query": "bread", "n": 1}\n',
            "documents.jsonl": "".join(json.dumps(document) + "\n" for document in ROWS[0]["documents"]),
            "candidates.tsv": candidates,
        }
        inputs = []
        for name, content in files.items():
            (tmp_path / name).write_text(content, "utf-8")
            inputs += [f"--{name.partition('.')[0]}", str(tmp_path / name)]
        model = ["--model", str(shared / "zoo" / "models" / "bert-mean"), "--device", "cpu"]
        return CliRunner().invoke(cli, ["rerank", *inputs, *model, "--batch-tokens", "512", *arguments])

    run.output = tmp_path / "candidates.rerank.parquet"
    return run


def test_a_join_gives_the_rankings_of_the_rows_it_stands_for(rerank, join):
    assert rerank(ROWS[:1], "--texts").exit_code == 0
    [row] = pq.read_table(rerank.output).to_pylist()
    done = join("--texts")
    assert done.exit_code == 0, done.output
    [joined] = pq.read_table(join.output).to_pylist()
    assert joined["ranking"] == row["ranking"]
    assert list(joined) == ["query_id", "query", "n", "ranking", "num_tokens", "truncated"]


def test_a_join_can_be_written_as_a_trec_run(join, tmp_path):
    run = tmp_path / "best.trec"
    done = join("-o", str(run), "--run-tag", "mine", "--top-k", "1")
    assert done.exit_code == 0, done.output
    [line] = run.read_text().splitlines()
    query, filler, document, rank, score, tag = line.split()
    assert (query, filler, document, rank, tag) == ("one", "Q0", "b", "1", "mine")
    assert float(score) == pytest.approx(1, abs=1e-6)


def test_a_run_can_be_ranked_again(join, tmp_path):
    run = tmp_path / "best.run"
    assert join("-o", str(run)).exit_code == 0
    assert join(candidates=run.read_text().replace(" ", "\t")).exit_code == 0
    assert [one["id"] for one in pq.read_table(join.output).to_pylist()[0]["ranking"]] == ["b", "s"]


def test_an_unknown_candidate_stops_the_run_or_goes_to_the_rejects(join):
    done = join(candidates="one\tb\none\tx\n")
    assert done.exit_code == 3
    assert "candidates.tsv:2: no document has the id 'x'" in done.stderr
    done = join("--on-error", "skip", "--json", candidates="one\tb\none\tx\n")
    assert done.exit_code == 0, done.output
    summary = json.loads(done.stdout)
    assert (summary["num_rows"], summary["num_rejected"]) == (1, 1)
    [reject] = join.output.with_name(join.output.name + ".rejects.jsonl").read_text().splitlines()
    assert json.loads(reject)["code"] == "unknown_document"


def test_half_a_join_or_a_tag_of_two_words_is_refused():
    done = CliRunner().invoke(cli, ["rerank", "--queries", "q.jsonl", "--run-tag", "a b"])
    assert done.exit_code == 2
    assert "--documents and --candidates missing" in done.stderr
    assert "--run-tag must be one word" in done.stderr


def test_only_rankings_make_a_trec_run(shared, tmp_path):
    (tmp_path / "a.jsonl").write_text('{"id": 1, "text": "bread"}\n')
    model = ["--model", str(shared / "zoo" / "models" / "bert-mean"), "--batch-tokens", "512"]
    done = CliRunner().invoke(
        cli, ["embed", str(tmp_path / "a.jsonl"), "-o", str(tmp_path / "a.trec"), *model]
    )
    assert done.exit_code == 2
    assert "a TREC run needs rankings" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["a.jsonl"]
