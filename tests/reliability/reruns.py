"""Faults between runs: the same command again, another one, two at once, a corpus that changed."""

import os
import subprocess
import sys
import time

import pyarrow.parquet as pq

from poolembed.config import InputConfig, OutputConfig
from poolembed.io import open_job_folder, plan_output
from tests.reliability.fault import ROOT, ROWS, Desk, Fault, Seen

# Long enough for torch to be imported on a busy machine.
PATIENCE_S = 240.0


def again(desk: Desk) -> Seen:
    desk.write(*ROWS)
    desk.embed("corpus.jsonl")
    before = desk.table()
    seen = desk.embed("corpus.jsonl")
    assert desk.table().equals(before)
    return seen


def grown(desk: Desk) -> Seen:
    desk.write(*ROWS)
    desk.embed("corpus.jsonl")
    before = desk.table()
    desk.write(ROWS[2], {"id": 4, "text": "new"}, ROWS[0])
    seen = desk.embed("corpus.jsonl")
    assert desk.table()["id"].to_pylist() == [3, 4, 1]
    vectors = desk.table()["embedding"].to_pylist()
    assert [vectors[0], vectors[2]] == [before["embedding"][row].as_py() for row in (2, 0)]
    return seen


def swapped(desk: Desk) -> Seen:
    first, second, _ = ROWS
    desk.write(first, second)
    desk.embed("corpus.jsonl")
    before = desk.table()["embedding"].to_pylist()
    desk.write(first | {"text": second["text"]}, second | {"text": first["text"]})
    seen = desk.embed("corpus.jsonl")
    assert desk.table()["embedding"].to_pylist() == before[::-1]
    return seen


def repeated_texts(desk: Desk) -> Seen:
    desk.write(*ROWS, *ROWS, *ROWS)
    seen = desk.embed("corpus.jsonl", "--chunk-rows", 2)
    vectors = desk.table()["embedding"].to_pylist()
    assert vectors[:3] == vectors[3:6] == vectors[6:]
    return seen


def other_settings(desk: Desk) -> Seen:
    desk.write(*ROWS)
    desk.embed("corpus.jsonl")
    before = (desk.folder / "corpus.embed.parquet").read_bytes()
    seen = desk.embed("corpus.jsonl", "--max-length", 16)
    assert (desk.folder / "corpus.embed.parquet").read_bytes() == before
    return seen


def changed_output(desk: Desk) -> Seen:
    desk.write(*ROWS)
    desk.embed("corpus.jsonl")
    pq.write_table(desk.table().slice(1), "corpus.embed.parquet")
    seen = desk.embed("corpus.jsonl")
    assert desk.table()["id"].to_pylist() == [2, 3]
    return seen


def two_at_once(desk: Desk) -> Seen:
    desk.write(*ROWS)
    with open_job_folder(plan_output(OutputConfig(), InputConfig(paths=("corpus.jsonl",)), "embed")):
        seen = desk.embed("corpus.jsonl")
    assert desk.names() == ["corpus.jsonl"]
    return seen


def bad_row_late(desk: Desk) -> Seen:
    long = {"id": 9, "text": "word " * 2000}
    desk.write(*ROWS, long)
    assert desk.embed("corpus.jsonl", "--on-long", "error", "--chunk-rows", 2).exit_code == 3
    desk.write(*ROWS)
    return desk.embed("corpus.jsonl", "--on-long", "error")


def killed(desk: Desk) -> Seen:
    """A run is killed when it has kept results, and run again."""
    desk.write(*({"id": number, "text": f"row {number}"} for number in range(600)))
    line = ["embed", "corpus.jsonl", "--chunk-rows", "20", "--batch-tokens", "16"]
    line += ["--model", str(desk.models / "bert-mean"), "--quiet"]
    with subprocess.Popen(
        [sys.executable, "-m", "poolembed", *line],
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)},
    ) as process:
        until = time.monotonic() + PATIENCE_S
        while len(list((desk.folder / ".corpus.embed.parquet.job").glob("results-*.arrow"))) < 2:
            assert process.poll() is None
            assert time.monotonic() < until
            time.sleep(0.01)
        process.kill()
    assert desk.names() == ["corpus.jsonl"]
    seen = desk.embed("corpus.jsonl")
    assert " reused" in seen.says
    assert desk.table()["id"].to_pylist() == list(range(600))
    return seen


REUSED = r"\d[\d,]*(?= tokens| computed| reused)"

RERUNS = [
    Fault("the same command again", "computes nothing; the output is the same", again),
    Fault("the corpus has grown, shrunk, and is in another order", "computes what is new", grown),
    Fault("two rows have swapped their texts", "gives each the vector of its text", swapped),
    Fault("texts that stand in several rows", "computes each once", repeated_texts),
    Fault("other settings than those of the output", "says which; the output stays as it is", other_settings),
    Fault("something else has changed the output", "leaves it as it is", changed_output),
    Fault("another run is at work on the output", "leaves it alone", two_at_once, varies=r"(?<=process )\d+"),
    Fault("a run stopped at a bad row, now mended", "goes on with what was computed", bad_row_late),
    Fault("a run was killed (SIGKILL), and is run again", "goes on", killed, varies=REUSED, slow=True),
]
