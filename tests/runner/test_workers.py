"""Worker processes compute the same, are replaced when they die, and never outlive who started them."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from poolembed.config import ModelConfig, PoolerConfig, PoolingParams
from poolembed.errors import CapacityError, ModelError, PoolembedError
from poolembed.runner import load_runner
from poolembed.runner.worker import WorkerConfig
from poolembed.runner.workers import WorkerError, Workers
from tests.runner import fake_workers
from tests.runner.backbones import rows_of

BATCHES = [np.asarray(rows) for rows in ([2, 0], [1], [3, 4], [5])]
ROWS = rows_of((10,), (11, 1), (12, 1, 1), (13,), (14,), (15,))


def config_of(model):
    return WorkerConfig(model=ModelConfig(model=str(model)), pooler=None, batch_tokens=64, num_threads=1)


def firsts(workers):
    found = {}
    for rows, pooled in workers.pool(ROWS, BATCHES, PoolingParams(task="embed")):
        found |= dict(zip(rows.tolist(), pooled.values[:, 0].tolist(), strict=True))
    return found


EXPECTED = {row: 10.0 + row for row in range(6)}


def is_gone(process_id):
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return True
    stat = Path(f"/proc/{process_id}/stat").read_text()
    return stat.rpartition(")")[2].split()[0] == "Z"


def wait_until_gone(process_ids, seconds=60):
    deadline = time.monotonic() + seconds
    while not all(is_gone(process_id) for process_id in process_ids):
        assert time.monotonic() < deadline, f"{process_ids} are still there"
        time.sleep(0.05)


@pytest.fixture(scope="module")
def parallel_runner(models):
    """A runner with two workers, and the same one without."""
    model = ModelConfig(model=str(models / "bert-mean"), device="cpu")
    runner = load_runner(model, None, 64, 2)
    yield runner, replace(runner, workers=None)
    runner.workers.close()


TEXTS = ["a", "one two three", "four five six seven", "", "eight", "nine " * 40, "ten eleven"] * 3


@pytest.mark.parametrize("task", ["embed", "token_embed"])
def test_results_are_those_of_one_process(parallel_runner, task):
    parallel, alone = parallel_runner
    tokenized = alone.tokenizers.texts("")(TEXTS)
    told = []
    found = parallel.pool(tokenized, parallel.params(task), lambda *counts: told.append(counts))
    expected = alone.pool(tokenized, alone.params(task))
    np.testing.assert_allclose(found.values, expected.values, rtol=0, atol=1e-6)
    assert found.failures == expected.failures
    assert np.array_equal(found.lengths, expected.lengths)
    assert np.sum(told, axis=0)[1] == tokenized.lengths.sum()


def test_ctrl_c_does_not_end_a_worker(parallel_runner):
    parallel, alone = parallel_runner
    tokenized = alone.tokenizers.texts("")(TEXTS)
    parallel.pool(tokenized, parallel.params("embed"))
    before = parallel.workers.process_ids
    for process_id in before:
        os.kill(process_id, signal.SIGINT)
    parallel.pool(tokenized, parallel.params("embed"))
    assert parallel.workers.process_ids == before


def test_a_killed_worker_is_replaced(parallel_runner):
    parallel, alone = parallel_runner
    tokenized = alone.tokenizers.texts("")(TEXTS)
    before = parallel.workers.process_ids
    os.kill(before[0], signal.SIGKILL)
    found = parallel.pool(tokenized, parallel.params("embed"))
    assert np.abs(found.values - alone.pool(tokenized, alone.params("embed")).values).max() < 1e-6
    after = parallel.workers.process_ids
    assert len(after) == 2
    assert before[0] not in after


def test_a_model_that_a_worker_cannot_load_is_told_as_such(tmp_path):
    workers = Workers(config_of(tmp_path), 1)
    with pytest.raises(ModelError, match=r"config\.json"):
        firsts(workers)


def test_the_users_pooler_reaches_the_workers(models):
    model = ModelConfig(model=str(models / "bert-mean"), device="cpu")
    pooler = PoolerConfig(pooling_type="CLS")
    runner = load_runner(model, pooler, 64, 1)
    config = WorkerConfig(model=model, pooler=pooler, batch_tokens=64, num_threads=1)
    parallel = replace(runner, workers=Workers(config, 1))
    tokenized = runner.tokenizers.texts("")(["one two three"])
    params = runner.params("embed")
    np.testing.assert_allclose(
        parallel.pool(tokenized, params).values, runner.pool(tokenized, params).values, rtol=0, atol=1e-6
    )
    parallel.workers.close()


def test_batches_come_with_their_rows(tmp_path):
    assert firsts(Workers(config_of(tmp_path), 2, fake_workers.answers)) == EXPECTED


def test_a_batch_whose_worker_died_is_given_out_once_more(tmp_path):
    assert firsts(Workers(config_of(tmp_path / "died"), 1, fake_workers.dies_once)) == EXPECTED
    assert (tmp_path / "died").exists()


@pytest.mark.parametrize(("target", "cause"), [("dies", "killed by SIGKILL"), ("exits", "exit code 3")])
def test_a_batch_that_ends_every_worker_is_an_error(tmp_path, target, cause):
    workers = Workers(config_of(tmp_path), 2, getattr(fake_workers, target))
    with pytest.raises(PoolembedError, match=f"2 worker processes died on the same batch.*{cause}"):
        firsts(workers)


def test_an_error_of_a_worker_keeps_its_kind_and_its_hint(tmp_path):
    workers = Workers(config_of(tmp_path), 2, fake_workers.fails)
    with pytest.raises(CapacityError, match="row 7") as caught:
        firsts(workers)
    assert caught.value.hint == "cut it"
    assert workers.process_ids == []


def test_a_bug_in_a_worker_comes_with_its_traceback(tmp_path):
    workers = Workers(config_of(tmp_path), 1, fake_workers.has_a_bug)
    with pytest.raises(WorkerError, match=r"OnlyHereError in a worker: a lemma was wrong\nTraceback"):
        firsts(workers)


def test_after_results_that_nobody_took_the_next_are_the_right_ones(tmp_path):
    workers = Workers(config_of(tmp_path), 2, fake_workers.answers)
    results = workers.pool(ROWS, BATCHES, PoolingParams(task="embed"))
    next(results)
    results.close()
    assert firsts(workers) == EXPECTED


def test_processes_end_with_their_owner(tmp_path):
    workers = Workers(config_of(tmp_path), 2, fake_workers.answers)
    process_ids = workers.process_ids
    del workers
    wait_until_gone(process_ids, seconds=0)


PARENT = """
import sys, time
from poolembed.config import ModelConfig
from poolembed.runner.worker import WorkerConfig
from poolembed.runner.workers import Workers

if __name__ == "__main__":
    model = ModelConfig(model=sys.argv[1])
    workers = Workers(WorkerConfig(model=model, pooler=None, batch_tokens=64, num_threads=1), 2)
    print(*workers.process_ids, flush=True)
    time.sleep(600)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
def test_no_worker_outlives_a_killed_parent(models, tmp_path):
    script = tmp_path / "parent.py"
    script.write_text(PARENT)
    command = [sys.executable, script, models / "bert-mean"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as parent:
        process_ids = [int(process_id) for process_id in parent.stdout.readline().split()]
        assert len(process_ids) == 2
        parent.kill()
    wait_until_gone(process_ids)
