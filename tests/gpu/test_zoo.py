"""On a GPU the zoo gives what it gives on a CPU: in float32 to the last digits, in bfloat16 nearly."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from poolembed.runner.attention import _varlen_kernel
from poolembed.runner.budget import GPU_CANDIDATES, Trials
from poolembed.runner.workers import GPU_WORKERS
from tests.runner.zoo import RAW, ZOO, Call, answers, calls, differences, load, runner_of, stored

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not ZOO.is_dir(), reason=f"needs {ZOO} (POOLEMBED_SHARED)"),
]

DEVICE = "cuda"

# One of each architecture, causal or not, with windows, grouped heads, heads, pairs and roles.
FAMILIES = (
    *("bert-mean", "bert-crossencoder", "bert-tokencls", "bert-splade", "bert-colbert", "distilbert-mean"),
    *("electra-cls", "roberta-mean", "xlmroberta-bge-m3", "modernbert-cls", "nomic-bert-mean"),
    *("gemma3-bidirectional", "qwen2-last", "qwen3-causal-reranker", "llama-last", "mistral-last"),
    *("gpt2-seqcls", "mpnet-mean", "deberta-v2-mean", "t5-encoder-mean"),
)
HALF = ("bert-mean", "modernbert-cls", "qwen3-last", "mistral-last", "gemma3-bidirectional", "llama-last")


@pytest.mark.parametrize("call", [call for call in calls(*FAMILIES) if not call.has_options], ids=str)
def test_float32_gives_the_stored_result(call):
    assert differences(runner_of(call, device=DEVICE), call, budget=8192) == {}


@pytest.mark.parametrize("family", HALF)
def test_bfloat16_is_packed_and_gives_nearly_the_stored_vectors(family):
    call = Call(family, "embed")
    runner = replace(load(family, device=DEVICE, dtype="bfloat16"), batch_tokens=8192)
    assert runner.check.path == "packed"
    # Kernel and layers are compared in tests/runner/test_attention.py; here it must be there to be used.
    assert _varlen_kernel() is not None
    expected = stored(call)
    found = answers(runner, call, [row.input_id for row in expected])
    cosines = [
        float(np.dot(output, row.output) / np.linalg.norm(output) / np.linalg.norm(row.output))
        for row, (_, output) in zip(expected, found, strict=True)
    ]
    assert min(cosines) > 0.98


@pytest.mark.parametrize("family", ["qwen2-last", "mistral-last", "llama-last"])
def test_long_causal_rows_run_in_pieces(family):
    assert differences(load(family, device=DEVICE), Call(family, "embed"), budget=64) == {}


def test_a_budget_and_workers_are_found(tmp_path):
    backbone = load("bert-mean", device=DEVICE).backbone
    file = tmp_path / "budgets.json"
    trials = Trials(backbone=backbone, key="model", max_length=256, token_id=10, file=file)
    workers = trials.workers(None)
    assert workers.number == GPU_WORKERS
    assert trials.batch_tokens(workers) in GPU_CANDIDATES
    assert torch.cuda.get_device_name(backbone.device) in file.read_text("utf-8")


def test_results_are_in_host_memory_and_float32():
    runner = load("bert-mean", device=DEVICE, dtype="bfloat16")
    values = runner.pool(runner.tokenizers.texts()(["a", "b c"]), runner.params("embed")).values
    assert values.dtype == np.float32
    assert np.linalg.norm(values, axis=1) == pytest.approx(1, abs=RAW)
