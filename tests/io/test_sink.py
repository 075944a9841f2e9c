"""Outputs: whole or not there, zero rows, parts, rejects, what is recorded, and every failure on the way."""

import contextlib
import json
import os
import resource
import shutil
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from poolembed.config import InputConfig, OutputConfig
from poolembed.errors import ConfigError, OutputError
from poolembed.io import result_table
from poolembed.results import ResultColumn
from tests.io.conftest import writing

RESULTS = [ResultColumn("embedding", "float32", 4), ResultColumn("num_tokens", "int32")]


class StoppedError(Exception):
    pass


def results(num_rows: int, value: float = 0.0) -> dict[str, np.ndarray]:
    return {
        "embedding": np.full((num_rows, 4), value, dtype=np.float32),
        "num_tokens": np.arange(num_rows, dtype=np.int32),
    }


def files(folder) -> list[str]:
    """Return what a user sees in a folder."""
    return sorted(name for name in os.listdir(folder) if not name.startswith("."))  # noqa: PTH208


def bytes_of(folder) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in files(folder)}


@pytest.fixture
def run():
    """Read an input, write it with made-up results, and return what `commit` returns."""

    def run(
        path, output=None, *, overwrite=False, max_rows=2, value=0.0, stop_after=None, metadata=None, **config
    ):
        inputs = InputConfig(paths=(str(path),), **config)
        target = OutputConfig(output=None if output is None else str(output), overwrite=overwrite)
        with writing(inputs, target, RESULTS, metadata) as both:
            for chunk in both.source.chunks(max_rows, 2**20):
                if chunk.index == stop_after:
                    raise StoppedError
                both.write(chunk, results(chunk.num_rows, value))
            return both.sink.commit()

    return run


@pytest.fixture
def five(write):
    return write("in/a.jsonl", *[{"id": number, "text": f"row {number}"} for number in range(5)])


def test_rows_and_results_stand_side_by_side(run, five):
    (path,) = run(five, value=0.5)
    assert path == five.with_name("a.embed.parquet")
    table = pq.read_table(path)
    assert table.column_names == ["id", "text", "embedding", "num_tokens"]
    assert table["id"].to_pylist() == list(range(5))
    assert table["embedding"].to_pylist() == [[0.5] * 4] * 5
    assert table["num_tokens"].to_pylist() == [0, 1, 0, 1, 0]
    assert table.schema.field("embedding").type == pa.list_(pa.float32(), 4)
    assert not table.schema.field("embedding").nullable
    assert files(path.parent) == ["a.embed.parquet", "a.jsonl"]


def test_the_run_is_recorded_and_so_is_the_length_of_vectors(run, five):
    (path,) = run(five, metadata={"model": "m", "pooling": "MEAN"})
    metadata = pq.read_schema(path).metadata
    assert metadata[b"poolembed.model"] == b"m"
    assert metadata[b"poolembed.pooling"] == b"MEAN"
    assert json.loads(metadata[b"poolembed.results"]) == {
        "embedding": {"dtype": "float32", "dim": 4},
        "num_tokens": {"dtype": "int32", "dim": None},
    }
    assert pq.read_metadata(path).metadata[b"poolembed.model"] == b"m"


def test_metadata_of_the_input_is_kept_and_never_that_of_an_earlier_run(run, tmp_path):
    schema = pa.schema(
        [("text", pa.string())], metadata={"licence": "CC0", "poolembed.model": "old", "poolembed.x": "y"}
    )
    pq.write_table(pa.table({"text": ["x"]}, schema=schema), tmp_path / "a.parquet")
    (path,) = run(tmp_path / "a.parquet", metadata={"model": "new"})
    metadata = pq.read_schema(path).metadata
    assert (metadata[b"licence"], metadata[b"poolembed.model"]) == (b"CC0", b"new")
    assert b"poolembed.x" not in metadata


def test_no_rows_make_a_valid_file_with_every_column(run, write):
    (path,) = run(write("a.jsonl"))
    table = pq.read_table(path)
    assert table.num_rows == 0
    assert table.column_names == ["text", "embedding", "num_tokens"]
    assert table.schema.field("embedding").type == pa.list_(pa.float32(), 4)


def test_no_rows_make_one_valid_part(run, write, tmp_path):
    (path,) = run(write("a.jsonl"), f"{tmp_path}/out/")
    assert path == tmp_path / "out" / "part-00000.parquet"
    assert pq.read_table(path).column_names == ["text", "embedding", "num_tokens"]


def test_rejects_are_written_beside_with_their_reasons(run, write):
    path = write("a.jsonl", {"text": "x"}, {"text": None}, b'{"text": "\xff"}', {"text": "y"})
    output, rejects = run(path, on_error="skip")
    assert rejects == path.with_name("a.embed.parquet.rejects.jsonl")
    assert [json.loads(line) for line in rejects.read_text(encoding="utf-8").splitlines()] == [
        {
            "file": str(path),
            "row": 2,
            "code": "null_text",
            "message": "the text in 'text' is null",
            "excerpt": '{"text": null}',
            "id": None,
        },
        {
            "file": str(path),
            "row": 3,
            "code": "invalid_utf8",
            "message": "byte 11, 0xff, is not UTF-8",
            "excerpt": '{"text": "\ufffd"}',
            "id": None,
        },
    ]
    assert pq.read_table(output)["text"].to_pylist() == ["x", "y"]


def test_rejects_of_an_earlier_run_go_when_there_are_none(run, write):
    path = write("a.jsonl", {"text": None})
    _, rejects = run(path, on_error="skip")
    write("a.jsonl", {"text": "x"})
    assert run(path, overwrite=True) == [path.with_name("a.embed.parquet")]
    assert not rejects.exists()


def test_rejects_of_a_directory_of_parts_stand_outside_of_it(run, write, tmp_path):
    path = write("a.jsonl", {"text": None}, {"text": "x"})
    assert run(path, f"{tmp_path}/out/", on_error="skip") == [
        tmp_path / "out" / "part-00000.parquet",
        tmp_path / "out.rejects.jsonl",
    ]


def test_rows_refused_after_reading_are_written_too(five):
    with writing(InputConfig(paths=(str(five),)), OutputConfig(), RESULTS) as both:
        (chunk,) = both.source.chunks(10, 2**20)
        chunk = replace(chunk, places=tuple(("é\udcff.jsonl", row) for _, row in chunk.places))
        chunk = chunk.without({1: ("non_finite", "the vector is not finite"), 3: ("late", "\u2028")})
        both.write(chunk, results(3))
        output, rejects = both.sink.commit()
    assert pq.read_table(output)["id"].to_pylist() == [0, 2, 4]
    lines = [json.loads(line) for line in rejects.read_bytes().splitlines()]
    assert [(line["row"], line["code"], line["message"], line["excerpt"]) for line in lines] == [
        (2, "non_finite", "the vector is not finite", "row 1"),
        (4, "late", "\u2028", "row 3"),
    ]
    assert lines[1]["file"] == "é\udcff.jsonl"


def test_each_chunk_is_a_part_with_its_number(run, five, tmp_path):
    paths = run(five, f"{tmp_path}/out/")
    assert [path.name for path in paths] == ["part-00000.parquet", "part-00001.parquet", "part-00002.parquet"]
    assert files(tmp_path / "out") == [path.name for path in paths]
    tables = [pq.read_table(path) for path in paths]
    assert [table["id"].to_pylist() for table in tables] == [[0, 1], [2, 3], [4]]
    assert pa.concat_tables(tables).schema.metadata == pq.read_schema(paths[0]).metadata
    assert pq.read_table(tmp_path / "out").num_rows == 5


def test_old_parts_go_only_when_all_new_ones_are_complete(run, five, tmp_path):
    out = tmp_path / "out"
    run(five, f"{out}/", max_rows=1)
    before = bytes_of(out)
    assert len(before) == 5
    with pytest.raises(StoppedError):
        run(five, out, overwrite=True, value=1.0, stop_after=2)
    assert bytes_of(out) == before
    paths = run(five, out, overwrite=True, value=1.0)
    assert files(out) == [path.name for path in paths]
    assert pq.read_table(out)["embedding"].to_pylist() == [[1.0] * 4] * 5


def test_no_part_has_its_name_before_all_are_complete(run, five, tmp_path):
    with pytest.raises(StoppedError):
        run(five, f"{tmp_path}/out/", stop_after=2)
    assert files(tmp_path) == ["in"]


@pytest.mark.parametrize("existed", [False, True])
def test_a_run_stopped_before_its_first_part_leaves_the_folder_as_it_was(run, five, tmp_path, existed):
    if existed:
        (tmp_path / "out").mkdir()
    with pytest.raises(StoppedError):
        run(five, f"{tmp_path}/out/", stop_after=0)
    assert files(tmp_path) == (["in", "out"] if existed else ["in"])


def test_a_stopped_run_leaves_nothing(run, five):
    with pytest.raises(StoppedError):
        run(five, stop_after=1)
    assert files(five.parent) == ["a.jsonl"]


def test_a_stopped_run_leaves_an_old_output_and_its_rejects_whole(run, write):
    path = write("a.jsonl", {"text": "x"}, {"text": None}, {"text": "y"}, {"text": "z"})
    old = [old.read_bytes() for old in run(path, on_error="skip")]
    with pytest.raises(StoppedError):
        run(path, overwrite=True, value=1.0, stop_after=1, on_error="skip")
    output = path.with_name("a.embed.parquet")
    assert [output.read_bytes(), output.with_name(output.name + ".rejects.jsonl").read_bytes()] == old
    assert len(files(path.parent)) == 3


def test_an_output_without_commit_is_no_output(five):
    inputs = InputConfig(paths=(str(five),))
    with writing(inputs, OutputConfig(), RESULTS) as both:
        for chunk in both.source.chunks(2, 2**20):
            both.write(chunk, results(chunk.num_rows))
    assert files(five.parent) == ["a.jsonl"]


@pytest.mark.parametrize("output", ["out.parquet", "out/"])
def test_an_output_that_was_changed_since_is_refused_and_stays(run, five, tmp_path, output):
    path = run(five, f"{tmp_path}/{output}")[0]
    pq.write_table(pq.read_table(path).slice(1), path)
    before = path.read_bytes()
    with pytest.raises(OutputError, match="exists already, and is not as a run of poolembed left it"):
        run(five, f"{tmp_path}/{output}")
    assert path.read_bytes() == before
    run(five, f"{tmp_path}/{output}", overwrite=True)
    assert path.read_bytes() != before


@pytest.mark.parametrize("output", ["out.parquet", "out/part-00000.parquet"])
def test_the_output_of_another_run_that_was_faster_is_kept(five, tmp_path, output):
    inputs = InputConfig(paths=(str(five),))
    target = tmp_path / output
    where = OutputConfig(output=str(target) if target.parent == tmp_path else f"{target.parent}/")

    def race() -> None:
        with writing(inputs, where, RESULTS) as both:
            target.write_bytes(b"other")
            for chunk in both.source.chunks(2, 2**20):
                both.write(chunk, results(chunk.num_rows))
            both.sink.commit()

    with pytest.raises(OutputError, match="appeared while it was being written"):
        race()
    assert target.read_bytes() == b"other"
    assert files(target.parent) == sorted({target.name, *(["in"] if target.parent == tmp_path else [])})


def test_columns_with_the_names_of_results_are_refused_with_what_to_do(run, five):
    (path,) = run(five)
    with pytest.raises(
        ConfigError, match="the input has columns with the names of results: embedding, num_tokens"
    ) as caught:
        run(path)
    assert caught.value.hint == "leave them out with --columns id,text"
    (again,) = run(path, columns=("id", "text"), value=2.0)
    assert pq.read_table(again)["embedding"].to_pylist() == [[2.0] * 4] * 5


def test_where_every_column_has_the_name_of_a_result_renaming_is_left(run, write):
    with pytest.raises(ConfigError) as caught:
        run(write("a.jsonl", {"embedding": "x"}))
    assert caught.value.hint == "rename them"


@pytest.mark.parametrize(
    "wrong", [{}, {"embedding": np.zeros((2, 4), np.float32)}, {**results(2), "more": np.zeros(2)}]
)
def test_results_other_than_declared_are_a_bug(wrong):
    with pytest.raises(ValueError, match="results are"):
        result_table(RESULTS, wrong)


def visible(folder) -> dict[str, bytes]:
    """Return what a user sees in a folder and the folders in it."""
    paths = [path for path in folder.rglob("[!.]*") if path.is_file() and ".job" not in path.parent.name]
    return {str(path): path.read_bytes() for path in paths}


@contextlib.contextmanager
def files_no_larger_than(num_bytes: int):
    """Make writes fail beyond a size, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (num_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("limit", [0, 3, 100, 2_000, 20_000, 60_000])
@pytest.mark.parametrize(
    "output",
    [None, "out/", "old.parquet", "old/", "out.arrow", "out.jsonl", "out.jsonl.gz", "out.npy", "old.npy"],
)
def test_a_full_disk_leaves_old_files_whole_and_no_new_ones(run, write, tmp_path, limit, output):
    noise = np.random.default_rng(0).integers(48, 90, (5, 40_000))
    path = write("in/a.jsonl", *[{"text": "".join(map(chr, row))} for row in noise])
    (tmp_path / "old").mkdir()
    target = None if output is None else f"{tmp_path}/{output}"
    if output is not None and output.startswith("old"):
        run(path, target)
    before = visible(tmp_path)
    with (
        files_no_larger_than(limit),
        pytest.raises(OutputError, match="cannot be written: File too large") as caught,
    ):
        run(path, target, overwrite=True, max_rows=5)
    assert caught.value.hint == "free some space, or write elsewhere with -o"
    assert visible(tmp_path) == before


def test_rejects_on_a_full_disk_leave_nothing(run, write, tmp_path):
    path = write("in/a.jsonl", *[{"text": 1, "more": "x" * 500}] * 200, {"text": "x"})
    with files_no_larger_than(10_000), pytest.raises(OutputError, match=r"rejects\.jsonl: cannot be written"):
        run(path, on_error="skip", max_rows=1000)
    assert files(path.parent) == ["a.jsonl"]


def test_a_folder_that_vanishes_is_an_output_error(five, tmp_path):
    inputs, output = InputConfig(paths=(str(five),)), OutputConfig(output=f"{tmp_path}/out/")

    def vanish() -> None:
        with writing(inputs, output, RESULTS) as both:
            shutil.rmtree(tmp_path / "out")
            both.write(next(both.source.chunks(2, 2**20)), results(2))

    with pytest.raises(OutputError, match="No such file or directory"):
        vanish()
