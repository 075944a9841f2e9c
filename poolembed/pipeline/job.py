"""A run from its input files to its output files.

Three stages overlap through bounded queues: read and tokenize chunk k+1, compute chunk k, write chunk
k-1. The first failure stops all of them, and nothing under the final name is half-written.
"""

import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from poolembed.config import JobConfig
from poolembed.errors import InputError
from poolembed.io import ResultColumn, RowChunk, Sink, Source, open_sink, open_source
from poolembed.pipeline.commands import COMMANDS, Command
from poolembed.pipeline.prefetch import prefetch
from poolembed.pipeline.summary import RunSummary

if TYPE_CHECKING:
    from poolembed.runner import PooledRows, PoolingRunner, TokenizedRows


class Progress(Protocol):
    """Someone to whom a run tells how far it is."""

    def note(self, message: str) -> None:
        """Take something worth knowing, told once."""

    def start(self, num_rows: int) -> None:
        """Take the number of rows that will come."""

    def advance(self, num_rows: int, num_tokens: int) -> None:
        """Take the rows and tokens computed since the last call."""


@dataclass(slots=True)
class _Tally:
    num_rows: int = 0
    num_rejected: int = 0
    num_truncated: int = 0
    num_replaced: int = 0
    num_tokens: int = 0
    forward_s: float = 0.0
    wait_s: float = 0.0

    def count(self, chunk: RowChunk, tokens: "TokenizedRows") -> None:
        self.num_rows += chunk.num_rows
        self.num_rejected += len(chunk.rejects)
        self.num_replaced += chunk.num_replaced
        self.num_truncated += int(tokens.truncated.sum())
        self.num_tokens += len(tokens.token_ids)


def run_job(job: JobConfig, progress: Progress) -> RunSummary:
    """Read rows, compute, write.

    Everything that can be wrong with the input and the output is found before the model is loaded.

    Args:
        job: what to do; already checked.
        progress: told how far the run is.

    Raises:
        PoolembedError: the run failed; no output has its final name, and an old one is whole.
    """
    started = time.monotonic()
    command = COMMANDS[job.command]
    with open_source(job.input, command.roles) as source, open_sink(job, source) as sink:
        from poolembed.runner import load_runner

        runner = load_runner(job.model, job.pooler, job.run.batch_tokens)
        for warning in runner.warnings:
            progress.note(warning)
        sink.begin(_result_columns(command, runner), runner.describe())
        loaded = time.monotonic()
        progress.start(source.num_rows)
        tally = _run(job, command, runner, source, sink, progress)
        outputs = sink.commit()
    return RunSummary(
        command=job.command,
        outputs=tuple(str(path) for path in outputs),
        model=runner.folder.name,
        device=str(runner.backbone.device),
        dtype=runner.dtype,
        attention=runner.check.path,
        self_check=runner.check.max_difference,
        num_rows=tally.num_rows,
        num_rejected=tally.num_rejected,
        num_truncated=tally.num_truncated,
        num_replaced=tally.num_replaced,
        num_tokens=tally.num_tokens,
        load_s=loaded - started,
        run_s=time.monotonic() - loaded,
        forward_s=tally.forward_s,
        wait_s=tally.wait_s,
    )
