"""A workload: everybody loads, finds their batch size, shows their vectors, and then takes turns."""

import json
import sys
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.child import Child, Request, WorkerError
from benchmarks.command import Command
from benchmarks.contestants import CONTESTANTS
from benchmarks.figures import spread
from benchmarks.flops import flops
from benchmarks.settings import Settings
from benchmarks.vectors import difference
from benchmarks.workloads import Workload

BATCH_SIZES = (4, 8, 16, 32, 64, 128)
"""Sizes that are tried for a contestant whose caller chooses."""

REFERENCES = ("sentence-transformers", "poolembed", "command")
"""Whose vectors the others' are compared with: the first that takes part."""

NO_VECTORS = ("tokenizers", "ceiling")

Entry = dict[str, Any]


def contest(settings: Settings, name: str, workload: Workload) -> Entry:
    """Measure one workload and return what is written into the result.

    Raises:
        WorkerError: a contestant failed at what it had done before.
        CorpusError: the rows are not there.
    """
    model = settings.model(workload.model)
    if model is None:
        return {"skipped": f"no model {workload.model} (--models DIR)"}
    files = workload.write(settings, name)
    result: Entry = {"title": workload.title, "model": workload.model, "skipped_contestants": {}}
    result["contestants"] = {}
    result |= size_of(settings, workload, model, files["rows"])
    with ExitStack() as stack:
        fields: dict[str, Child | Command] = {}
        requests: dict[str, Request] = {}
        for key in workload.contestants:
            if settings.contestants and key not in settings.contestants:
                continue
            try:
                fields[key] = stack.enter_context(closing(started(settings, key, model, workload.kind)))
                requests[key] = prepared(settings, key, fields[key], files)
            except WorkerError as error:
                fields.pop(key, None)
                result["skipped_contestants"][key] = str(error)
                say(f"{name}: {key} is left out: {error}")
        if not fields:
            return result
        result["contestants"] = turns(settings, name, fields, requests)
        for key, each in fields.items():
            result["contestants"][key] |= {
                "batch_size": requests[key].batch_size,
                "load_s": round(each.load_s, 2),
                "peak_mb": each.peak_mb(),
                "versions": each.about,
            }
        add_differences(result, {key: vectors_file(settings, key) for key in fields})
    return result


def started(settings: Settings, key: str, model: Path, kind: str) -> "Child | Command":
    """Return a contestant that has loaded.

    Raises:
        WorkerError: it cannot take part.
    """
    contestant = CONTESTANTS[key]
    refusal = contestant.refusal(settings)
    if refusal:
        raise WorkerError(refusal)
    return contestant.start(settings, key, model, kind)


def prepared(settings: Settings, key: str, contestant: "Child | Command", files: dict[str, Path]) -> Request:
    """Return the request that is timed, after the search for a batch size and a run to warm up.

    The vectors of that run are kept for comparison.
    """
    rows = files[CONTESTANTS[key].variant]
    size = best_batch_size(contestant, rows) if CONTESTANTS[key].searches else None
    contestant.measure(Request(rows=rows, batch_size=size, vectors=vectors_file(settings, key)))
    say(f"  {key} is warm" + (f", batch size {size}" if size else ""))
    return Request(rows=rows, batch_size=size)


def best_batch_size(contestant: "Child | Command", rows: Path) -> int:
    """Return the fastest of `BATCH_SIZES` on a quarter of the rows, the best of two runs each."""
    with rows.open("rb") as lines:
        limit = max(sum(1 for _ in lines) // 4, 32)
    contestant.measure(Request(rows=rows, limit=limit, batch_size=BATCH_SIZES[0]))
    seconds: dict[int, float] = {}
    for size in BATCH_SIZES * 2:
        took = contestant.measure(Request(rows=rows, limit=limit, batch_size=size))["seconds"]
        seconds[size] = min(took, seconds.get(size, took))
    return min(seconds, key=lambda size: seconds[size])


def turns(
    settings: Settings, name: str, fields: "dict[str, Child | Command]", requests: dict[str, Request]
) -> dict[str, Entry]:
    """Let everybody run once a round; return seconds, summaries and rates of each."""
    answers: dict[str, list[Entry]] = {key: [] for key in fields}
    for number in range(settings.rounds):
        for key, contestant in fields.items():
            answers[key].append(turn(settings, key, contestant, requests[key]))
        took = ", ".join(f"{key} {each[-1]['seconds']:.2f}" for key, each in answers.items())
        say(f"{name}: round {number + 1} of {settings.rounds}: {took} s")
    return {key: summed(each) for key, each in answers.items()}


def turn(settings: Settings, key: str, contestant: "Child | Command", request: Request) -> Entry:
    """Let one contestant run once and return its answer, the ceiling's with its rate."""
    if key != "ceiling":
        return contestant.measure(request)
    # Its array is not vectors: it is the rate of each product.
    path = vectors_file(settings, key)
    answer = contestant.measure(Request(rows=request.rows, vectors=path))
    return answer | {"flops_per_s": float(np.load(path).max())}


def summed(answers: list[Entry]) -> Entry:
    """Return what is kept of a contestant's answers of all rounds."""
    entry: Entry = {"seconds": spread([answer["seconds"] for answer in answers])}
    if "summary" in answers[0]:
        entry["phases"] = phases([answer["summary"] for answer in answers])
    if "flops_per_s" in answers[0]:
        entry["flops_per_s"] = spread([answer["flops_per_s"] for answer in answers])
    return entry


def phases(summaries: list[Entry]) -> Entry:
    """Return the median of every number of seconds that runs told, and the counts of the first."""
    kept: Entry = {}
    for key, value in summaries[0].items():
        if key.endswith("_s") and isinstance(value, float) and not key.endswith("tokens_per_s"):
            kept[key] = round(float(np.median([summary[key] for summary in summaries])), 4)
        elif key.startswith("num_"):
            kept[key] = value
    return kept


def size_of(settings: Settings, workload: Workload, model: Path, rows: Path) -> Entry:
    """Return the number of rows, tokens and floating-point operations, as `tokenizers` counts them."""
    path = vectors_file(settings, "tokenizers")
    with closing(started(settings, "tokenizers", model, workload.kind)) as tokenizer:
        tokenizer.measure(Request(rows=rows, vectors=path))
    lengths = np.load(path).tolist()
    config = json.loads((model / "config.json").read_text("utf-8"))
    return {"num_rows": len(lengths), "num_tokens": int(sum(lengths)), "flops": flops(config, lengths)}


def add_differences(result: Entry, files: dict[str, Path]) -> None:
    """Write into each contestant of `result` how far its vectors are from the reference's."""
    reference = next((key for key in REFERENCES if key in files), None)
    result["reference"] = reference
    for key, path in files.items():
        if reference is None or key in NO_VECTORS or CONTESTANTS[key].variant != "rows":
            continue
        result["contestants"][key]["vectors"] = difference(np.load(path), np.load(files[reference]))


def vectors_file(settings: Settings, key: str) -> Path:
    """Return where a contestant's vectors go."""
    return settings.work / f"{key}.npy"


def say(line: str) -> None:
    """Tell a person how far it is."""
    print(line, file=sys.stderr, flush=True)
