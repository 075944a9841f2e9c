"""Every format, read back by the libraries that people use."""

import gzip
import io
import json

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.json
import pyarrow.parquet as pq
import pytest

from poolembed.config import OUTPUT_FORMATS
from poolembed.errors import ConfigError, OutputError
from poolembed.io.formats import FORMATS, format_of
from poolembed.io.formats.npy import HEADER_BYTES, array_column, header
from poolembed.io.output_file import OutputFile
from poolembed.io.result_arrays import result_array, result_field
from poolembed.results import ResultColumn

VECTOR = ResultColumn("embedding", "float32", 4)
RESULTS = (VECTOR, ResultColumn("num_tokens", "int32"), ResultColumn("truncated", "bool"))
METADATA = {"licence": "CC0", "poolembed.model": "größe/ü", "poolembed.results": "{}"}


def table_of(num_rows, results=RESULTS):
    generator = np.random.default_rng(num_rows)
    texts = pa.array([f"größe {row}\n" for row in range(num_rows)], pa.string())
    columns = [pa.array(range(num_rows), pa.int64()), texts]
    fields = [pa.field("id", pa.int64()), pa.field("text", pa.string())]
    for result in results:
        shape = (num_rows,) if result.dim is None else (num_rows, result.dim)
        values = (generator.standard_normal(shape) * 100).astype(result.dtype)
        columns.append(result_array(result, values))
        fields.append(result_field(result))
    return pa.Table.from_arrays(columns, schema=pa.schema(fields, metadata=METADATA))


def vectors_of(table):
    return table["embedding"].combine_chunks().flatten().to_numpy().reshape(-1, 4)


@pytest.fixture
def written(tmp_path):
    """Write tables in a format; return the file."""

    def written(name, tables, results=RESULTS):
        path = tmp_path / name
        file = OutputFile(path, format_of(path), tables[0].schema, results, may_replace=False)
        for table in tables:
            file.write(table)
        file.finish()
        assert [left.name for left in tmp_path.iterdir() if not left.name.startswith(".")] == []
        assert file.place()[0] == path
        return path

    return written


@pytest.fixture
def table():
    return table_of(5)


NAMES = ["x.parquet", "x.arrow", "x.feather", "x.jsonl", "x.jsonl.gz", "x.npy"]


def test_the_options_name_every_format():
    assert list(FORMATS) == list(OUTPUT_FORMATS)


@pytest.mark.parametrize("name", NAMES)
def test_the_name_of_a_file_says_its_format(tmp_path, name):
    assert name.endswith(format_of(tmp_path / name).suffixes)
    assert format_of(tmp_path / "x.csv") is None


@pytest.mark.parametrize("name", NAMES)
def test_metadata_is_read_back_from_every_format(written, table, name):
    path = written(name, [table])
    metadata = format_of(path).metadata(path)
    assert {key: metadata[key.encode()].decode() for key in METADATA} == METADATA


@pytest.mark.parametrize("name", NAMES)
def test_the_same_rows_are_the_same_bytes(written, table, tmp_path, name):
    path = written(name, [table])
    first = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    for file in format_of(path).files(path):
        file.unlink()
    written(name, [table])
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == first


@pytest.mark.parametrize("name", NAMES)
def test_a_file_given_up_leaves_nothing(tmp_path, table, name):
    path = tmp_path / name
    file = OutputFile(path, format_of(path), table.schema, RESULTS, may_replace=False)
    file.write(table)
    file.discard()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["x.npy", "x.jsonl"])
def test_a_file_beside_that_has_appeared_is_not_replaced(tmp_path, table, name):
    path = tmp_path / name
    file = OutputFile(path, format_of(path), table.schema, RESULTS, may_replace=False)
    beside = format_of(path).files(path)[-1]
    beside.write_bytes(b"other")
    file.finish()
    with pytest.raises(OutputError, match="appeared while it was being written"):
        file.place()
    file.discard()
    assert beside.read_bytes() == b"other"
    assert not path.exists()


@pytest.mark.parametrize("name", ["x.arrow", "x.feather"])
def test_arrow_is_read_by_every_library(written, table, name):
    polars, pandas, datasets = (pytest.importorskip(each) for each in ("polars", "pandas", "datasets"))
    path = written(name, [table, table.slice(0, 0), table])
    whole = pa.concat_tables([table, table])
    with pa.memory_map(str(path)) as source:
        assert pa.ipc.open_file(source).read_all().equals(whole, check_metadata=True)
    assert pa.feather.read_table(path).equals(whole)
    frame = polars.read_ipc(path)
    assert frame.schema["embedding"] == polars.Array(polars.Float32, 4)
    np.testing.assert_array_equal(frame["embedding"].to_numpy(), vectors_of(whole))
    np.testing.assert_array_equal(
        np.stack(pandas.read_feather(path)["embedding"].to_list()), vectors_of(whole)
    )
    rows = datasets.load_dataset(
        "arrow", data_files=str(path), split="train", cache_dir=str(path.parent / "cache")
    )
    np.testing.assert_array_equal(np.asarray(rows["embedding"][:], np.float32), vectors_of(whole))


def test_dictionaries_that_differ_become_their_values_in_arrow(written):
    tables = [pa.table({"kind": pa.array(["b", "a"][:n]).dictionary_encode()}) for n in (1, 2)]
    with pa.OSFile(str(written("x.arrow", tables))) as source:
        table = pa.ipc.open_file(source).read_all()
    assert table.schema.field("kind").type == pa.string()
    assert table["kind"].to_pylist() == ["b", "b", "a"]


@pytest.mark.parametrize("name", ["x.jsonl", "x.jsonl.gz"])
def test_json_lines_are_read_by_every_library(written, table, name, tmp_path):
    polars, pandas, duckdb, datasets = (
        pytest.importorskip(each) for each in ("polars", "pandas", "duckdb", "datasets")
    )
    path = written(name, [table, table.slice(2)])
    whole = pa.concat_tables([table, table.slice(2)])
    data = gzip.decompress(path.read_bytes()) if name.endswith(".gz") else path.read_bytes()
    rows = [json.loads(line) for line in data.decode("utf-8").splitlines()]
    assert list(rows[0]) == ["id", "text", "embedding", "num_tokens", "truncated"]
    assert [row["text"] for row in rows] == whole["text"].to_pylist()
    exact = vectors_of(whole)
    found = {
        "json": [row["embedding"] for row in rows],
        "pyarrow": pa.json.read_json(io.BytesIO(data))["embedding"].to_pylist(),
        "polars": polars.read_ndjson(data)["embedding"].to_list(),
        "pandas": pandas.read_json(io.BytesIO(data), lines=True)["embedding"].to_list(),
        "duckdb": [row[0] for row in duckdb.sql(f"select embedding from read_json('{path}')").fetchall()],
        "datasets": list(
            datasets.Dataset.from_json(str(path), cache_dir=str(tmp_path / "cache"))["embedding"]
        ),
    }
    for library, vectors in found.items():
        np.testing.assert_array_equal(np.asarray(vectors, np.float32), exact, err_msg=library)


@pytest.mark.parametrize("name", ["x.jsonl", "x.npy"])
def test_what_stands_beside_tells_the_rows_and_the_types(written, table, name):
    path = written(name, [table, table])
    meta = json.loads(path.with_name(path.name + ".meta.json").read_text("utf-8"))
    assert (meta["num_rows"], meta["columns"]["text"]) == (10, "string")
    assert meta["columns"]["embedding"].startswith("fixed_size_list<")
    assert meta["metadata"] == METADATA


def test_a_column_without_a_form_in_json_is_refused_before_a_row_is_written(tmp_path):
    schema = pa.schema([("x", pa.int8()), ("span", pa.month_day_nano_interval())])
    with pytest.raises(ConfigError, match=r"span \(month_day_nano_interval\)"):
        OutputFile(tmp_path / "x.jsonl", FORMATS["jsonl"], schema, (), may_replace=False)
    assert list(tmp_path.iterdir()) == []


def test_a_wide_table_is_turned_into_text_in_small_slices(written):
    num_rows, dim = 3000, 512
    result = ResultColumn("embedding", "float32", dim)
    values = np.random.default_rng(0).standard_normal((num_rows, dim)).astype(np.float32)
    wide = pa.Table.from_arrays([result_array(result, values)], schema=pa.schema([result_field(result)]))
    lines = written("x.jsonl", [wide], (result,)).read_text("utf-8").splitlines()
    assert len(lines) == num_rows
    for row in (0, 1, 2047, 2048, num_rows - 1):
        np.testing.assert_array_equal(
            np.asarray(json.loads(lines[row])["embedding"], np.float32), values[row]
        )


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "uint8"])
@pytest.mark.parametrize("counts", [[], [0], [3], [3, 0, 4]])
def test_an_array_is_loaded_by_numpy_and_its_rows_stand_beside(written, dtype, counts):
    results = (ResultColumn("embedding", dtype, 4), ResultColumn("num_tokens", "int32"))
    tables = [table_of(count, results) for count in counts] or [table_of(0, results)]
    path = written("x.npy", tables, results)
    whole = pa.concat_tables(tables)
    for mode in (None, "r"):
        array = np.load(path, mmap_mode=mode, allow_pickle=False)
        assert (array.shape, array.dtype) == ((whole.num_rows, 4), np.dtype(dtype))
        np.testing.assert_array_equal(array, vectors_of(whole))
    assert pq.read_table(f"{path}.rows.parquet").equals(whole.drop_columns("embedding"))


def test_a_row_without_a_result_is_refused_and_never_shifts_the_others(tmp_path):
    column = pa.array([[1, 2, 3, 4], None, [5, 6, 7, 8]], pa.list_(pa.float32(), 4))
    schema = pa.schema([pa.field("embedding", column.type, nullable=False)])
    table = pa.table([column], schema=schema)
    file = OutputFile(tmp_path / "x.npy", FORMATS["npy"], schema, (VECTOR,), may_replace=False)
    with pytest.raises(OutputError, match="some rows have no embedding"):
        file.write(table)
    file.discard()
    assert list(tmp_path.iterdir()) == []


def test_rows_that_may_have_no_result_are_refused_before_any_is_written(tmp_path):
    schema = pa.schema([("embedding", pa.list_(pa.float32(), 4))])
    with pytest.raises(ConfigError, match="rows without a text have no numbers for an array") as caught:
        OutputFile(tmp_path / "x.npy", FORMATS["npy"], schema, (VECTOR,), may_replace=False)
    assert caught.value.hint == "leave them out with --on-null reject, or write Parquet"
    assert list(tmp_path.iterdir()) == []


def test_a_number_a_row_is_an_array_of_one_dimension(written):
    results = (ResultColumn("score", "float32"), ResultColumn("num_tokens", "int32"))
    table = table_of(3, results)
    np.testing.assert_array_equal(
        np.load(written("x.npy", [table], results)), table["score"].to_numpy().astype(np.float32)
    )


@pytest.mark.parametrize("shape", [(0, 4), (2**40, 4096), (7,)])
def test_the_header_is_that_of_numpy(shape):
    own = header(np.dtype("float32"), shape[0], shape[1] if len(shape) == 2 else None)
    assert len(own) == HEADER_BYTES
    handle = io.BytesIO(own)
    assert np.lib.format.read_magic(handle) == (1, 0)
    assert np.lib.format.read_array_header_1_0(handle) == (shape, False, np.dtype("float32"))


@pytest.mark.parametrize(
    "results",
    [
        [ResultColumn("embedding", "float32", 4, is_list=True)],
        [ResultColumn("ranking", is_list=True, fields=(ResultColumn("score", "float32"),))],
        [
            ResultColumn("label", "str"),
            ResultColumn("score", "float32"),
            ResultColumn("top", "str", is_list=True),
        ],
        [ResultColumn("a", "float32", 4), ResultColumn("b", "float32", 4)],
        [ResultColumn("a", "float32"), ResultColumn("b", "float32")],
        [ResultColumn("num_tokens", "int32")],
    ],
    ids=lambda results: ",".join(result.name for result in results),
)
def test_results_that_are_not_one_array_are_refused(results):
    with pytest.raises(ConfigError, match="are not one array of numbers") as caught:
        array_column(results)
    assert caught.value.hint == "write Parquet, Arrow or JSON Lines"


def test_probabilities_are_the_array_of_a_classifier():
    results = [
        ResultColumn("label", "str"),
        ResultColumn("score", "float32"),
        ResultColumn("probs", "float32", 3),
    ]
    assert array_column(results).name == "probs"


@pytest.mark.parametrize("name", NAMES)
def test_no_rows_make_a_valid_file_with_every_column(written, name):
    path = written(name, [table_of(0)])
    if name.endswith(".parquet"):
        assert pq.read_table(path).schema.field("embedding").type == pa.list_(pa.float32(), 4)
    elif name.endswith((".arrow", ".feather")):
        assert pa.feather.read_table(path).schema.field("embedding").type == pa.list_(pa.float32(), 4)
    elif name.endswith(".npy"):
        assert np.load(path).shape == (0, 4)
    else:
        content = gzip.decompress(path.read_bytes()) if name.endswith(".gz") else path.read_bytes()
        assert content == b""


def test_parquet_tells_the_length_of_vectors_to_every_library(written, table):
    polars, pandas, duckdb, datasets = (
        pytest.importorskip(each) for each in ("polars", "pandas", "duckdb", "datasets")
    )
    path = written("x.parquet", [table])
    exact = vectors_of(table)
    assert polars.read_parquet(path).schema["embedding"] == polars.Array(polars.Float32, 4)
    np.testing.assert_array_equal(np.stack(pandas.read_parquet(path)["embedding"].to_list()), exact)
    found = [row[0] for row in duckdb.sql(f"select embedding from '{path}'").fetchall()]
    np.testing.assert_array_equal(np.asarray(found, np.float32), exact)
    rows = datasets.Dataset(pq.read_table(path)).with_format("numpy")
    np.testing.assert_array_equal(np.stack(rows[:]["embedding"]), exact)
