"""A run from a store to a store: sent when complete, renewed, and never over what is not ours."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from poolembed.config import InputConfig, JobConfig, ModelConfig, OutputConfig, RunConfig
from poolembed.errors import OutputError
from poolembed.io.remote import exists, find_remote, names_in, open_output
from poolembed.pipeline import run_job
from tests.io.test_remote import root, s3  # noqa: F401 - fixtures
from tests.pipeline.test_reuse import Watcher


@pytest.fixture
def run(root, tmp_path, models):  # noqa: F811
    """Put rows into the store, run over them, and return the summary."""

    def run(texts, output="out.parquet", **settings):
        with open_output(f"{root}/in/rows.jsonl") as handle:
            handle.writelines(json.dumps({"text": text}).encode() + b"\n" for text in texts)
        job = JobConfig(
            command="embed",
            input=InputConfig(paths=(f"{root}/in/rows.jsonl",), on_error="skip"),
            model=ModelConfig(model=str(models / "bert-mean"), device="cpu"),
            output=OutputConfig(
                output=f"{root}/{output}",
                staging=str(tmp_path / "staging"),
                overwrite=settings.pop("overwrite", False),
            ),
            run=RunConfig(batch_tokens=512, **settings),
        )
        return run_job(job, Watcher())

    run.root, run.staging = root, tmp_path / "staging"
    return run


def read(url):
    (file,), _ = find_remote(url)
    with file.open() as handle:
        return pq.read_table(pa.BufferReader(handle.read()))


def test_a_file_comes_back_from_the_store(run):
    summary = run(["one", None, "two"])
    url = f"{run.root}/out.parquet"
    assert summary.outputs == (url, f"{url}.rejects.jsonl")
    assert read(url)["text"].to_pylist() == ["one", "two"]
    assert exists(f"{url}.rejects.jsonl")


def test_what_is_known_is_not_computed_again_and_old_rejects_go(run):
    run(["one", None])
    summary = run(["two", "one"])
    assert (summary.num_computed, summary.num_reused) == (1, 1)
    assert read(f"{run.root}/out.parquet")["text"].to_pylist() == ["two", "one"]
    assert not exists(f"{run.root}/out.parquet.rejects.jsonl")


def test_parts_stand_in_a_directory_and_those_of_a_longer_run_go(run):
    summary = run(["a", "b", "c"], "out/", chunk_rows=1)
    assert summary.outputs == tuple(f"{run.root}/out/part-0000{number}.parquet" for number in range(3))
    run(["c", "b"], "out/", chunk_rows=1)
    assert names_in(f"{run.root}/out/") == ["part-00000.parquet", "part-00001.parquet"]
    assert read(f"{run.root}/out/part-00000.parquet")["text"].to_pylist() == ["c"]


@pytest.mark.parametrize("output", ["out.parquet", "out/"])
def test_what_was_not_made_here_is_kept_unless_overwritten(run, output):
    taken = f"{run.root}/{output}{'part-00007.parquet' if output.endswith('/') else ''}"
    with open_output(taken) as handle:
        handle.write(b"precious")
    with pytest.raises(OutputError, match="exists already, and was not made on this machine"):
        run(["one"], output)
    (file,), _ = find_remote(taken)
    assert file.open().read() == b"precious"
    run(["one"], output, overwrite=True)
    assert read(f"{run.root}/{output}{'part-00000.parquet' if output.endswith('/') else ''}").num_rows == 1


def test_an_output_over_its_own_input_is_refused(run):
    with pytest.raises(OutputError, match="is an input"):
        run(["one"], "in/rows.jsonl")
