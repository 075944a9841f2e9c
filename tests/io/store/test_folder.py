"""What a run leaves for the next one, at every moment at which it can be cut off."""

import json
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from poolembed.config import InputConfig, OutputConfig
from poolembed.errors import LockedError, OutputError
from poolembed.io import open_job_folder, open_sink, plan_output
from poolembed.io.chunk import RowChunk
from tests.io.store.conftest import COLUMNS, keys_of, results_of

SETTINGS = {"model": "m", "max_length": "256"}


class CutOffError(Exception):
    pass


def chunk_of(index, texts):
    places = tuple(("a.jsonl", row + 1) for row in range(len(texts)))
    return RowChunk(index, pa.table({"text": texts}), {"text": texts}, places=places)


@pytest.fixture(params=["out.parquet", "out/"])
def run(request, tmp_path):
    """Run over chunks of texts, and return the texts computed and the store."""
    (tmp_path / "a.jsonl").touch()

    def run(chunks, settings=SETTINGS, *, overwrite=False, cut_off=None):
        computed = []
        inputs = InputConfig(paths=(str(tmp_path / "a.jsonl"),))
        target = plan_output(
            OutputConfig(output=f"{tmp_path}/{request.param}", overwrite=overwrite), inputs, "embed"
        )
        with open_job_folder(target) as folder:
            folder.check()
            store = folder.begin(settings, COLUMNS)
            with open_sink(folder, pa.schema([("text", pa.string())]), COLUMNS, {}) as sink:
                for index, texts in enumerate(chunks):
                    lookup = store.find(keys_of(texts))
                    new = [texts[row] for row in lookup.new]
                    computed += new
                    if new:
                        folder.save(store.add(lookup, results_of(new), {}))
                    if index == cut_off:
                        raise CutOffError
                    sink.write(chunk_of(index, texts), store.take(lookup.places), lookup.keys)
                sink.commit()
        return computed, store

    run.path = tmp_path / request.param
    return run


def check(path, texts):
    table = pq.read_table(path)
    assert table["text"].to_pylist() == texts
    assert table.drop_columns(["text"]).combine_chunks().equals(results_of(texts))


def visible(path: Path) -> list[str]:
    return sorted(name for name in os.listdir(path.parent) if not name.startswith("."))  # noqa: PTH208


def test_a_run_over_the_same_rows_computes_nothing(run):
    assert run([["a", "b"], ["c"]])[0] == ["a", "b", "c"]
    computed, store = run([["a"], ["b", "c"]])
    assert computed == []
    assert store.num_unused == 0
    check(run.path, ["a", "b", "c"])


def test_only_new_texts_are_computed_and_old_ones_go(run):
    run([["a", "b"], ["c", "d"]])
    computed, store = run([["b", "x"], ["c", "x", "a"]])
    assert computed == ["x"]
    assert store.num_unused == 1
    check(run.path, ["b", "x", "c", "x", "a"])
    assert run([["x", "d"]])[0] == ["d"]
    check(run.path, ["x", "d"])


def test_rows_that_swap_their_texts_are_right(run):
    run([["one", "two"]])
    assert run([["two", "one"]])[0] == []
    check(run.path, ["two", "one"])


def test_a_run_that_was_cut_off_goes_on(run):
    with pytest.raises(CutOffError):
        run([["a", "b"], ["c"], ["d"]], cut_off=1)
    assert not run.path.is_file()
    assert list(run.path.glob("*.parquet")) == []
    assert run([["a", "b", "c", "d"]])[0] == ["d"]
    check(run.path, ["a", "b", "c", "d"])


def test_an_update_that_was_cut_off_leaves_the_old_output_and_goes_on(run):
    run([["a", "b"]])
    with pytest.raises(CutOffError):
        run([["b", "c"], ["a", "d"]], cut_off=0)
    check(run.path, ["a", "b"])
    assert run([["b", "c"], ["a", "d"]])[0] == ["d"]
    check(run.path, ["b", "c", "a", "d"])


def test_a_run_that_fails_before_its_first_result_leaves_nothing(run):
    with pytest.raises(TypeError):
        run([None])
    assert visible(run.path) == ["a.jsonl"]
    assert len(os.listdir(run.path.parent)) == 1  # noqa: PTH208


def test_after_a_run_only_the_record_of_its_output_is_left(run):
    run([["a", "b"], ["c"]])
    run([["a"]])
    folder = next(run.path.parent.rglob("*.job"))
    assert sorted(os.listdir(folder)) == ["lock", "output-1.json", "output-1.keys"]  # noqa: PTH208
    assert (folder / "output-1.keys").stat().st_size == 16


@pytest.mark.parametrize("finished", [True, False])
def test_other_settings_are_refused_with_what_differs(run, finished):
    if finished:
        run([["a"]])
    else:
        with pytest.raises(CutOffError):
            run([["a"], ["b"]], cut_off=0)
    with pytest.raises(OutputError) as caught:
        run([["a"]], {"model": "m", "max_length": "128", "prompt": "q: "})
    made = "was made" if finished else "an unfinished run was started"
    assert caught.value.message == (
        f"{Path(run.path)}: {made} with other settings: max_length '256', not '128'; prompt None, not 'q: '"
    )
    assert caught.value.hint == "--overwrite starts afresh; the same options go on"
    assert run([["a"]])[0] == []


def test_overwriting_takes_no_result_of_the_old_output(run):
    run([["a"]])
    computed, store = run([["a", "b"]], {"model": "other"}, overwrite=True)
    assert computed == ["a", "b"]
    assert store.num_unused == 0
    assert run([["a"]], {"model": "other"})[0] == []


def test_a_run_with_overwrite_that_was_cut_off_goes_on_with_the_same_command(run):
    run([["a"]])
    with pytest.raises(CutOffError):
        run([["a", "b"], ["c"]], {"model": "other"}, overwrite=True, cut_off=0)
    assert run([["a", "b"], ["c"]], {"model": "other"}, overwrite=True)[0] == ["c"]
    check(run.path, ["a", "b", "c"])


def test_overwriting_with_other_settings_forgets_an_unfinished_run(run):
    with pytest.raises(CutOffError):
        run([["a"], ["b"]], cut_off=0)
    assert run([["a"]], {"model": "other"}, overwrite=True)[0] == ["a"]


def test_an_output_of_somebody_else_is_refused(run):
    run([["a"]])
    (file,) = [run.path] if run.path.is_file() else run.path.glob("*.parquet")
    pq.write_table(pq.read_table(file), file, compression="gzip")
    with pytest.raises(OutputError, match="exists already, and is not as a run of poolembed left it"):
        run([["a"]])


@pytest.mark.parametrize("damage", ["keys", "short keys", "record", "other version"])
def test_without_a_usable_record_nothing_is_reused(run, damage):
    run([["a", "b"]])
    folder = next(run.path.parent.rglob("*.job"))
    if damage == "keys":
        (folder / "output-0.keys").unlink()
    elif damage == "short keys":
        (folder / "output-0.keys").write_bytes(b"x" * 16)
    else:
        record = folder / "output-0.json"
        content = json.loads(record.read_text()) | {"format": 0}
        record.write_text(json.dumps(content) if damage == "other version" else "{")
        with pytest.raises(OutputError, match="exists already"):
            run([["a"]])
    computed, _ = run([["a"]], overwrite=damage in ("record", "other version"))
    assert computed == ["a"]
    check(run.path, ["a"])


def test_a_second_run_into_the_same_output_is_locked_out(run, tmp_path):
    target = plan_output(
        OutputConfig(output=str(run.path)) if run.path.suffix else OutputConfig(output=f"{run.path}/"),
        InputConfig(paths=(str(tmp_path / "a.jsonl"),)),
        "embed",
    )
    with open_job_folder(target), pytest.raises(LockedError, match="another run is writing it"):
        run([["a"]])
    assert run([["a"]])[0] == ["a"]


def test_remains_of_killed_runs_are_removed(run):
    run([["a"]])
    folder = next(run.path.parent.rglob("*.job"))
    remains = [folder / ".results-00003.arrow.tmp-99", run.path.with_name(f".{run.path.name}.tmp-99")]
    remains.append(run.path.with_name(f".{run.path.name}.rejects.jsonl.tmp-99"))
    if run.path.is_dir():
        remains.append(run.path / ".part-00000.parquet.tmp-99")
    for remain in remains:
        remain.touch()
    run([["a"]])
    assert [remain for remain in remains if remain.exists()] == []
