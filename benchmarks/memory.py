"""Memory of the whole command: at its defaults, and with many rows against few."""

from typing import Any

from benchmarks import corpora
from benchmarks.command import Command
from benchmarks.contest import say
from benchmarks.settings import Settings

DEFAULT_MODEL = "all-MiniLM-L6-v2"
TINY_MODEL = "zoo/bert-mean"

NUM_DOCSTRINGS = 2000


def at_defaults(settings: Settings) -> dict[str, Any]:
    """Return the peak of `poolembed embed` on docstrings, and the size of the weights."""
    model = settings.model(DEFAULT_MODEL)
    if model is None:
        return {"skipped": f"no model {DEFAULT_MODEL} (--models DIR)"}
    count = max(8, round(NUM_DOCSTRINGS * settings.scale))
    rows = corpora.write(corpora.first(corpora.docstrings(settings), count), settings.work / "memory.jsonl")
    command = Command(settings, model, "embed", settings.work)
    measured = command.memory(rows)
    command.close()
    summary = measured.pop("summary")
    weights = sum(path.stat().st_size for path in model.glob("*.safetensors"))
    found = {"num_rows": summary["num_rows"], **measured, "model_mb": round(weights / 1e6, 1)}
    say(f"memory: {found}")
    return {"model": DEFAULT_MODEL, **found}


def by_rows(settings: Settings, counts: tuple[int, ...]) -> dict[str, Any]:
    """Return the peak of `poolembed embed` with a tiny model for each number of short, distinct rows.

    Args:
        settings: interpreter, folders and options.
        counts: numbers of rows, the smaller one first.
    """
    model = settings.model(TINY_MODEL)
    if model is None:
        return {"skipped": f"no model {TINY_MODEL} (--shared DIR)"}
    found = []
    for count in counts:
        rows = corpora.write(corpora.numbered(settings, count), settings.work / "many.jsonl")
        command = Command(settings, model, "embed", settings.work)
        measured = command.memory(rows)
        command.close()
        rows.unlink()
        summary = measured.pop("summary")
        found.append({"num_rows": summary["num_rows"], **measured, "run_s": round(summary["run_s"], 1)})
        say(f"memory: {found[-1]}")
    return {"model": TINY_MODEL, "runs": found}
