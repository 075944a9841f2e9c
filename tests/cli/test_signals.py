"""A run that is stopped from outside ends with the documented code, and nothing half-written."""

import os
import re
import signal
import subprocess
import sys
import time

import pytest

from tests.cli.conftest import write

pytestmark = pytest.mark.slow

# Long enough for torch to be imported on a busy machine.
PATIENCE_S = 240.0


@pytest.fixture
def running(root, folder, models):
    """A run over many rows, which takes long."""
    # Different texts, as equal ones are computed once.
    write(folder / "corpus.jsonl", [{"text": f"row {number}"} for number in range(8000)])
    command = [
        sys.executable,
        "-m",
        "poolembed",
        "embed",
        "corpus.jsonl",
        "--model",
        str(models / "bert-mean"),
    ]
    # One row a batch, so that the run takes long.
    command += ["--batch-tokens", "1", "--chunk-rows", "100"]
    with subprocess.Popen(
        command,
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(root), "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        yield process
        process.kill()


def wait_for_rows(process, folder):
    """Wait until the results of some rows are kept."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        assert process.poll() is None, process.stderr.read()
        if any((folder / ".corpus.embed.parquet.job").glob("results-*.arrow")):
            return
        time.sleep(0.05)
    pytest.fail("no results were kept")


@pytest.mark.parametrize(
    ("number", "code", "word"), [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")]
)
def test_a_run_that_is_stopped_leaves_no_half_written_output(running, folder, number, code, word):
    wait_for_rows(running, folder)
    running.send_signal(number)
    stdout, stderr = running.communicate(timeout=PATIENCE_S)
    assert running.returncode == code
    assert stdout == ""
    left = rf"poolembed: {word}: [\d,]+ of 8,000 rows are left\n  the same command goes on with them\n"
    assert re.fullmatch(left, stderr)
    assert [path.name for path in folder.glob("[!.]*")] == ["corpus.jsonl"]


def test_a_run_that_is_killed_leaves_no_output_and_the_next_one_goes_on(running, folder, models, embed):
    wait_for_rows(running, folder)
    running.kill()
    running.wait(timeout=PATIENCE_S)
    assert not (folder / "corpus.embed.parquet").exists()
    done = embed("corpus.jsonl", "--limit", 104)
    assert done.exit_code == 0
    assert ", 4 computed, 100 reused" in done.stderr or ", 104 reused" in done.stderr
    assert (folder / "corpus.embed.parquet").exists()
