"""Faults of models and options, budgets, deadlines and signals."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

from safetensors.torch import load_file, save_file

from tests.reliability.fault import ROOT, ROWS, Desk, Fault, Seen
from tests.reliability.inputs import BEFORE, told

# Long enough for torch to be imported on a busy machine.
PATIENCE_S = 240.0
BAD = {"id": 9, "text": None}
LONG = {"id": 9, "text": "word " * 2000}


def many_rows(count: int) -> list[dict[str, object]]:
    """Rows of different texts, as equal ones are computed once."""
    return [{"id": number, "text": f"{number} {ROWS[number % 3]['text']}"} for number in range(count)]


def own_model(desk: Desk) -> None:
    shutil.copytree(desk.models / "bert-mean", desk.folder / "model")


def cut_weights(desk: Desk) -> Seen:
    desk.write(*ROWS)
    own_model(desk)
    weights = desk.folder / "model" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    return desk.embed("corpus.jsonl", "--model", "./model")


def no_weights(desk: Desk) -> Seen:
    desk.write(*ROWS)
    own_model(desk)
    (desk.folder / "model" / "model.safetensors").unlink()
    return desk.embed("corpus.jsonl", "--model", "./model")


def poisoned(*options):
    """The embedding of [MASK], which no random row of the self-check has, is NaN."""

    def run(desk: Desk) -> Seen:
        desk.write(*ROWS, {"id": 4, "text": "[MASK]"})
        own_model(desk)
        path = desk.folder / "model" / "model.safetensors"
        weights = load_file(path)
        [name] = [name for name in weights if name.endswith("word_embeddings.weight")]
        vocabulary = json.loads((desk.folder / "model" / "tokenizer.json").read_text("utf-8"))["model"][
            "vocab"
        ]
        weights[name][vocabulary["[MASK]"]] = float("nan")
        save_file(weights, path, {"format": "pt"})
        seen = desk.embed("corpus.jsonl", "--model", "./model", *options)
        if options:
            assert desk.codes() == ["non_finite"]
            assert desk.table()["id"].to_pylist() == [1, 2, 3]
        else:
            assert not [name for name in desk.names() if "embed" in name]
        return seen

    return run


def budget(*options, rows=(*ROWS, BAD, BAD)):
    """A budget, and an output only where it is kept."""

    def run(desk: Desk) -> Seen:
        desk.write(*rows)
        seen = desk.embed("corpus.jsonl", *options)
        assert (seen.exit_code == 0) == ((desk.folder / "corpus.embed.parquet").exists())
        if seen.exit_code:
            assert desk.names() == ["corpus.jsonl"]
        return seen

    return run


def unknown_key(desk: Desk) -> Seen:
    desk.write(*ROWS)
    (desk.folder / "run.toml").write_text("btach-tokens = 7\n")
    return desk.embed("corpus.jsonl", "--config", "run.toml")


def deadline(desk: Desk) -> Seen:
    desk.write(*many_rows(6000))
    seen = desk.embed(
        *("corpus.jsonl", "-o", "out/", "--chunk-rows", 20, "--batch-tokens", 1, "--deadline", "1s")
    )
    assert desk.names() == ["corpus.jsonl"]
    assert list((desk.folder / "out" / ".job").glob("results-*.arrow"))
    return seen


def signalled(number):
    """A signal comes while rows are computed; what was computed is kept, and no part has its name."""

    def run(desk: Desk) -> Seen:
        desk.write(*many_rows(9000))
        line = ["embed", "corpus.jsonl", "-o", "out/", "--chunk-rows", "20", "--batch-tokens", "1"]
        line += ["--status", "status.json", "--model", str(desk.models / "bert-mean")]
        with subprocess.Popen(
            [sys.executable, "-m", "poolembed", *line],
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
            env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)},
        ) as process:
            wait_until_running(desk, process)
            process.send_signal(number)
            _, stderr = process.communicate(timeout=PATIENCE_S)
        assert [name for name in desk.names() if name.startswith("out/")] == []
        assert list((desk.folder / "out" / ".job").glob("results-*.arrow"))
        status = json.loads((desk.folder / "status.json").read_text("utf-8"))
        assert (status["phase"], status["exit_code"]) == ("stopped", process.returncode)
        return Seen.of(process.returncode, stderr)

    return run


def wait_until_running(desk: Desk, process: "subprocess.Popen[str]") -> None:
    """Wait until the status file says that rows are done."""
    until = time.monotonic() + PATIENCE_S
    path = desk.folder / "status.json"
    while time.monotonic() < until:
        assert process.poll() is None, process.stderr.read()
        if path.exists() and json.loads(path.read_text("utf-8"))["rows_done"] > 20:
            return
        time.sleep(0.05)
    raise AssertionError("no row was done")


SKIP = ("--on-error", "skip")
LEFT = r"[\d,]+(?= of [\d,]+ rows are left)"
CHUNK = "ends after the chunk at hand; what is done is kept"
KEPT = "ends after the batch at hand; what is done is kept"

RUNS = [
    Fault("the model's folder is not there", BEFORE, told("corpus.jsonl", model="./nowhere")),
    Fault(
        "a hub name without a network", "stops; nothing is guessed", told("corpus.jsonl", model="org/none")
    ),
    Fault("the model has no weights", "stops", no_weights),
    Fault("the weights are cut off", "stops", cut_weights),
    Fault("the model gives NaN for a text", "stops; no NaN is ever written", poisoned()),
    Fault("the same, `--on-error skip`", "sets the row aside, and goes on", poisoned(*SKIP)),
    Fault("an option that does not exist", "says what is near", told("corpus.jsonl", "--btach-tokens", "7")),
    Fault(
        "options that contradict each other",
        "lists all",
        told("corpus.jsonl", "--limit", 0, "--deadline", 9),
    ),
    Fault("an unknown key in the file of options", "says what is near", unknown_key),
    Fault(
        "more rejects than `--max-rejects`",
        "stops at once; no output is left",
        budget(*SKIP, "--max-rejects", 1),
    ),
    Fault("a larger share than `--max-rejects`", "the same", budget(*SKIP, "--max-rejects", "10%")),
    Fault(
        "rejects within `--max-rejects`",
        "writes the output and the rejects",
        budget(*SKIP, "--max-rejects", 2),
    ),
    Fault("`--max-rejects` without `--on-error skip`", "stops", budget("--max-rejects", 2)),
    Fault(
        "more cut texts than `--max-truncated`",
        "stops at once; no output is left",
        budget("--max-truncated", "20%", rows=(*ROWS, LONG)),
    ),
    Fault("`--deadline` comes before the last row", CHUNK, deadline, varies=LEFT, slow=True),
    Fault("SIGTERM", KEPT, signalled(signal.SIGTERM), varies=LEFT, slow=True),
    Fault("Ctrl-C", KEPT, signalled(signal.SIGINT), varies=LEFT, slow=True),
]
