"""`-o` and `--format` decide what is written; what stands beside it belongs to it."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.cli.conftest import ROWS, table_of, vectors, write


def names(folder):
    paths = [path.relative_to(folder) for path in folder.rglob("*") if path.is_file()]
    return sorted(path.name for path in paths if not any(part.startswith(".") for part in path.parts))


def lines_of(path):
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


@pytest.fixture
def expected(embed, corpus, tmp_path_factory):
    """The vectors as Parquet has them."""
    path = tmp_path_factory.mktemp("expected") / "x.parquet"
    return vectors(table_of(embed("corpus.jsonl", "-o", path), path))


def test_json_lines_hold_the_very_same_vectors_and_the_columns_of_the_input(embed, expected, folder):
    done = embed("corpus.jsonl", "-o", "x.jsonl")
    assert done.exit_code == 0, done.output
    rows = lines_of(folder / "x.jsonl")
    assert [{key: row[key] for key in ROWS[0]} for row in rows] == ROWS
    np.testing.assert_array_equal(np.asarray([row["embedding"] for row in rows], np.float32), expected)
    assert names(folder) == ["corpus.jsonl", "x.jsonl", "x.jsonl.meta.json"]


def test_an_array_holds_the_very_same_vectors(embed, expected, folder):
    assert embed("corpus.jsonl", "-o", "x.npy").exit_code == 0
    np.testing.assert_array_equal(np.load(folder / "x.npy"), expected)
    assert pq.read_table(folder / "x.npy.rows.parquet")["id"].to_pylist() == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("format_name", "name"), [("jsonl.gz", "corpus.embed.jsonl.gz"), ("arrow", "corpus.embed.arrow")]
)
def test_the_format_names_the_output(embed, corpus, folder, format_name, name):
    assert embed("corpus.jsonl", "--format", format_name).exit_code == 0
    assert name in names(folder)


def test_a_name_and_a_format_that_contradict_each_other_are_refused(embed, corpus, folder):
    done = embed("corpus.jsonl", "-o", "x.jsonl", "--format", "npy")
    assert done.exit_code == 2
    assert "-o x.jsonl is the name of jsonl, and --format says npy" in done.stderr
    assert names(folder) == ["corpus.jsonl"]


@pytest.mark.parametrize("beside", ["x.npy.rows.parquet", "x.npy.meta.json"])
def test_what_would_stand_beside_is_not_replaced_unasked(embed, corpus, folder, beside):
    (folder / beside).write_text("precious")
    done = embed("corpus.jsonl", "-o", "x.npy")
    assert done.exit_code == 6
    assert f"{beside}: exists already" in done.stderr
    assert (folder / beside).read_text() == "precious"


def test_results_that_are_no_array_are_refused_and_nothing_is_left(poolembed, models, corpus, folder):
    done = poolembed("token-embed", "corpus.jsonl", "-o", "x.npy", "--model", models / "bert-mean")
    assert done.exit_code == 2
    assert "these results are not one array of numbers: embeddings, num_tokens, truncated" in done.stderr
    assert names(folder) == ["corpus.jsonl"]


def test_parts_of_another_format_are_replaced_when_all_new_ones_are_complete(embed, corpus, folder):
    assert embed("corpus.jsonl", "-o", "out/", "--format", "npy", "--chunk-rows", 2).exit_code == 0
    assert names(folder / "out") == [
        f"part-0000{index}.npy{ending}" for index in (0, 1) for ending in ("", ".meta.json", ".rows.parquet")
    ]
    assert embed("corpus.jsonl", "-o", "out/", "--format", "jsonl").exit_code == 0
    assert names(folder / "out") == ["part-00000.jsonl", "part-00000.jsonl.meta.json"]
    assert [row["id"] for row in lines_of(folder / "out" / "part-00000.jsonl")] == [1, 2, 3, 4]


def test_outputs_of_every_format_are_no_inputs_of_the_next_run(embed, folder):
    write(folder / "in" / "corpus.jsonl", ROWS)
    for name in ("x.jsonl", "x.jsonl.gz", "x.npy", "x.parquet", "y.parquet"):
        done = embed("in", "-o", f"in/{name}")
        assert done.exit_code == 0, done.output
    assert pq.read_table(folder / "in" / "y.parquet").num_rows == len(ROWS)


def test_bounds_are_taken_from_json_lines_and_arrays(embed, corpus, folder):
    assert embed("corpus.jsonl", "-o", "x.npy", "--output-dtype", "int8").exit_code == 0
    for name in ("y.jsonl", "z/"):
        done = embed(
            *("corpus.jsonl", "-o", name, "--output-dtype", "int8", "--ranges-from", "x.npy"),
            *(() if name.endswith("l") else ("--format", "jsonl")),
        )
        assert done.exit_code == 0, done.output
    rows = lines_of(folder / "y.jsonl")
    np.testing.assert_array_equal(
        np.load(folder / "x.npy"), np.asarray([row["embedding"] for row in rows], np.int8)
    )
    again = embed("corpus.jsonl", "-o", "w.npy", "--output-dtype", "int8", "--ranges-from", "z")
    assert again.exit_code == 0, again.output
