"""Seconds from the start of a process to its first batch, beside imports and reading the weights alone."""

import subprocess
import tempfile
import time
from typing import Any

from benchmarks.contest import say
from benchmarks.figures import spread
from benchmarks.settings import ROOT, Settings

MODEL = "all-MiniLM-L6-v2"

READ = "import torch, transformers; open({weights!r}, 'rb').read()"
"""What nobody who uses these libraries can do without."""

EMBED = "from poolembed import PoolingModel; PoolingModel({model!r}).embed({texts!r})"

FIRST = "poolembed, first start with a model"
"""Whose start finds nothing remembered of earlier ones: neither how batches are run nor the tokenizer."""

STARTS = {
    "imports": ("poolembed", READ),
    "poolembed": ("poolembed", EMBED),
    FIRST: ("poolembed", EMBED),
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
            with tempfile.TemporaryDirectory() as nothing:
                environment = {"HF_HOME": nothing} if key == FIRST else {}
                took = timed(settings, [python, "-c", f"{code}; print('done', flush=True)"], environment)
            if number:
                seconds[key].append(took)
    for key, values in seconds.items():
        say(f"startup: {key} {spread(values)['median']:.2f} s")
    return {"model": MODEL} | {key: {"seconds": spread(values)} for key, values in seconds.items()}


def timed(settings: Settings, words: list[str], environment: dict[str, str]) -> float:
    """Return the seconds from the start of a process to what it says first; its end is waited for.

    Raises:
        CalledProcessError: it failed.
    """
    environment = settings.environment | environment
    started = time.perf_counter()
    with subprocess.Popen(
        words, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        took = time.perf_counter() - started
        _, said = process.communicate()
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, words, stderr=said)
    return took
