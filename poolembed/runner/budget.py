"""How many batches are computed at once, and of how many tokens: found by short trials and remembered.

More tokens keep a device busier; too many leave the cache of a CPU or the memory of a GPU. The choices
change speed alone: results stay within the tolerance that packing is held to.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from poolembed.runner.backbone import Backbone
from poolembed.runner.packing import PackedBatch, TokenizedRows, pack
from poolembed.runner.remembered import FOLDER, recall, remember
from poolembed.runner.workers import ALONE, Workers, candidates

CPU_CANDIDATES = (1024, 2048, 4096, 8192)
GPU_CANDIDATES = (8192, 16_384, 32_768, 65_536, 131_072)

# Seconds after which no further candidate is tried.
TRIAL_S = 1.0

# A larger budget must be so much faster to be worth the memory, and one worker to be taken instead of more:
# these are faster wherever it was measured, by more than a trial of a second can tell on a busy machine.
WORTH_IT = 1.1

# Best of so many runs, unless they take long: others who use the machine make some of them slow.
NUM_RUNS = 3
LONG_RUN_S = 0.3

# A batch of the trial of workers.
TRIAL_TOKENS = 512

ROW_TOKENS = 128

BUDGETS_FILE = FOLDER / "budgets.json"
"""Where choices are remembered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trials:
    """The trials of one loaded model.

    Attributes:
        backbone: the loaded model.
        key: names model and precision; the device and its threads are added here.
        max_length: most tokens of a row.
        token_id: any token of the vocabulary.
        file: where choices are remembered; it need not exist, nor be writable.
    """

    backbone: Backbone
    key: str
    max_length: int
    token_id: int
    file: Path = BUDGETS_FILE

    def workers(self, wanted: int | None) -> Workers:
        """Return the workers that the user wants, or those that are faster on a CPU.

        Args:
            wanted: how many; None leaves it to a trial.
        """
        tried = candidates(wanted, self.backbone.device)
        if len(tried) == 1:
            return tried[0]
        alone, several = tried
        number = self._choice("workers", (alone.number, several.number), lambda: self._faster(alone, several))
        return alone if number == alone.number else several

    def batch_tokens(self, workers: Workers) -> int:
        """Return the most tokens of a batch for `workers`."""
        budgets = CPU_CANDIDATES if self.backbone.device.type == "cpu" else GPU_CANDIDATES
        num_threads = torch.get_num_threads()
        torch.set_num_threads(workers.num_threads)
        try:
            name = f"batch tokens of {workers.num_threads} threads"
            return self._choice(name, budgets, lambda: fastest(budgets, self._seconds_of))
        finally:
            torch.set_num_threads(num_threads)

    def _faster(self, alone: Workers, several: Workers) -> int:
        """Return the number of those who are faster with a small batch for each of the several."""
        rows = self._rows(TRIAL_TOKENS)
        seconds = [
            [
                # Once, as all take turns: the first start of a model waits for this.
                seconds_of_batch(self.backbone, rows, workers, num_batches=several.number, num_runs=1)
                for workers in (alone, several)
            ]
            for _ in range(NUM_RUNS)
        ]
        best_alone, best_several = (min(each) for each in zip(*seconds, strict=True))
        return alone.number if best_several > WORTH_IT * best_alone else several.number

    def _seconds_of(self, num_tokens: int) -> float:
        return seconds_of_batch(self.backbone, self._rows(num_tokens))

    def _rows(self, num_tokens: int) -> TokenizedRows:
        """Return rows of equal length with about so many tokens, at least one row."""
        length = min(ROW_TOKENS, self.max_length)
        num_rows = max(1, num_tokens // length)
        return TokenizedRows(
            token_ids=np.full(num_rows * length, self.token_id, np.int64),
            lengths=np.full(num_rows, length, np.int64),
            truncated=np.zeros(num_rows, np.bool_),
        )

    def _choice(self, name: str, allowed: tuple[int, ...], find: Callable[[], int]) -> int:
        """Return what was chosen before, or else find it and write it down."""
        key = f"{self.key} {_device_name(self.backbone.device)} torch-{torch.__version__} {name}"
        remembered = recall(self.file, key)
        # A release may try others than the one that wrote it down.
        if isinstance(remembered, int) and remembered in allowed:
            return remembered
        found = find()
        remember(self.file, key, found)
        return found


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


def seconds_of_batch(
    backbone: Backbone,
    rows: TokenizedRows,
    workers: Workers = ALONE,
    *,
    num_batches: int = 1,
    num_runs: int = NUM_RUNS,
) -> float:
    """Return the least seconds of a batch, after a run to warm up; infinity when it does not fit the device.

    Args:
        backbone: the loaded model.
        rows: what is in the batch.
        workers: who compute.
        num_batches: how often they compute it in a run.
        num_runs: most runs to take the best of, unless they take long.
    """
    every = np.arange(len(rows.lengths))
    batch = pack(rows, every)
    seconds: list[float] = []
    try:
        # The first run of a size pays for memory and kernels.
        while len(seconds) < 2 or (len(seconds) <= num_runs and seconds[-1] < LONG_RUN_S):
            started = time.perf_counter()
            for _ in workers.run(lambda _: _run(backbone, batch), [every] * num_batches):
                pass
            seconds.append(time.perf_counter() - started)
    except torch.OutOfMemoryError:
        return float("inf")
    return min(seconds[1:])


def _run(backbone: Backbone, batch: PackedBatch) -> None:
    backbone.forward(batch)
    if backbone.device.type == "cuda":  # pragma: no cover - tests/gpu runs it
        torch.cuda.synchronize(backbone.device)


def _device_name(device: torch.device) -> str:
    if device.type == "cuda":  # pragma: no cover - tests/gpu runs it
        return f"{torch.cuda.get_device_name(device)}"
    return f"{device.type} {torch.get_num_threads()} threads"
