"""Batches computed side by side: the same results, so many at once and no more, and an end when asked."""

import threading
from dataclasses import replace

import numpy as np
import pytest
import torch

from poolembed.config import ModelConfig
from poolembed.runner import load_runner
from poolembed.runner.workers import GPU_WORKERS, MOST_WORKERS, Workers, candidates

TEXTS = ["a", "one two three", "four five six seven", "", "eight", "nine " * 40, "ten eleven"] * 9
BATCHES = [np.asarray([number]) for number in range(20)]
CPU = torch.device("cpu")

# Long enough for a thread on a busy machine; nothing waits this long when all is well.
PATIENCE_S = 60.0


def threads():
    return [thread for thread in threading.enumerate() if thread.name.startswith("poolembed-worker")]


def numbers(done):
    return sorted(int(rows[0]) for rows in done)


@pytest.fixture
def num_threads():
    """Set the number of torch's threads for the length of a test."""
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.mark.parametrize("family", ["bert-mean", "qwen3-last", "deberta-v2-mean"])
@pytest.mark.parametrize("task", ["embed", "token_embed"])
def test_results_are_those_of_one_worker(models, family, task):
    model = ModelConfig(model=str(models / family), device="cpu")
    alone = load_runner(model, None, 48, 1)
    several = replace(alone, workers=Workers(3, 1))
    tokenized = alone.tokenizers.texts("")(TEXTS)
    told = []
    found = several.pool(tokenized, several.params(task), lambda *counts: told.append(counts))
    expected = alone.pool(tokenized, alone.params(task))
    assert np.array_equal(found.values, expected.values)
    assert found.failures == expected.failures
    assert np.array_equal(found.lengths, expected.lengths)
    assert np.sum(told, axis=0).tolist() == [np.count_nonzero(tokenized.lengths), tokenized.lengths.sum()]


def test_a_row_that_is_computed_in_pieces_meets_no_other_batch(models):
    model = ModelConfig(model=str(models / "qwen3-last"), device="cpu")
    runner = replace(load_runner(model, None, 8, 1), workers=Workers(4, 1))
    texts = ["one two three", "nine " * 40, "a"] * 6
    together = runner.pool(runner.tokenizers.texts("")(texts), runner.params("embed")).values
    for text, vector in zip(texts, together, strict=True):
        one = replace(runner, workers=Workers(), batch_tokens=512)
        single = one.pool(one.tokenizers.texts("")([text]), one.params("embed")).values[0]
        np.testing.assert_allclose(vector, single, rtol=0, atol=1e-5)


@pytest.mark.parametrize("number", [1, 2, 5])
def test_every_batch_is_computed_once(number):
    computed = []
    done = list(Workers(number).run(computed.append, BATCHES))
    assert numbers(done) == numbers(computed) == list(range(20))
    assert threads() == []


def test_as_many_are_computed_at_once_as_there_are_workers():
    # Passes only when three meet in it, and breaks when a fourth comes before they have left.
    meeting = threading.Barrier(3, timeout=PATIENCE_S)
    inside, most, lock = 0, 0, threading.Lock()

    def compute(_):
        nonlocal inside, most
        with lock:
            inside += 1
            most = max(most, inside)
        meeting.wait()
        with lock:
            inside -= 1

    assert numbers(Workers(3).run(compute, BATCHES[:18])) == list(range(18))
    assert most == 3


def test_batches_are_taken_shortly_before_their_turn():
    taken = []
    batches = (taken.append(batch) or batch for batch in BATCHES)
    results = Workers(2).run(lambda _: None, batches)
    next(results)
    assert len(taken) <= 4
    results.close()
    assert len(taken) <= 4
    assert threads() == []


def test_an_error_ends_the_run_and_no_batch_begins_after_it():
    begun = []

    def compute(rows):
        begun.append(rows)
        if rows[0] == 3:
            raise ValueError("batch 3")

    with pytest.raises(ValueError, match="batch 3"):
        list(Workers(2).run(compute, BATCHES))
    assert len(begun) <= 3 + 4
    assert threads() == []


def test_what_a_listener_raises_ends_the_run(models):
    model = ModelConfig(model=str(models / "bert-mean"), device="cpu")
    runner = replace(load_runner(model, None, 16, 1), workers=Workers(2, 1))
    told = []

    def stop(*counts):
        told.append(counts)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        runner.pool(runner.tokenizers.texts("")(TEXTS), runner.params("embed"), stop)
    assert len(told) == 1
    assert threads() == []


def test_each_worker_has_its_threads_and_the_others_keep_theirs(num_threads):
    num_threads(3)
    seen = []
    list(Workers(2, 1).run(lambda _: seen.append(torch.get_num_threads()), BATCHES[:4]))
    assert seen == [1] * 4
    assert torch.get_num_threads() == 3
    later = threading.Thread(target=lambda: seen.append(torch.get_num_threads()))
    later.start()
    later.join(PATIENCE_S)
    assert seen[-1] == 3


def test_what_was_asked_for_is_taken(num_threads):
    num_threads(4)
    assert candidates(3, CPU) == (Workers(3, 1),)
    assert candidates(2, CPU) == (Workers(2, 2),)
    assert candidates(9, CPU) == (Workers(9, 1),)
    assert candidates(1, torch.device("cuda")) == (Workers(1, 4),)
    assert candidates(4, torch.device("cuda")) == (Workers(4, 1),)


@pytest.mark.parametrize(("threads", "several"), [(2, (2, 1)), (8, (8, 1)), (64, (MOST_WORKERS, 8))])
def test_a_cpu_has_one_worker_or_several_of_few_threads(num_threads, threads, several):
    num_threads(threads)
    assert candidates(None, CPU) == (Workers(1, threads), Workers(*several))


def test_one_thread_is_one_worker(num_threads):
    num_threads(1)
    assert candidates(None, CPU) == (Workers(1, 1),)


def test_a_gpu_has_a_batch_in_hand_and_the_next_ready():
    (workers,) = candidates(None, torch.device("cuda", 0))
    assert workers.number == GPU_WORKERS
    (workers,) = candidates(None, torch.device("mps"))
    assert workers.number == 1
