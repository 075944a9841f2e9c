"""Files, directories, globs, standard input and Parquet in; a file or parts out."""

import gzip
import json

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.conftest import ROWS, table_of, vectors, write

AGAIN = [row | {"id": row["id"] + 10} for row in ROWS]
IDS = [row["id"] for row in ROWS]
BOTH = [*IDS, *(row["id"] for row in AGAIN)]

# float32 sums in another order; the values are of size 1.
SAME = {"rtol": 0, "atol": 1e-5}


@pytest.fixture
def plain(embed, corpus):
    return table_of(embed("corpus.jsonl"))


def lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def test_a_compressed_file_gives_the_same_output(embed, plain, folder):
    (folder / "packed.jsonl.gz").write_bytes(gzip.compress(lines(ROWS)))
    assert table_of(embed("packed.jsonl.gz"), "packed.embed.parquet").equals(plain)


def test_parquet_keeps_the_types_of_its_columns(embed, plain, folder):
    table = pa.table(
        {
            "id": pa.array(IDS, pa.uint8()),
            "when": pa.array([1, 2, None, 4], pa.timestamp("ms")),
            "tags": pa.array([["a"], [], None, ["b", "c"]], pa.list_(pa.string())),
            "text": pa.array([row["text"] for row in ROWS], pa.large_string()),
        }
    )
    pq.write_table(table, folder / "typed.parquet")
    output = table_of(embed("typed.parquet"), "typed.embed.parquet")
    assert output.select(table.column_names).equals(table)
    np.testing.assert_allclose(vectors(output), vectors(plain), **SAME)


def test_standard_input_needs_a_name_for_the_output(embed, plain):
    named = embed("-", "-o", "piped.parquet", input=lines(ROWS))
    assert table_of(named, "piped.parquet").equals(plain)
    unnamed = embed("-", input=lines(ROWS))
    assert unnamed.exit_code == 2
    assert "name it with -o" in unnamed.stderr


def test_a_bad_row_of_standard_input_is_told_by_its_line(embed, folder):
    done = embed("-", "-o", "piped.parquet", input=lines(ROWS) + b"{broken\n")
    assert done.exit_code == 3
    assert "<stdin>:5: not valid JSON" in done.stderr
    assert list(folder.iterdir()) == []


def test_several_files_are_read_in_the_order_given(embed, corpus, folder):
    write(folder / "again.jsonl", AGAIN)
    table = table_of(embed("corpus.jsonl", "again.jsonl", "-o", "out.parquet"), "out.parquet")
    assert table["id"].to_pylist() == BOTH
    unnamed = embed("corpus.jsonl", "again.jsonl")
    assert unnamed.exit_code == 2
    assert "name it with -o" in unnamed.stderr


def test_a_directory_is_read_by_name_and_gives_its_name_to_the_output(embed, folder):
    write(folder / "in" / "a.jsonl", ROWS)
    write(folder / "in" / "b" / "b.jsonl", AGAIN)
    write(folder / "in" / "notes.txt", ["no input"])
    table = table_of(embed("in"), "in.embed.parquet")
    assert table["id"].to_pylist() == BOTH


def test_a_glob_is_expanded_by_name(embed, folder):
    write(folder / "b-2.jsonl", AGAIN)
    write(folder / "b-1.jsonl", ROWS)
    write(folder / "other.jsonl", ROWS)
    table = table_of(embed("b-*.jsonl", "-o", "out.parquet"), "out.parquet")
    assert table["id"].to_pylist() == BOTH


def test_a_run_over_its_own_directory_does_not_read_its_outputs(embed, folder):
    write(folder / "in" / "a.jsonl", ROWS)
    assert embed("in/a.jsonl").exit_code == 0
    table = table_of(embed("in"), "in.embed.parquet")
    assert table["id"].to_pylist() == IDS


def test_a_file_that_is_given_twice_is_refused(embed, corpus):
    done = embed("corpus.jsonl", "./corpus.jsonl", "-o", "out.parquet")
    assert done.exit_code == 2
    assert "is given twice" in done.stderr


def test_parts_are_complete_files_that_are_read_as_one_table(embed, corpus, folder, plain):
    done = embed("corpus.jsonl", "-o", "parts/", "--chunk-rows", 3)
    assert done.exit_code == 0, done.output
    assert [path.name for path in sorted((folder / "parts").glob("[!.]*"))] == [
        "part-00000.parquet",
        "part-00001.parquet",
    ]
    table = pq.read_table(folder / "parts")
    assert table.drop_columns("embedding").equals(plain.drop_columns("embedding"))
    np.testing.assert_allclose(vectors(table), vectors(plain), **SAME)
    fewer = embed("corpus.jsonl", "-o", "parts")
    assert fewer.exit_code == 0
    assert [path.name for path in (folder / "parts").glob("[!.]*")] == ["part-00000.parquet"]
    assert table_of(fewer, "parts").drop_columns("embedding").equals(plain.drop_columns("embedding"))


def test_an_input_without_rows_gives_an_output_without_rows(embed, folder):
    write(folder / "corpus.jsonl", [])
    table = table_of(embed("corpus.jsonl"))
    assert table.num_rows == 0
    assert str(table.schema.field("embedding").type) == "fixed_size_list<element: float>[64]"


def test_the_tables_that_people_use_open_the_output(plain, folder):
    path = folder / "corpus.embed.parquet"
    expected = vectors(plain)

    frame = pd.read_parquet(path)
    assert frame["id"].tolist() == IDS
    np.testing.assert_array_equal(np.stack(frame["embedding"]), expected)

    polars = pl.read_parquet(path)
    assert polars.schema["embedding"] == pl.Array(pl.Float32, 64)
    assert polars.schema["truncated"] == pl.Boolean
    np.testing.assert_array_equal(polars["embedding"].to_numpy(), expected)

    with duckdb.connect() as database:
        rows = database.execute(f"select embedding, num_tokens from '{path}' order by id").fetchall()
    np.testing.assert_array_equal(np.asarray([row[0] for row in rows], np.float32), expected)
    assert [row[1] for row in rows] == plain["num_tokens"].to_pylist()


def test_datasets_opens_the_output(plain, folder):
    from datasets import Dataset

    dataset = Dataset.from_parquet(str(folder / "corpus.embed.parquet"), cache_dir=str(folder / "cache"))
    assert dataset["id"][:] == IDS
    np.testing.assert_array_equal(dataset.with_format("numpy")["embedding"][:], vectors(plain))
