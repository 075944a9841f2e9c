"""The job for cron does what is new, goes on after a failure, and tells of it."""

import os
import shlex
import subprocess

import pyarrow.parquet as pq
import pytest

from tests.fork_server import ENVIRONMENT

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("default_model")]


@pytest.fixture
def nightly(root, tmp_path, python):
    """Runs examples/nightly.sh on a folder, with a `poolembed` command on the path."""
    commands = tmp_path / "commands"
    commands.mkdir()
    (commands / "poolembed").write_text(f'#!/bin/sh\nexec {shlex.join(python)} -m poolembed "$@"\n', "utf-8")
    (commands / "poolembed").chmod(0o755)
    own = ENVIRONMENT | {"PATH": f"{commands}{os.pathsep}{os.environ['PATH']}"}

    def run(folder):
        command = [root / "examples" / "nightly.sh", folder]
        return subprocess.run(command, env=os.environ | own, capture_output=True, text=True, check=False)

    return run


@pytest.fixture
def texts(tmp_path):
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "a.jsonl").write_text('{"note": 1}\n', "utf-8")
    (folder / "b.jsonl").write_text('{"text": "one"}\n{"text": null}\n', "utf-8")
    return folder


def test_new_files_are_embedded_once_and_a_bad_one_stops_no_other(nightly, texts):
    first = nightly(texts)
    assert first.returncode == 3, first.stderr
    assert f"failed with exit code 3: {texts / 'a.jsonl'}" in first.stdout
    assert pq.read_metadata(texts / "b.embed.parquet").num_rows == 1
    assert (texts / "b.embed.parquet.rejects.jsonl").read_text("utf-8").count("\n") == 1
    assert sorted(path.name for path in texts.glob("*.parquet")) == ["b.embed.parquet"]

    (texts / "a.jsonl").unlink()
    made = (texts / "b.embed.parquet").stat().st_mtime_ns
    second = nightly(texts)
    assert (second.returncode, second.stdout) == (0, "")
    assert (texts / "b.embed.parquet").stat().st_mtime_ns == made


def test_a_file_that_changed_is_embedded_again(nightly, texts):
    (texts / "a.jsonl").unlink()
    assert nightly(texts).returncode == 0
    (texts / "b.jsonl").write_text('{"text": "one"}\n{"text": "two"}\n', "utf-8")
    os.utime(texts / "b.embed.parquet", (1, 1))
    done = nightly(texts)
    assert done.returncode == 0, done.stderr
    assert "1 computed, 1 reused" in done.stderr
    assert pq.read_metadata(texts / "b.embed.parquet").num_rows == 2
