"""One pass over the rows: what is known is taken, the rest is computed, all of it is written.

Three stages overlap through bounded queues: read, look up and tokenize chunk k+1, compute chunk k, write
chunk k-1. The first failure stops all of them.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from poolembed.config import JobConfig
from poolembed.errors import InputError
from poolembed.io import (
    JobFolder,
    Lookup,
    ResultStore,
    RowChunk,
    Sink,
    explode,
    num_true,
    result_table,
    text_keys,
)
from poolembed.pipeline.commands import COMMANDS
from poolembed.pipeline.ledger import Ledger
from poolembed.pipeline.prefetch import prefetch
from poolembed.pipeline.row_texts import RowTexts
from poolembed.pipeline.stop import Deadline, StopRequest
from poolembed.results import ResultColumn

if TYPE_CHECKING:
    from poolembed.io import FreshBlock
    from poolembed.model import Operation

COUNTS = (ResultColumn("num_tokens", "int32"), ResultColumn("truncated", "bool"))
"""Columns that every command adds."""


class Progress(Protocol):
    """Someone to whom a run tells how far it is."""

    def note(self, message: str) -> None:
        """Take something worth knowing, told once."""

    def start(self, num_rows: int) -> None:
        """Take the number of rows that will come."""

    def advance(self, num_rows: int, num_tokens: int, *, num_rejected: int = 0, num_reused: int = 0) -> None:
        """Take what was done since the last call.

        Args:
            num_rows: rows that are done, rejected and reused ones included.
            num_tokens: tokens computed for them.
            num_rejected: of the rows, those that were refused.
            num_reused: of the rows, those whose results were there already.
        """


@dataclass(slots=True, kw_only=True)
class Tally:
    """What a run has done so far; the fields are those of `RunSummary`."""

    num_rows: int = 0
    num_computed: int = 0
    num_reused: int = 0
    num_absent: int = 0
    num_rejected: int = 0
    num_truncated: int = 0
    num_replaced: int = 0
    num_tokens: int = 0
    read_s: float = 0.0
    tokenize_s: float = 0.0
    forward_s: float = 0.0
    write_s: float = 0.0
    wait_s: float = 0.0

    @contextmanager
    def timing(self, phase: str) -> Iterator[None]:
        """Add the seconds until the exit to a phase, which one thread alone may time."""
        started = time.monotonic()
        try:
            yield
        finally:
            setattr(self, phase, getattr(self, phase) + time.monotonic() - started)


@dataclass(frozen=True, slots=True)
class _Work:
    """A chunk on its way.

    Attributes:
        chunk: the rows.
        lookup: where their results are, or will be.
        tokens: what the operation made of the new texts; None where there are none.
    """

    chunk: RowChunk
    lookup: Lookup
    tokens: Any


@dataclass(slots=True, kw_only=True)
class Run:
    """One pass over the chunks; the stages share nothing but what they hand on, and the store.

    Attributes:
        job: what to do.
        operation: computes results.
        columns: all columns of results.
        folder: keeps results that are computed.
        store: the results by text.
        progress: told how far the run is.
        ledger: accounts for every row.
        deadline: ends the run after a chunk.
        stop: ends it after a batch.
        tally: what was done.
    """

    job: JobConfig
    operation: "Operation"
    columns: Sequence[ResultColumn]
    folder: JobFolder
    store: ResultStore
    progress: Progress
    ledger: Ledger
    deadline: Deadline
    stop: StopRequest
    tally: Tally = field(default_factory=Tally)

    def through(self, rows: RowTexts, sink: Sink) -> None:
        """Take every chunk of `rows` through the model to `sink`."""
        with (
            self.stop.heeded(),
            closing(prefetch(self._looked_up(rows))) as works,
            ThreadPoolExecutor(max_workers=1, thread_name_prefix="poolembed-write") as writer,
        ):
            written: list[Future[None]] = []
            while (work := self._next(works)) is not None:
                block = self._computed(work)
                self._wait_for(written)
                # What is computed is kept, even when a row of it stops the run.
                written = [] if block is None else [writer.submit(self._write, self.folder.save, block)]
                written.append(writer.submit(self._write, sink.write, *self._finished(work)))
                self.deadline.check(self.ledger.num_left, self.ledger.num_rows)
            self._wait_for(written)

    def _looked_up(self, rows: RowTexts) -> Iterator[_Work]:
        run, most = self.job.run, COMMANDS[self.job.command].max_chunk_rows
        chunks = rows.source.chunks(min(run.chunk_rows, most or run.chunk_rows), run.chunk_bytes)
        while True:
            with self.tally.timing("read_s"):
                chunk = next(chunks, None)
                if chunk is None:
                    return
                texts = rows.of(chunk)
                lookup = self.store.find(text_keys(texts), chunk.absent)
            with self.tally.timing("tokenize_s"):
                new = _rows_of(texts, lookup.new)
                tokens = self.operation.tokenize(new) if len(lookup.new) else None
            yield _Work(chunk, lookup, tokens)

    def _computed(self, work: _Work) -> "FreshBlock | None":
        if work.tokens is None:
            return None
        with self.tally.timing("forward_s"):
            outcome = self.operation.compute(work.tokens, self._advance).only_finite()
        results = {**outcome.columns, "num_tokens": outcome.num_tokens, "truncated": outcome.truncated}
        failures = {row: (failure.code, failure.message) for row, failure in outcome.failures.items()}
        self.tally.num_computed += len(work.lookup.new) - len(failures)
        return self.store.add(work.lookup, result_table(self.columns, results), failures)

    def _finished(self, work: _Work) -> tuple[RowChunk, Any, Any]:
        """Return a chunk with its results, without the rows that have none, and keys where rows stay rows."""
        chunk, lookup = work.chunk, work.lookup
        failed = self.store.failures(lookup)
        if failed and self.job.input.on_error == "fail":
            raise _stopped(chunk, failed)
        good = np.delete(np.arange(chunk.num_rows), sorted(failed))
        num_told = len(lookup.new)
        chunk = chunk.without(failed)
        results = self.store.take(lookup.places[good])
        num_rejected, num_truncated = len(chunk.rejects), num_true(results, "truncated")
        tally = self.tally
        tally.num_rows += chunk.num_rows
        tally.num_absent += len(chunk.absent)
        tally.num_reused += lookup.num_known
        tally.num_rejected += num_rejected
        tally.num_replaced += chunk.num_replaced
        tally.num_truncated += num_truncated
        num_more = chunk.num_rows + num_rejected - num_told
        self.progress.advance(num_more, 0, num_rejected=num_rejected, num_reused=lookup.num_known)
        self.ledger.add(chunk.num_rows, chunk.rejects, num_truncated)
        if self.operation.explodes:
            return *explode(chunk, results), None
        return chunk, results, lookup.keys[good]

    def _advance(self, num_rows: int, num_tokens: int) -> None:
        # Not the sum over rows: a text that several rows have in common is computed once.
        self.tally.num_tokens += num_tokens
        self.progress.advance(num_rows, num_tokens)
        self.stop.check(self.ledger.num_left, self.ledger.num_rows)

    def _next(self, works: Iterator[_Work]) -> _Work | None:
        with self.tally.timing("wait_s"):
            return next(works, None)

    def _wait_for(self, written: Sequence[Future[None]]) -> None:
        with self.tally.timing("wait_s"):
            for future in written:
                future.result()

    def _write(self, write: Callable[..., None], *arguments: Any) -> None:  # noqa: ANN401
        with self.tally.timing("write_s"):
            write(*arguments)


def _rows_of(texts: Mapping[str, Sequence[Any]], rows: "np.ndarray[Any, Any]") -> dict[str, Sequence[Any]]:
    return {
        role: values if len(rows) == len(values) else [values[row] for row in rows.tolist()]
        for role, values in texts.items()
    }


def _stopped(chunk: RowChunk, failed: Mapping[int, tuple[str, str]]) -> InputError:
    row = min(failed)
    file, number = chunk.places[row]
    return InputError(
        f"{file}:{number}: {failed[row][1]}", "--on-error skip puts such rows in the rejects file"
    )
