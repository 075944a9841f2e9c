"""Whether batches are computed in this process by many threads, or in several processes."""

import os

import torch

from poolembed.config import ModelConfig, PoolerConfig
from poolembed.errors import ConfigError
from poolembed.runner.backbone import Backbone
from poolembed.runner.budget import ROW_TOKENS, seconds_of_batch
from poolembed.runner.worker import WorkerConfig
from poolembed.runner.workers import Workers

# Processes must promise so much more to be worth the seconds in which they start.
WORTH_IT = 1.1

TRIAL_TOKENS = 512

# What a process needs beside the weights, which all share.
WORKER_BYTES = 1 << 30


def start_workers(
    num_workers: int, model: ModelConfig, pooler: PoolerConfig | None, batch_tokens: int
) -> Workers:
    """Start worker processes that share this process's threads among them.

    Args:
        num_workers: how many, at least 1.
        model: which model they load.
        pooler: the user's changes to what the model declares.
        batch_tokens: most tokens of a batch.

    Returns:
        The processes, which load their models while this one goes on.
    """
    config = WorkerConfig(
        model=model,
        pooler=pooler,
        batch_tokens=batch_tokens,
        num_threads=max(1, torch.get_num_threads() // num_workers),
    )
    return Workers(config, num_workers)


def resolve_workers(wanted: int | None, backbone: Backbone, *, max_length: int, token_id: int) -> int:
    """Return how many processes compute; 1 stands for this one alone.

    Args:
        wanted: what the user asked for; None chooses by a trial with one thread and with all of them.
        backbone: the loaded model.
        max_length: most tokens of a row.
        token_id: any token of the vocabulary.

    Raises:
        ConfigError: several were asked for on a device that is no CPU.
    """
    if backbone.device.type != "cpu":
        if wanted is not None and wanted > 1:
            raise ConfigError(f"--workers {wanted}: {backbone.device} runs in one process", "use --workers 1")
        return 1
    if wanted is not None:
        return wanted
    num_threads = torch.get_num_threads()
    if num_threads == 1:
        return 1
    length = min(ROW_TOKENS, max_length)
    num_rows = TRIAL_TOKENS // length
    with_all = seconds_of_batch(backbone, num_rows, length, token_id)
    torch.set_num_threads(1)
    try:
        with_one = seconds_of_batch(backbone, num_rows, length, token_id)
    finally:
        torch.set_num_threads(num_threads)
    return num_processes(num_threads, with_one, with_all)


def num_processes(num_threads: int, with_one_s: float, with_all_s: float) -> int:
    """Return the better of one process a thread, as far as memory goes, and one process.

    Args:
        num_threads: threads of this process, at least 2.
        with_one_s: seconds of a batch with one thread.
        with_all_s: seconds of the same batch with all of them.
    """
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    number = min(num_threads, memory // WORKER_BYTES)
    return number if number * with_all_s > WORTH_IT * with_one_s else 1
