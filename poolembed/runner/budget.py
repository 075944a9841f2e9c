"""How many tokens a batch has: found by a short trial and remembered.

More tokens keep a device busier; too many leave the cache of a CPU or the memory of a GPU. The choice
changes speed alone: results stay within the tolerance that packing is held to.
"""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from huggingface_hub.constants import HF_HOME

from poolembed.runner.backbone import Backbone
from poolembed.runner.packing import PackedBatch, TokenizedRows, pack

CPU_CANDIDATES = (1024, 2048, 4096, 8192)
GPU_CANDIDATES = (8192, 16_384, 32_768, 65_536, 131_072)

# Seconds after which no further candidate is tried.
TRIAL_S = 1.0

# A larger budget must be so much faster to be worth its memory.
WORTH_IT = 1.05

ROW_TOKENS = 128

BUDGETS_FILE = Path(HF_HOME) / "poolembed" / "budgets.json"
"""Where choices are remembered."""


def choose_budget(
    backbone: Backbone, key: str, *, max_length: int, token_id: int, file: Path = BUDGETS_FILE
) -> int:
    """Return the most tokens of a batch for a model on a device.

    Args:
        backbone: the loaded model.
        key: names model and precision; the device and its threads are added here.
        max_length: most tokens of a row.
        token_id: any token of the vocabulary.
        file: where choices are remembered; it need not exist, nor be writable.
    """
    key = f"{key} {_device_name(backbone.device)} torch-{torch.__version__}"
    candidates = CPU_CANDIDATES if backbone.device.type == "cpu" else GPU_CANDIDATES
    remembered = _remembered(file).get(key)
    # A release may try others than the one that wrote it down.
    if remembered is not None and remembered in candidates:
        return remembered
    length = min(ROW_TOKENS, max_length)
    budget = fastest(
        candidates, lambda tokens: seconds_of_batch(backbone, tokens // length, length, token_id)
    )
    _remember(file, key, budget)
    return budget


def fastest(candidates: tuple[int, ...], seconds_of: Callable[[int], float]) -> int:
    """Return the candidate with the most tokens a second, the smaller of near equals.

    Args:
        candidates: budgets in tokens, ascending.
        seconds_of: runs a batch of so many tokens and returns its seconds; infinity when it does not fit.
    """
    best, best_rate, spent = candidates[0], 0.0, 0.0
    for tokens in candidates:
        seconds = seconds_of(tokens)
        spent += seconds
        if tokens / seconds > best_rate * WORTH_IT:
            best, best_rate = tokens, tokens / seconds
        if spent > TRIAL_S:
            break
    return best


def seconds_of_batch(backbone: Backbone, num_rows: int, length: int, token_id: int) -> float:
    """Return the seconds of the second run of a batch; infinity when it does not fit the device.

    Args:
        backbone: the loaded model.
        num_rows: rows of the batch; fewer than 1 stand for 1.
        length: tokens of each row.
        token_id: what all tokens are.
    """
    num_rows = max(1, num_rows)
    rows = TokenizedRows(
        token_ids=np.full(num_rows * length, token_id, np.int64),
        lengths=np.full(num_rows, length, np.int64),
        truncated=np.zeros(num_rows, np.bool_),
    )
    batch = pack(rows, np.arange(num_rows))
    try:
        _run(backbone, batch)  # the first run of a size pays for memory and kernels
        started = time.perf_counter()
        _run(backbone, batch)
    except torch.OutOfMemoryError:
        return float("inf")
    return time.perf_counter() - started


def _run(backbone: Backbone, batch: PackedBatch) -> None:
    backbone.forward(batch)
    if backbone.device.type == "cuda":  # pragma: no cover - tests/gpu runs it
        torch.cuda.synchronize(backbone.device)


def _device_name(device: torch.device) -> str:
    if device.type == "cuda":  # pragma: no cover - tests/gpu runs it
        return f"{torch.cuda.get_device_name(device)}"
    return f"{device.type} {torch.get_num_threads()} threads"


def _remembered(file: Path) -> dict[str, int]:
    try:
        content = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    if not isinstance(content, dict):
        return {}
    return {key: value for key, value in content.items() if isinstance(value, int) and value > 0}


def _remember(file: Path, key: str, budget: int) -> None:
    """Write the choice down; where that fails it is only found again."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        temporary = file.with_name(f"{file.name}.{os.getpid()}")
        temporary.write_text(json.dumps(_remembered(file) | {key: budget}, indent=1), "utf-8")
        temporary.replace(file)
    except OSError:
        return
