"""The benchmark for GPUs, as far as it goes without one."""

import pytest
import torch

from benchmarks.__main__ import main
from benchmarks.gpu import NO_GPU, rates, token_lengths


def test_utilisation_is_work_by_time_by_peak():
    found = rates(num_tokens=1000, work=4e12, seconds=[2.0, 4.0, 8.0], peak=10e12)
    assert found["tokens_per_s"]["median"] == 250
    assert found["utilisation_percent"] == pytest.approx(10.0)
    assert found["peak_tflops"] == 10


def test_tokens_are_counted_with_special_ones_and_cut_at_the_limit(models):
    # [CLS], two words at least, [SEP]; the model's limit is in its sentence_bert_config.json.
    short, long = token_lengths(models / "bert-mean", ["two words", "word " * 5000])
    assert short >= 4
    assert long in (64, 128, 256, 512)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_it_says_so_and_writes_nothing(models, shared, tmp_path, capsys):
    words = ["gpu", "--model", str(models / "bert-mean"), "--shared", str(shared), "--work", str(tmp_path)]
    assert main([*words, "--corpus", "short", "--rows", "5", "--name", "no-gpu-here"]) == NO_GPU
    assert "no CUDA device" in capsys.readouterr().err
