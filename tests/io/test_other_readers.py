"""What is written opens in the tools people use, with types, order and vectors intact."""

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

from poolembed.config import InputConfig, OutputConfig
from poolembed.results import ResultColumn
from tests.io.conftest import writing

LINES = [
    {"id": f"doc-{n}", "text": "漢字 😀\u2028" * n, "n": n, "tags": ["a", "b"][: n % 3], "meta": {"k": n}}
    for n in range(7)
]
VECTORS = np.random.default_rng(0).standard_normal((7, 5)).astype(np.float32)


def output(source_path, target: str) -> None:
    inputs = InputConfig(paths=(str(source_path),))
    results = [ResultColumn("embedding", "float32", 5), ResultColumn("truncated", "bool")]
    with writing(inputs, OutputConfig(output=target), results, {"model": "m"}) as both:
        first = 0
        for chunk in both.source.chunks(3, 2**20):
            rows = VECTORS[first : first + chunk.num_rows]
            both.write(chunk, {"embedding": rows, "truncated": np.zeros(chunk.num_rows, dtype=bool)})
            first += chunk.num_rows
        both.sink.commit()


@pytest.fixture(params=["file", "parts"])
def written(request, write, tmp_path):
    """The output as one file or as parts: a list of paths in order."""
    path = write("in/a.jsonl", *LINES)
    if request.param == "file":
        output(path, str(tmp_path / "out.parquet"))
        return [tmp_path / "out.parquet"]
    output(path, f"{tmp_path}/out/")
    return sorted((tmp_path / "out").glob("*.parquet"))


def check(ids, texts, embeddings) -> None:
    assert list(ids) == [line["id"] for line in LINES]
    assert list(texts) == [line["text"] for line in LINES]
    found = np.stack([np.asarray(vector, dtype=np.float32) for vector in embeddings])
    np.testing.assert_array_equal(found, VECTORS)


def test_pyarrow_opens_it(written):
    table = pa.dataset.dataset(written).to_table()
    assert table.schema.field("embedding").type == pa.list_(pa.float32(), 5)
    check(table["id"].to_pylist(), table["text"].to_pylist(), table["embedding"].to_pylist())
    assert table["tags"].to_pylist() == [line["tags"] for line in LINES]
    assert table["meta"].to_pylist() == [line["meta"] for line in LINES]


def test_pyarrow_gives_the_vectors_to_numpy_without_copying(written):
    column = pq.read_table(written[0])["embedding"].chunk(0)
    matrix = column.flatten().to_numpy(zero_copy_only=True).reshape(-1, 5)
    np.testing.assert_array_equal(matrix, VECTORS[: len(matrix)])


def test_pandas_opens_it(written):
    pandas = pytest.importorskip("pandas")
    frame = pandas.concat([pandas.read_parquet(path) for path in written])
    check(frame["id"], frame["text"], frame["embedding"])
    assert frame["n"].dtype == np.int64
    assert frame["truncated"].dtype == bool


def test_polars_opens_it(written):
    polars = pytest.importorskip("polars")
    frame = polars.read_parquet(written)
    assert frame.schema["embedding"] == polars.Array(polars.Float32, 5)
    check(frame["id"], frame["text"], frame["embedding"].to_list())


def test_duckdb_opens_it(written):
    duckdb = pytest.importorskip("duckdb")
    names = ", ".join(f"'{path}'" for path in written)
    rows = duckdb.sql(f"select id, text, embedding, n from read_parquet([{names}]) order by n").fetchall()
    check(*[[row[column] for row in rows] for column in range(3)])


def test_datasets_opens_it(written, tmp_path):
    datasets = pytest.importorskip("datasets")
    data = datasets.load_dataset(
        "parquet",
        data_files=[str(path) for path in written],
        cache_dir=str(tmp_path / "cache"),
        split="train",
    )
    assert data.features["embedding"].length == 5
    check(data["id"], data["text"], data["embedding"])


def test_readers_without_the_arrow_schema_find_the_length_in_the_metadata(written):
    import json

    metadata = pq.read_metadata(written[0]).metadata
    assert json.loads(metadata[b"poolembed.results"])["embedding"]["dim"] == 5


def test_every_row_group_has_a_page_index(written):
    group = pq.read_metadata(written[0]).row_group(0)
    assert all(group.column(index).has_offset_index for index in range(group.num_columns))
