"""One worker process: loads the model, then pools what it is sent until nobody sends any more.

Torch is imported inside `serve`, after the number of its threads is set.
"""

import os
import queue
import signal
import threading
import traceback
from dataclasses import dataclass
from multiprocessing.connection import Connection

from poolembed.config import ModelConfig, PoolerConfig, PoolingParams
from poolembed.errors import PoolembedError
from poolembed.runner.packing import TokenizedRows

Task = tuple[TokenizedRows, PoolingParams]
"""The rows of one batch, and what is computed of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerConfig:
    """All that a worker is told; it reads nothing else.

    Attributes:
        model: which model, where and in which precision.
        pooler: the user's changes to what the model declares.
        batch_tokens: most tokens of a batch.
        num_threads: threads of each worker.
    """

    model: ModelConfig
    pooler: PoolerConfig | None
    batch_tokens: int
    num_threads: int


@dataclass(frozen=True, slots=True)
class WorkerFailure:
    """An exception as plain data, since not every exception survives the way between processes.

    Attributes:
        kind: name of its class.
        message: what happened.
        hint: what to do about it; None where it is not known.
        details: the traceback, for what is no PoolembedError; else empty.
    """

    kind: str
    message: str
    hint: str | None = None
    details: str = ""

    @classmethod
    def of(cls, error: Exception) -> "WorkerFailure":
        """Return the record of an exception."""
        if isinstance(error, PoolembedError):
            return cls(type(error).__name__, error.message, error.hint)
        return cls(type(error).__name__, str(error), details=traceback.format_exc())


def serve(connection: Connection, config: WorkerConfig) -> None:
    """Answer every task with a PooledRows or a WorkerFailure, in order, until the sender is gone.

    Args:
        connection: where `Task`s come from and answers go; one way to the process that started this one.
        config: what is loaded.
    """
    # Ctrl-C reaches all processes of a terminal; the one that started this one ends it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ["OMP_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = str(config.num_threads)
    tasks: queue.SimpleQueue[Task] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(connection, tasks), daemon=True).start()
    try:
        from poolembed.runner.load import load_runner

        runner = load_runner(config.model, config.pooler, config.batch_tokens)
        while True:
            connection.send(runner.pool(*tasks.get()))
    except ConnectionError:
        return  # nobody is left to be told
    except Exception as error:  # noqa: BLE001 - whatever it is, the process that waits must be told
        connection.send(WorkerFailure.of(error))


def _receive(connection: Connection, tasks: "queue.SimpleQueue[Task]") -> None:
    """Take tasks as they come, so that no sender waits for a computation, and end with the sender."""
    try:
        while True:
            tasks.put(connection.recv())
    except (EOFError, OSError):
        os._exit(0)  # in the middle of a batch: nobody is left to have its result
