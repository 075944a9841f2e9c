"""Seconds from the start of a process to its first batch, beside imports and reading the weights alone."""

import subprocess
import time
from pathlib import Path
from typing import Any

from benchmarks.contest import say
from benchmarks.figures import spread
from benchmarks.settings import ROOT, Settings

MODEL = "all-MiniLM-L6-v2"

READ = "import torch, transformers; open({weights!r}, 'rb').read()"
"""What nobody who uses these libraries can do without."""

STARTS = {
    "imports": ("poolembed", READ),
    "poolembed": (
        "poolembed",
        "from poolembed import PoolingModel; PoolingModel({model!r}).embed({texts!r})",
    ),
    "sentence-transformers": (
        "sentence-transformers",
        "from sentence_transformers import SentenceTransformer; "
        "SentenceTransformer({model!r}, device='cpu').encode({texts!r})",
    ),
}
"""Whose interpreter, and what it runs."""

TEXTS = ["the first of eight short texts"] * 8


def startup(settings: Settings) -> dict[str, Any]:
    """Return seconds to the first batch of everybody who has an interpreter, in turns."""
    model = settings.model(MODEL)
    if model is None:
        return {"skipped": f"no model {MODEL} (--models DIR)"}
    present = {
        key: (python, code.format(model=str(model), weights=str(model / "model.safetensors"), texts=TEXTS))
        for key, (peer, code) in STARTS.items()
        if (python := settings.python_of(peer))
    }
    seconds: dict[str, list[float]] = {key: [] for key in present}
    # The first round is not counted: it brings files into the page cache.
    for number in range(settings.rounds + 1):
        for key, (python, code) in present.items():
            took = timed(settings, [python, "-c", code])
            if number:
                seconds[key].append(took)
    for key, values in seconds.items():
        say(f"startup: {key} {spread(values)['median']:.2f} s")
    return {"model": MODEL} | {key: {"seconds": spread(values)} for key, values in seconds.items()}


def timed(settings: Settings, words: list[str], folder: Path = ROOT) -> float:
    """Return the seconds of a process from start to end.

    Raises:
        CalledProcessError: it failed.
    """
    started = time.perf_counter()
    subprocess.run(words, cwd=folder, env=settings.environment, check=True, capture_output=True)
    return time.perf_counter() - started
