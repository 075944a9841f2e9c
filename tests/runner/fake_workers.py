"""What a worker process may run in a test: workers that fail in one way each."""

import os
import signal
from pathlib import Path

import numpy as np

from poolembed.errors import CapacityError
from poolembed.runner.results import PooledRows
from poolembed.runner.worker import WorkerFailure


def answers(connection, config):
    """Gives each row its first token, in a vector of one."""
    while True:
        answer(connection)


def answer(connection):
    tokenized, _ = connection.recv()
    first = np.cumsum(tokenized.lengths) - tokenized.lengths
    connection.send(PooledRows(values=tokenized.token_ids[first].astype(np.float32)[:, None]))


def dies(connection, config):
    """Is killed by its first batch."""
    connection.recv()
    os.kill(os.getpid(), signal.SIGKILL)


def dies_once(connection, config):
    """Is killed by its second batch, unless that happened before: the model's name is the record of that."""
    record = Path(config.model.model)
    answer(connection)
    try:
        record.touch(exist_ok=False)
    except FileExistsError:
        answers(connection, config)
    dies(connection, config)


def exits(connection, config):
    """Ends of its own accord."""
    connection.recv()
    raise SystemExit(3)


def fails(connection, config):
    """Meets an error that a user can do something about."""
    connection.recv()
    connection.send(WorkerFailure.of(CapacityError("row 7 is too long", "cut it")))


def has_a_bug(connection, config):
    """Meets an error that cannot be sent as it is."""

    class OnlyHereError(Exception):
        pass

    connection.recv()
    try:
        raise OnlyHereError("a lemma was wrong")
    except OnlyHereError as error:
        connection.send(WorkerFailure.of(error))
