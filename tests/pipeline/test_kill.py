"""A run that is killed, at whatever moment, ends in the same output when it is run again."""

import json
import os
import random
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.fork_server import ENVIRONMENT

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
NUM_ROWS = 40
# float32 sums in another order, in batches of other rows; the vectors have length 1.
SAME = {"rtol": 0, "atol": 1e-5}


@dataclass(frozen=True)
class Trials:
    """Runs of one command that get a signal at chosen moments."""

    python: list[str]
    arguments: list[str]
    source: Path
    output: Path

    def run(self, name: str = "SIGTERM", at: int = 0) -> tuple[int, int]:
        """Return the exit status, negative for a signal, and how often the file system was touched."""
        trial = ["-m", "tests.pipeline.kill_trials", str(self.source.parent), name, str(at)]
        done = subprocess.run(
            [*self.python, *trial, *self.arguments],
            cwd=ROOT,
            env=os.environ | ENVIRONMENT,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            check=False,
        )
        return done.returncode, int(done.stdout or 0)


def rows():
    texts = [f"row {number} " + "word " * (number * 7 % 11) for number in range(NUM_ROWS)]
    texts[9] = texts[30] = texts[4]
    return [{"id": number, "text": text} for number, text in enumerate(texts)]


def write(path: Path, content: list[dict]):
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in content))
    else:
        pq.write_table(pa.Table.from_pylist(content), path)


def read(output: Path) -> pa.Table:
    return pq.read_table(output).combine_chunks()


def assert_equal(found: pa.Table, expected: pa.Table):
    assert found.schema.equals(expected.schema)
    names = [name for name in expected.column_names if name != "embedding"]
    assert found.select(names).equals(expected.select(names))
    vectors = [table["embedding"].combine_chunks().flatten().to_numpy() for table in (found, expected)]
    np.testing.assert_allclose(*vectors, **SAME)


@pytest.fixture
def folder(tmp_path):
    """A folder in memory, where there is one: a disk that is busy with other tests makes each sync wait."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else tmp_path) as name:
        yield Path(name)


@pytest.fixture
def trials(request, folder, models, python):
    """A job on 40 rows in chunks of six, and the output of an undisturbed run."""
    kind, form = request.param.split()
    source, output = folder / f"rows.{kind}", folder / ("out.parquet" if form == "file" else "out")
    write(source, rows())
    arguments = ["embed", str(source), "-o", f"{output}{'' if form == 'file' else '/'}", "--quiet"]
    arguments += ["--model", f"{models}/bert-mean", "--chunk-rows", "6", "--batch-tokens", "64"]
    return Trials(python, arguments, source, output)


def forget(job):
    """Remove everything but the input."""
    for path in job.source.parent.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path != job.source:
            path.unlink()


@pytest.mark.parametrize(
    "trials", ["jsonl file", "jsonl parts", "parquet file", "parquet parts"], indirect=True
)
def test_a_run_killed_at_any_moment_ends_like_an_undisturbed_one(trials, request):
    status, num_touched = trials.run()
    assert status == 0
    expected = read(trials.output)
    # Thirteen moments for each kind of job: the whole run is divided evenly, with a chance in each part.
    numbers = random.Random(request.node.name)
    moments = [1 + int(num_touched * (part + numbers.random()) / 13) for part in range(13)]
    for number, at in enumerate(moments):
        forget(trials)
        name = "SIGTERM" if number % 3 == 2 else "SIGKILL"
        status, _ = trials.run(name, at)
        assert status == (-9 if name == "SIGKILL" else 143), (name, at)
        if trials.output.is_file():
            assert_equal(read(trials.output), expected)
        assert trials.run()[0] == 0, (name, at)
        assert_equal(read(trials.output), expected)
        assert list(trials.source.parent.rglob("*.tmp-*")) == []


@pytest.mark.parametrize("trials", ["jsonl file", "parquet parts"], indirect=True)
def test_an_update_killed_again_and_again_ends_like_an_undisturbed_one(trials):
    changed = [row | {"text": row["text"] + "!"} if row["id"] % 5 == 0 else row for row in rows()[3:]]
    write(trials.source, changed)
    assert trials.run()[0] == 0
    expected = read(trials.output)
    forget(trials)
    write(trials.source, rows())
    status, num_touched = trials.run()
    assert status == 0
    write(trials.source, changed)
    for part in range(6):
        trials.run("SIGKILL", 1 + num_touched * part // 6)
    assert trials.run()[0] == 0
    assert_equal(read(trials.output), expected)
