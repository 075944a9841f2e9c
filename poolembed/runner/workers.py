"""Several processes that pool the batches of one runner, each with its own share of the cores.

Weights that are stored as safetensors, in the precision that they are used in, are in memory once: every
process maps the same file. A process that dies is replaced, and the batch it had in hand is given out
once more.
"""

import multiprocessing
import signal
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

from poolembed import errors
from poolembed.config import PoolingParams
from poolembed.errors import PoolembedError
from poolembed.runner.packing import IntArray, TokenizedRows
from poolembed.runner.results import PooledRows
from poolembed.runner.worker import WorkerConfig, WorkerFailure, serve

Target = Callable[[Connection, WorkerConfig], None]

# Batches that a worker has: the one in hand, and one more so that it never waits for the next.
TASKS_AT_WORKER = 2

# How often a batch may be in the hands of a worker that dies.
MAX_DEATHS = 2

END_S = 10.0


class WorkerError(RuntimeError):
    """A worker met an error that is a bug; its traceback is in the message."""


class Workers:
    """A fixed number of worker processes, started at once and ended with this object.

    Args:
        config: what each of them loads.
        num_workers: how many there are, at least 1.
        target: what each process runs; it answers tasks as `serve` does.
    """

    def __init__(self, config: WorkerConfig, num_workers: int, target: Target = serve) -> None:
        self.num_workers = num_workers
        self._new_worker = partial(_Worker.start, target, config)
        self._workers: list[_Worker] = []
        self._finalizer = weakref.finalize(self, _end, self._workers)
        self._start()

    @property
    def process_ids(self) -> list[int]:
        """Ids of the processes that are there."""
        return [worker.process.pid or 0 for worker in self._workers]

    def pool(
        self, tokenized: TokenizedRows, batches: Iterable[IntArray], params: PoolingParams
    ) -> Iterator[tuple[IntArray, PooledRows]]:
        """Pool the rows of a chunk.

        Args:
            tokenized: the chunk's tokens.
            batches: the row numbers of each batch.
            params: what is computed, the same for every row.

        Yields:
            The row numbers of a batch, and its results in their order, as batches are finished.

        Raises:
            PoolembedError: what a worker raised, or a batch whose worker died repeatedly.
            WorkerError: what a worker raised that is no PoolembedError.
        """
        self._start()
        finished = False
        try:
            yield from self._run(_Todo(tokenized, iter(batches), params))
            finished = True
        finally:
            if not finished:
                self.close()

    def close(self) -> None:
        """End the processes; the next call of `pool` starts new ones."""
        _end(self._workers)

    def _start(self) -> None:
        while len(self._workers) < self.num_workers:
            self._workers.append(self._new_worker())

    def _run(self, todo: "_Todo") -> Iterator[tuple[IntArray, PooledRows]]:
        while True:
            for worker in self._workers:
                self._fill(worker, todo)
            by_connection = {worker.connection: worker for worker in self._workers if worker.batches}
            if not by_connection:
                return
            for ready in wait(list(by_connection)):
                assert isinstance(ready, Connection)
                worker = by_connection[ready]
                try:
                    answer = ready.recv()
                except (EOFError, OSError):
                    self._replace(worker, todo)
                    continue
                if isinstance(answer, WorkerFailure):
                    raise _raised(answer)
                yield worker.batches.popleft().rows, answer

    def _fill(self, worker: "_Worker", todo: "_Todo") -> None:
        while len(worker.batches) < TASKS_AT_WORKER and (batch := todo.next()) is not None:
            worker.batches.append(batch)
            try:
                worker.connection.send((todo.tokenized.take(batch.rows), todo.params))
            except OSError:
                return  # it is dead, which its connection tells whoever waits for it

    def _replace(self, dead: "_Worker", todo: "_Todo") -> None:
        in_hand = dead.batches[0]
        in_hand.num_deaths += 1
        if in_hand.num_deaths >= MAX_DEATHS:
            raise PoolembedError(
                f"{in_hand.num_deaths} worker processes died on the same batch of {len(in_hand.rows)} rows: "
                f"{dead.cause()}",
                "where memory was short, use fewer --workers or a smaller --batch-tokens",
            )
        todo.again.extend(dead.batches)
        self._workers[self._workers.index(dead)] = self._new_worker()
        _end([dead])


@dataclass(slots=True)
class _Batch:
    rows: IntArray
    num_deaths: int = 0


@dataclass(slots=True)
class _Todo:
    """The batches of a chunk that no worker has yet."""

    tokenized: TokenizedRows
    batches: Iterator[IntArray]
    params: PoolingParams
    again: deque[_Batch] = field(default_factory=deque)

    def next(self) -> _Batch | None:
        """Return the next batch, None when there is none left."""
        if self.again:
            return self.again.popleft()
        rows = next(self.batches, None)
        return None if rows is None else _Batch(rows)


@dataclass(slots=True, eq=False)
class _Worker:
    """A process, the way to it, and what it has been sent and not answered, in order."""

    process: BaseProcess
    connection: Connection
    batches: deque[_Batch] = field(default_factory=deque)

    @classmethod
    def start(cls, target: Target, config: WorkerConfig) -> "_Worker":
        """Start a process that loads the model."""
        # Not forked: a copy of a process that has used threads may hang in the first lock it meets.
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=target, args=(theirs, config), name="poolembed-worker", daemon=True)
        process.start()
        theirs.close()  # so that the way ends where either process does
        return cls(process, ours)

    def cause(self) -> str:
        """Say how the process ended."""
        self.process.join(END_S)
        code = self.process.exitcode
        if code is None or code >= 0:
            return f"exit code {code}"
        return f"killed by {signal.Signals(-code).name}"


def _end(workers: list[_Worker]) -> None:
    for worker in workers:
        worker.connection.close()
        worker.process.terminate()
    for worker in workers:
        worker.process.join(END_S)
        worker.process.close()
    workers.clear()


def _raised(failure: WorkerFailure) -> Exception:
    """Return the exception that a worker's record stands for."""
    kind = getattr(errors, failure.kind, None)
    if isinstance(kind, type) and issubclass(kind, PoolembedError):
        error: PoolembedError = kind(failure.message, failure.hint)
        return error
    return WorkerError(f"{failure.kind} in a worker: {failure.message}\n{failure.details}")
