"""Models that scale positions by the longest row of a call give each row the numbers it has alone."""

import numpy as np
import pytest
import torch
from transformers import AutoModel

from poolembed.config import ModelConfig, PoolerConfig
from poolembed.runner import load_runner
from poolembed.runner.rope import scales_with_length
from tests.runner.backbones import rows_of as tokenized_of
from tests.runner.tiny import save, tiny

DYNAMIC = {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 10000.0}
LONG = {
    "rope_type": "longrope",
    "rope_theta": 10000.0,
    "short_factor": [1.0] * 8,
    "long_factor": [3.0] * 8,
    "factor": 4.0,
    "original_max_position_embeddings": 16,
}
TRAINED = {"dynamic": 64, "longrope": 16}


@pytest.fixture(params=["dynamic", "longrope"])
def folder(request, models, tmp_path):
    rope = {"dynamic": DYNAMIC, "longrope": LONG}[request.param]
    return save(tiny("Llama", rope_parameters=rope), tmp_path / request.param, models / "llama-last")


def rows_of(*lengths):
    rng = np.random.default_rng(0)
    return [rng.integers(3, 60, length) for length in lengths]


def test_rows_of_any_length_have_the_numbers_they_have_alone(folder):
    trained = TRAINED[folder.name]
    rows = rows_of(trained + 20, 5, trained + 9, trained, 7, trained + 20, 5)
    model = ModelConfig(model=str(folder), device="cpu", max_length=trained + 32)
    runner = load_runner(model, PoolerConfig(pooling_type="LAST"), 16, 2)
    assert runner.check.path == "equal-length"
    assert "scales the positions" in runner.warnings[-1]
    assert runner.workers.number == 1
    params = runner.params("embed")
    params.use_activation = False
    found = runner.pool(tokenized_of(*rows), params).values
    for row, vector in zip(rows, found, strict=True):
        fresh = AutoModel.from_pretrained(folder, dtype=torch.float32)
        with torch.inference_mode():
            alone = fresh(torch.from_numpy(row)[None]).last_hidden_state[0, -1].numpy()
        np.testing.assert_allclose(vector, alone, rtol=0, atol=2e-5)


def test_within_the_trained_length_nothing_is_scaled(folder):
    trained = TRAINED[folder.name]
    config = AutoModel.from_pretrained(folder).config
    assert not scales_with_length(config, trained)
    assert scales_with_length(config, trained + 1)


def test_other_models_scale_nothing():
    for family in ("Bert", "Llama", "ModernBert", "Qwen3"):
        assert not scales_with_length(tiny(family).config, 10**6)
