"""A run from its input files to its output files.

Three stages overlap through bounded queues: read and tokenize chunk k+1, compute chunk k, write chunk
k-1. The first failure stops all of them, and nothing under the final name is half-written.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from poolembed.config import JobConfig
from poolembed.errors import InputError
from poolembed.io import ResultColumn, RowChunk, Sink, Source, open_sink, open_source, plan_output
from poolembed.pipeline.commands import COMMANDS, Command
from poolembed.pipeline.prefetch import prefetch
from poolembed.pipeline.summary import RunSummary

if TYPE_CHECKING:
    from poolembed.runner import PoolingParams, PoolingRunner, TokenizedRows

T = TypeVar("T")


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
    with open_source(job.input, command.roles) as source:
        plan_output(job.output, job.input, job.command)
        from poolembed.runner import load_runner

        runner = load_runner(job.model, job.pooler, job.run.batch_tokens)
        for warning in runner.warnings:
            progress.note(warning)
        params = runner.params(command.pooling_task)
        prompt = job.model.prompt
        tokenize = runner.tokenizers.texts(
            runner.tokenizers.prompt(job.model.prompt_name) if prompt is None else prompt
        )
        columns = _result_columns(command, runner.result_size(params))
        with open_sink(
            job.output,
            job.input,
            job.command,
            source.schema,
            columns,
            runner.describe(params) | {"prompt": tokenize.prompt},
        ) as sink:
            loaded = time.monotonic()
            progress.start(source.num_rows)
            run = _Run(
                job=job, command=command, runner=runner, params=params, tokenize=tokenize, progress=progress
            )
            run.through(source, sink)
            outputs = sink.commit()
    return RunSummary(
        command=job.command,
        outputs=tuple(str(path) for path in outputs),
        model=runner.folder.name,
        device=str(runner.backbone.device),
        dtype=runner.dtype,
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
    command: Command
    runner: "PoolingRunner"
    params: "PoolingParams"
    tokenize: "Callable[[Sequence[str]], TokenizedRows]"
    progress: Progress
    tally: _Tally = field(default_factory=_Tally)

    def through(self, source: Source, sink: Sink) -> None:
        """Take every chunk from the source through the model to the sink."""
        with (
            closing(prefetch(self._tokenized(source))) as chunks,
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

    def _tokenized(self, source: Source) -> Iterator[tuple[RowChunk, "TokenizedRows"]]:
        role = self.command.roles[0].name
        for chunk in source.chunks(self.job.run.chunk_rows, self.job.run.chunk_bytes):
            yield chunk, self.tokenize(chunk.texts[role])

    def _computed(
        self, chunk: RowChunk, tokens: "TokenizedRows"
    ) -> tuple[RowChunk, dict[str, npt.NDArray[Any]]]:
        started = time.monotonic()
        pooled = self.runner.pool(tokens, self.params, self.progress.advance)
        self.tally.forward_s += time.monotonic() - started
        failed = {row: (failure.code, failure.message) for row, failure in pooled.failures.items()}
        if failed and self.job.input.on_error == "fail":
            raise _stopped(chunk, failed)
        good = np.asarray([row not in failed for row in range(chunk.num_rows)], np.bool_)
        chunk = chunk.without(failed)
        self._count(chunk, tokens, good)
        return chunk, {
            self.command.column: pooled.values[good],
            "num_tokens": tokens.lengths[good].astype(np.int32),
            "truncated": tokens.truncated[good],
        }

    def _count(self, chunk: RowChunk, tokens: "TokenizedRows", good: npt.NDArray[np.bool_]) -> None:
        tally = self.tally
        tally.num_rows += chunk.num_rows
        tally.num_rejected += len(chunk.rejects)
        tally.num_replaced += chunk.num_replaced
        tally.num_truncated += int(tokens.truncated[good].sum())
        tally.num_tokens += int(tokens.lengths[good].sum())
        self.progress.advance(len(chunk.rejects), 0)

    def _waited(self, wait_for: Callable[..., T], *arguments: Any) -> T:  # noqa: ANN401
        started = time.monotonic()
        try:
            return wait_for(*arguments)
        finally:
            self.tally.wait_s += time.monotonic() - started


def _result_columns(command: Command, size: int) -> list[ResultColumn]:
    return [
        ResultColumn(name=command.column, dtype="float32", dim=size),
        ResultColumn(name="num_tokens", dtype="int32"),
        ResultColumn(name="truncated", dtype="bool"),
    ]


def _stopped(chunk: RowChunk, failed: dict[int, tuple[str, str]]) -> InputError:
    row = min(failed)
    file, number = chunk.places[row]
    return InputError(
        f"{file}:{number}: {failed[row][1]}", "--on-error skip puts such rows in the rejects file"
    )
