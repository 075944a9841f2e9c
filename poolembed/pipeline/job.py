"""A run from its input files to its output files.

Three stages overlap through bounded queues: read and tokenize chunk k+1, compute chunk k, write chunk
k-1. The first failure stops all of them, and nothing under the final name is half-written.
"""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from poolembed import __version__
from poolembed.config import JobConfig
from poolembed.errors import InputError
from poolembed.io import RowChunk, Sink, open_sink, open_source, plan_output
from poolembed.pipeline.commands import COMMANDS
from poolembed.pipeline.prefetch import prefetch
from poolembed.pipeline.row_texts import RowTexts
from poolembed.pipeline.summary import RunSummary
from poolembed.pipeline.template import Template
from poolembed.results import ColumnData, ResultColumn

if TYPE_CHECKING:
    from poolembed.model import Operation, Outcome

T = TypeVar("T")

COUNTS = (ResultColumn("num_tokens", "int32"), ResultColumn("truncated", "bool"))
"""Columns that every command adds."""


class Progress(Protocol):
    """Someone to whom a run tells how far it is."""

    def note(self, message: str) -> None:
        """Take something worth knowing, told once."""

    def start(self, num_rows: int) -> None:
        """Take the number of rows that will come."""

    def advance(self, num_rows: int, num_tokens: int) -> None:
        """Take what was done since the last call.

        Args:
            num_rows: rows that are done, rejected ones included.
            num_tokens: tokens computed for them.
        """


def run_job(job: JobConfig, progress: Progress) -> RunSummary:
    """Read rows, compute, write.

    Everything that can be wrong with the input and the output is found before the model is loaded.

    Args:
        job: what to do; already checked.
        progress: told how far the run is.

    Returns:
        How the run ended.

    Raises:
        PoolembedError: the run failed; no output has its final name, and an old one is whole.
    """
    started = time.monotonic()
    command = COMMANDS[job.command]
    template = None if job.input.template is None else Template.parse(job.input.template)
    roles = command.roles if template is None else template.roles
    with open_source(job.input, roles) as source:
        plan_output(job.output, job.input, job.command)
        from poolembed.runner import describe_model

        _, spec = describe_model(job.model, job.pooler)
        command.check(spec, job)
        # Only now, so that what the model cannot do is said without waiting for torch.
        from poolembed.runner import load_runner

        runner = load_runner(job.model, job.pooler, job.run.batch_tokens, job.run.workers)
        for warning in runner.warnings:
            progress.note(warning)
        rows = RowTexts(source, template)
        operation = command.prepare(command.operation(runner, job), job, rows)
        columns = [*operation.columns, *COUNTS]
        metadata = {"version": __version__, **operation.metadata, **rows.metadata}
        with open_sink(job.output, job.input, job.command, source.schema, columns, metadata) as sink:
            loaded = time.monotonic()
            progress.start(source.num_rows)
            run = _Run(job=job, operation=operation, progress=progress)
            run.through(rows, sink)
            outputs = sink.commit()
    return RunSummary(
        command=job.command,
        outputs=tuple(str(path) for path in outputs),
        model=runner.folder.name,
        device=str(runner.backbone.device),
        dtype=runner.dtype,
        workers=1 if runner.workers is None else runner.workers.num_workers,
        attention=runner.check.path,
        self_check=runner.check.max_difference,
        load_s=loaded - started,
        run_s=time.monotonic() - loaded,
        **asdict(run.tally),
    )


@dataclass(slots=True, kw_only=True)
class _Tally:
    num_rows: int = 0
    num_rejected: int = 0
    num_truncated: int = 0
    num_replaced: int = 0
    num_tokens: int = 0
    forward_s: float = 0.0
    wait_s: float = 0.0


@dataclass(slots=True, kw_only=True)
class _Run:
    """One pass over the chunks; the stages share nothing but what they hand on."""

    job: JobConfig
    operation: "Operation"
    progress: Progress
    tally: _Tally = field(default_factory=_Tally)

    def through(self, rows: RowTexts, sink: Sink) -> None:
        """Take every chunk of rows through the model to the sink."""
        with (
            closing(prefetch(self._tokenized(rows))) as chunks,
            ThreadPoolExecutor(max_workers=1, thread_name_prefix="poolembed-write") as writer,
        ):
            written: Future[None] | None = None
            while (item := self._waited(next, chunks, None)) is not None:
                chunk, results = self._computed(*item)
                if written is not None:
                    self._waited(written.result)
                written = writer.submit(sink.write, chunk, results)
            if written is not None:
                self._waited(written.result)

    def _tokenized(self, rows: RowTexts) -> Iterator[tuple[RowChunk, Any]]:
        run, most = self.job.run, COMMANDS[self.job.command].max_chunk_rows
        for chunk in rows.source.chunks(min(run.chunk_rows, most or run.chunk_rows), run.chunk_bytes):
            yield chunk, self.operation.tokenize(rows.of(chunk))

    def _computed(self, chunk: RowChunk, tokens: Any) -> tuple[RowChunk, dict[str, ColumnData]]:  # noqa: ANN401
        started = time.monotonic()
        outcome = self.operation.compute(tokens, self._advance)
        self.tally.forward_s += time.monotonic() - started
        failed = {row: (failure.code, failure.message) for row, failure in outcome.failures.items()}
        if failed and self.job.input.on_error == "fail":
            raise _stopped(chunk, failed)
        chunk, outcome = chunk.without(failed), outcome.without_failures()
        self._count(chunk, outcome)
        return chunk, {
            **outcome.columns,
            "num_tokens": outcome.num_tokens,
            "truncated": outcome.truncated,
        }

    def _count(self, chunk: RowChunk, outcome: "Outcome") -> None:
        tally = self.tally
        tally.num_rows += chunk.num_rows
        tally.num_rejected += len(chunk.rejects)
        tally.num_replaced += chunk.num_replaced
        tally.num_truncated += int(outcome.truncated.sum())
        self.progress.advance(len(chunk.rejects), 0)

    def _advance(self, num_rows: int, num_tokens: int) -> None:
        # Not the sum over rows: a text that several rows have in common is computed once.
        self.tally.num_tokens += num_tokens
        self.progress.advance(num_rows, num_tokens)

    def _waited(self, wait_for: Callable[..., T], *arguments: Any) -> T:  # noqa: ANN401
        started = time.monotonic()
        try:
            return wait_for(*arguments)
        finally:
            self.tally.wait_s += time.monotonic() - started


def _stopped(chunk: RowChunk, failed: dict[int, tuple[str, str]]) -> InputError:
    row = min(failed)
    file, number = chunk.places[row]
    return InputError(
        f"{file}:{number}: {failed[row][1]}", "--on-error skip puts such rows in the rejects file"
    )
