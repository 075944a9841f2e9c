"""A worker process: a contestant that has loaded its model and waits for work."""

import json
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from benchmarks.settings import ROOT, Settings

EXCEPTION = re.compile(r"(?:\w+\.)*\w*(?:Error|Exception|Exit)\b: ")


class WorkerError(Exception):
    """A worker did not start, or ended before it answered."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """One run to be timed.

    Attributes:
        rows: JSON Lines file.
        limit: take this many rows only; None takes all.
        batch_size: rows a batch; None leaves it to the contestant.
        vectors: write what came out to this file.
    """

    rows: Path
    limit: int | None = None
    batch_size: int | None = None
    vectors: Path | None = None


class Child:
    """A worker and the pipe to it.

    Args:
        settings: interpreters and environment.
        peer: whose interpreter.
        module: name in `benchmarks.workers`.
        words: what it is told on its command line.
        log: file for all that it prints.

    Attributes:
        load_s: seconds that it took to load, imports not included.
        about: versions, as it says.

    Raises:
        WorkerError: it did not start; with the last line that it printed.
    """

    def __init__(self, settings: Settings, peer: str, module: str, words: Sequence[str], log: Path) -> None:
        self._log = log
        python = settings.python_of(peer)
        if python is None:
            raise WorkerError(f"no interpreter given (--peer {peer}=PYTHON)")
        with log.open("w", encoding="utf-8") as errors:
            self._process = subprocess.Popen(
                [python, "-m", f"benchmarks.workers.{module}", *words],
                cwd=ROOT,
                env=settings.environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        loaded = self._answer()
        self.load_s: float = loaded["load_s"]
        self.about: dict[str, str] = loaded["about"]

    def measure(self, request: Request) -> dict[str, Any]:
        """Have one run timed; returns at least its `seconds`.

        Raises:
            WorkerError: the worker ended instead.
        """
        fields = {
            "rows": str(request.rows),
            "limit": request.limit,
            "batch_size": request.batch_size,
            "vectors": str(request.vectors) if request.vectors else None,
        }
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(fields) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise WorkerError(self._last_words()) from None
        return self._answer()

    def peak_mb(self) -> float:
        """Return the most memory that the process has held, in 10^6 bytes."""
        status = Path(f"/proc/{self._process.pid}/status").read_text("utf-8")
        [peak] = [line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:")]
        return round(int(peak) * 1024 / 1e6, 1)

    def close(self) -> None:
        """End the worker."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self.close()
            raise WorkerError(self._last_words())
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _last_words(self) -> str:
        return last_words(self._log.read_text("utf-8", errors="replace"))


def last_words(printed: str) -> str:
    """Return the line that says best why a process ended: the last that names an exception, else the last."""
    lines = [line for line in printed.splitlines() if line.strip()]
    named = [line for line in lines if EXCEPTION.match(line)]
    return (named or lines or ["it ended without a word"])[-1][:300]
