"""Commands as a person types them, in a folder of their own, with a tiny model."""

import json
import signal
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from poolembed.cli import cli

ROWS = [
    {"id": 1, "title": "bread", "text": "Bread is baked from flour and water."},
    {"id": 2, "title": "stars", "text": "A star is a ball of hot gas."},
    {"id": 3, "title": "empty", "text": ""},
    {"id": 4, "title": "chess", "text": "Chess is played on sixty-four squares, by two."},
]


@pytest.fixture(autouse=True)
def _interruptible():
    """Let Ctrl-C interrupt: what a shell runs in the background ignores it, and its children with it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder, which is the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def corpus(folder):
    """corpus.jsonl with `ROWS`."""
    return write(folder / "corpus.jsonl", ROWS)


@pytest.fixture
def poolembed():
    """Run poolembed; returns click's result, with `exit_code`, `stdout` and `stderr`."""

    def run(*arguments, **settings):
        return CliRunner().invoke(
            cli, [str(argument) for argument in arguments], prog_name="poolembed", **settings
        )

    return run


@pytest.fixture
def embed(poolembed, models):
    """Run `poolembed embed` with a tiny model unless the arguments name another."""

    def run(*arguments, **settings):
        if not {"-m", "--model"} & set(arguments):
            arguments = (*arguments, "--model", models / "bert-mean")
        return poolembed("embed", *arguments, **settings)

    return run


def write(path: Path, rows: list[object]) -> Path:
    """Write a JSON Lines file; strings and bytes are lines as they are."""
    lines = [row if isinstance(row, bytes | str) else json.dumps(row) for row in rows]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join((ln if isinstance(ln, bytes) else ln.encode()) + b"\n" for ln in lines))
    return path


def table_of(result, path="corpus.embed.parquet"):
    """The output of a run that must have gone well."""
    assert result.exit_code == 0, result.output
    return pq.read_table(path)


def vectors(table):
    """The embeddings, shape (num_rows, size), float32."""
    column = table["embedding"].combine_chunks()
    return column.flatten().to_numpy().reshape(len(column), -1)
