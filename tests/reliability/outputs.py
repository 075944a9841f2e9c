"""Faults of outputs, of the disk, and of files that report on a run."""

import contextlib
import json
import os
import resource
import subprocess
import sys

import numpy as np

from tests.reliability.fault import ROOT, ROWS, Desk, Fault, Seen
from tests.reliability.inputs import told

KEEPS = "stops before the model is loaded; what is there stays as it is"


@contextlib.contextmanager
def disk_with(num_bytes):
    """Let writes fail beyond a size, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (num_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def keeps(name, *options):
    """What is there under a name is refused, and stays."""

    def run(desk: Desk) -> Seen:
        desk.write(*ROWS)
        path = desk.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("precious")
        seen = desk.embed("corpus.jsonl", *options)
        assert path.read_text() == "precious"
        return seen

    return run


def failed_overwrite(desk: Desk) -> Seen:
    desk.write(*ROWS)
    desk.embed("corpus.jsonl")
    before = (desk.folder / "corpus.embed.parquet").read_bytes()
    seen = desk.embed("corpus.jsonl", "--overwrite", "--model", "./nowhere")
    assert (desk.folder / "corpus.embed.parquet").read_bytes() == before
    return seen


def full_disk(desk: Desk) -> Seen:
    desk.write(*ROWS)
    desk.embed("corpus.jsonl")
    before = (desk.folder / "corpus.embed.parquet").read_bytes()
    noise = np.random.default_rng(0).integers(48, 90, (20, 5_000))
    desk.write(*({"text": "".join(map(chr, row))} for row in noise))
    with disk_with(20_000):
        seen = desk.embed("corpus.jsonl", "--overwrite")
    assert (desk.folder / "corpus.embed.parquet").read_bytes() == before
    assert desk.names() == ["corpus.embed.parquet", "corpus.jsonl"]
    return seen


def output_is_input(desk: Desk) -> Seen:
    desk.write(*ROWS)
    desk.embed("corpus.jsonl", "-o", "a.parquet")
    return desk.embed("a.parquet", "-o", "a.parquet", "--overwrite", "--columns", "id,text")


def name_of_result(desk: Desk) -> Seen:
    desk.write({"text": "a", "embedding": 1})
    return desk.embed("corpus.jsonl")


def no_array(desk: Desk) -> Seen:
    desk.write(*ROWS)
    seen = desk.embed("corpus.jsonl", "-o", "out.npy", command="token-embed")
    assert desk.names() == ["corpus.jsonl"]
    return seen


def in_a_log(desk: Desk) -> Seen:
    desk.write(*ROWS)
    done = subprocess.run(
        [sys.executable, "-m", "poolembed", "embed", "corpus.jsonl", "--model", desk.models / "bert-mean"],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        check=False,
    )
    assert b"\r" not in done.stderr
    assert done.stdout == b""
    return Seen.of(done.returncode, done.stderr.decode())


def metrics_of_failure(desk: Desk) -> Seen:
    desk.write(*ROWS)
    desk.embed("corpus.jsonl", "--metrics", "m.prom", "--status", "s.json")
    success = [line for line in (desk.folder / "m.prom").read_text().splitlines() if "last_success" in line]
    seen = desk.embed("corpus.jsonl", "--metrics", "m.prom", "--status", "s.json", "--max-length", 16)
    after = (desk.folder / "m.prom").read_text()
    assert success[-1] in after
    assert 'poolembed_exit_code{command="embed",target="corpus.jsonl"} 6' in after
    assert json.loads((desk.folder / "s.json").read_text())["exit_code"] == seen.exit_code
    return seen


OUTPUTS = [
    Fault("somebody else's file has the name of the output", KEEPS, keeps("corpus.embed.parquet")),
    Fault("a file beside it exists", KEEPS, keeps("x.npy.rows.parquet", "-o", "x.npy")),
    Fault("the folder holds parts of somebody else", KEEPS, keeps("out/part-00000.parquet", "-o", "out/")),
    Fault("a run with `--overwrite` fails", "leaves the old output whole", failed_overwrite),
    Fault("the disk is full", "removes what was begun; the old output stays whole", full_disk),
    Fault("no file can be made in the folder", "stops", told("corpus.jsonl", "-o", "/proc/out.parquet")),
    Fault("the folder of the output is not there", KEEPS, told("corpus.jsonl", "-o", "nowhere/x.parquet")),
    Fault("the output is an input", "refuses to replace it", output_is_input),
    Fault("an input column has the name of a result", "stops; no column is lost", name_of_result),
    Fault(
        "the name of the output says no format", "says which there are", told("corpus.jsonl", "-o", "x.csv")
    ),
    Fault(
        "name and `--format` contradict each other",
        "stops",
        told("corpus.jsonl", "-o", "x.npy", "--format", "arrow"),
    ),
    Fault("results that are no array, as `.npy`", "stops; no output is left", no_array),
    Fault(
        "the status file cannot be written",
        "stops before anything is done",
        told("corpus.jsonl", "--status", "nowhere/status.json"),
    ),
    Fault(
        "the name of the status file is that of an input",
        "stops; the input stays as it is",
        told("corpus.jsonl", "--status", "corpus.jsonl"),
    ),
    Fault(
        "a run with `--metrics` fails",
        "shows the exit code, and when a run last ended well",
        metrics_of_failure,
    ),
    Fault("standard error is a log", "writes whole lines, and no bar", in_a_log, slow=True),
]
