"""The whole command, `poolembed embed` or `poolembed score`, in a process of its own, with files and all."""

import json
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

from benchmarks.child import Request, WorkerError
from benchmarks.settings import ROOT, Settings

SAMPLE_S = 0.05
"""Seconds between two looks at a command's memory."""


class Command:
    """A contestant that starts anew for every run; its seconds are those of the run, without loading.

    Args:
        settings: interpreter, environment and options.
        model: model folder.
        kind: `embed` or `pairs`.
        work: folder for its output.
        options: words added to those of the settings.
    """

    def __init__(
        self, settings: Settings, model: Path, kind: str, work: Path, options: Sequence[str] = ()
    ) -> None:
        self._settings = settings
        self._words = ["score" if kind == "pairs" else "embed"]
        self._options = ["--model", str(model), "--device", "cpu", *settings.options, *options]
        self._output = work / "command.parquet"
        self.load_s = 0.0
        self.about: dict[str, str] = {}

    def measure(self, request: Request) -> dict[str, Any]:
        """Run once from file to file; returns `seconds` and the command's own `summary`.

        Raises:
            WorkerError: the command failed.
        """
        summary, wall_s = self._run(request.rows)
        if request.vectors is not None:
            np.save(request.vectors, vectors_of(self._output))
        self.load_s = summary["load_s"]
        return {"seconds": summary["run_s"], "summary": summary | {"wall_s": wall_s}}

    def memory(self, rows: Path) -> dict[str, Any]:
        """Run once while its memory is watched; returns `peak_mb`, `alone_mb` and `summary`.

        `peak_mb` counts the command and its workers together, pages that they share once; `alone_mb` is the
        most that one process of them had resident.
        """
        peak = Peak()
        summary, wall_s = self._run(rows, peak)
        return {
            "peak_mb": round(peak.together / 1e6, 1),
            "alone_mb": round(peak.alone / 1e6, 1),
            "summary": summary | {"wall_s": wall_s},
        }

    def close(self) -> None:
        """Remove the output."""
        for path in self._output.parent.glob(f"*{self._output.name}*"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    def peak_mb(self) -> None:
        """Return nothing: only `memory` watches, for to look costs time."""

    def _run(self, rows: Path, peak: "Peak | None" = None) -> tuple[dict[str, Any], float]:
        python = self._settings.python_of("poolembed")
        assert python is not None
        words = [*self._words, str(rows), "-o", str(self._output), "--overwrite", "--quiet", "--json"]
        started = time.perf_counter()
        process = subprocess.Popen(
            [python, "-m", "poolembed", *words, *self._options],
            cwd=ROOT,
            env=self._settings.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        watch = threading.Thread(target=peak.watch, args=(process.pid,)) if peak else None
        if watch:
            watch.start()
        printed, errors = process.communicate()
        wall_s = time.perf_counter() - started
        if watch:
            watch.join()
        if process.returncode:
            raise WorkerError(f"exit code {process.returncode}: {errors.strip().splitlines()[-1:]}")
        summary: dict[str, Any] = json.loads(printed)
        return summary, wall_s


class Peak:
    """The most memory of a process and its descendants.

    Attributes:
        together: bytes, pages that several share counted once (proportional set sizes, sampled).
        alone: bytes of the one that had the most (VmHWM, exact up to its last moments).
    """

    def __init__(self) -> None:
        self.together = 0
        self.alone = 0

    def watch(self, pid: int) -> None:
        """Look until the process has ended."""
        while Path(f"/proc/{pid}").is_dir() and _field(pid, "status", "VmHWM"):
            family = [pid, *descendants(pid)]
            self.together = max(self.together, sum(_field(each, "smaps_rollup", "Pss") for each in family))
            self.alone = max(self.alone, *(_field(each, "status", "VmHWM") for each in family))
            time.sleep(SAMPLE_S)


def descendants(pid: int) -> list[int]:
    """Return the processes that descend from one."""
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = [int(child) for child in task.read_text("ascii").split()]
        except OSError:
            continue
        for child in children:
            found += [child, *descendants(child)]
    return found


def _field(pid: int, file: str, name: str) -> int:
    """Return bytes of a `Name:  123 kB` line below /proc; 0 where the process has ended."""
    try:
        text = Path(f"/proc/{pid}/{file}").read_text("utf-8")
    except (OSError, ProcessLookupError):
        return 0
    return next((int(line.split()[1]) * 1024 for line in text.splitlines() if line.startswith(f"{name}:")), 0)


def vectors_of(output: Path) -> npt.NDArray[np.float32]:
    """Return the vectors or scores of a Parquet file that poolembed wrote."""
    table = pq.read_table(output)
    if "embedding" not in table.column_names:
        scores: npt.NDArray[np.float32] = table["score"].to_numpy().astype(np.float32)
        return scores
    column = table["embedding"].combine_chunks()
    values: npt.NDArray[np.float32] = column.flatten().to_numpy().astype(np.float32)
    return values.reshape(table.num_rows, -1)


def has_option(settings: Settings, option: str) -> bool:
    """Whether `poolembed embed` knows an option; what it does not know is not measured."""
    python = settings.python_of("poolembed")
    assert python is not None
    done = subprocess.run(
        [python, "-m", "poolembed", "embed", "--help"],
        cwd=ROOT,
        env=os.environ | settings.environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return option in done.stdout
