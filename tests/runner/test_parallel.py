"""Several processes are chosen where they are faster, and only on a CPU."""

from types import SimpleNamespace

import pytest
import torch

from poolembed.errors import ConfigError
from poolembed.runner.parallel import num_processes, resolve_workers

GPU = SimpleNamespace(device=torch.device("cuda", 0))
CPU = SimpleNamespace(device=torch.device("cpu"))


def resolved(wanted, backbone):
    return resolve_workers(wanted, backbone, max_length=16, token_id=5)


def test_a_number_is_taken_as_it_is_on_a_cpu():
    assert resolved(3, CPU) == 3


@pytest.mark.parametrize("wanted", [1, None])
def test_a_gpu_runs_in_one_process(wanted):
    assert resolved(wanted, GPU) == 1


def test_several_processes_on_a_gpu_are_refused():
    with pytest.raises(ConfigError, match="--workers 2: cuda:0 runs in one process"):
        resolved(2, GPU)


@pytest.mark.parametrize(
    ("with_one_s", "with_all_s", "expected"),
    [(2.0, 1.0, 1), (1.5, 1.0, 2), (1.9, 1.0, 1), (1.0, 1.2, 2), (1.0, float("inf"), 2)],
)
def test_one_process_a_thread_must_be_a_tenth_faster(with_one_s, with_all_s, expected):
    assert num_processes(2, with_one_s, with_all_s) == expected


def test_processes_are_bounded_by_memory():
    assert num_processes(10**6, 1.0, 1.0) < 10**5


def test_the_trial_leaves_the_number_of_threads(runner_of):
    backbone = runner_of("bert-mean").backbone
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        assert resolved(None, backbone) in (1, 2)
        assert torch.get_num_threads() == 2
        torch.set_num_threads(1)
        assert resolved(None, backbone) == 1
    finally:
        torch.set_num_threads(before)
