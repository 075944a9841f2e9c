"""From a name to a runner that is ready: precision, budget, and everything that is refused on the way."""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from transformers import BertModel

from poolembed.config import ModelConfig, PoolerConfig
from poolembed.errors import ConfigError, ModelError
from poolembed.runner.encoder import EncoderModel
from poolembed.runner.load import load_runner
from poolembed.runner.packing import pack
from tests.runner.tiny import edit_json


@pytest.fixture
def copy(models, tmp_path):
    """A copy of a zoo model, to be changed."""
    return lambda family: shutil.copytree(models / family, tmp_path / family)


def load(folder, pooler=None, batch_tokens=512, **options):
    return load_runner(ModelConfig(model=str(folder), **{"device": "cpu", **options}), pooler, batch_tokens)


def vectors(runner, texts=("the cat sat on the mat",)):
    return runner.pool(runner.tokenizers.texts()(list(texts)), runner.params("embed")).values


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_the_precision_asked_for_is_the_models(models, dtype):
    runner = load(models / "bert-mean", dtype=dtype)
    assert runner.dtype == dtype
    assert runner.check.path == "packed"
    exact = vectors(load(models / "bert-mean"))
    cosine = (vectors(runner) * exact).sum() / np.linalg.norm(exact)
    assert cosine > 0.999


def test_layers_of_transformers_give_the_same_hidden_states_as_our_own(models):
    ours, theirs = (load(models / "bert-mean", model_impl=name) for name in ("auto", "transformers"))
    assert isinstance(ours.backbone.model, EncoderModel)
    assert isinstance(theirs.backbone.model, BertModel)
    rows = ours.tokenizers.texts()(["the cat sat on the mat", "bread", "a star is a ball of hot gas"])
    batch = pack(rows, np.arange(3))
    found, expected = (runner.backbone.forward(batch).numpy() for runner in (ours, theirs))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)
    described = [runner.describe(runner.params("embed"))["model_impl"] for runner in (ours, theirs)]
    assert described == ["poolembed", "transformers"]


def test_what_has_no_layers_of_our_own_has_those_of_transformers(models):
    runner = load(models / "qwen3-last", model_impl="auto")
    assert runner.backbone.model_impl == "transformers"


def test_weights_of_half_precision_run_in_float32_on_the_cpu(models):
    assert load(models / "bert-mean-fp16").dtype == "float32"


@pytest.mark.parametrize("declared", ["no_such_type", "zeros"])
def test_a_precision_that_torch_does_not_know_is_refused(copy, declared):
    folder = copy("bert-mean")
    edit_json(folder / "config.json", "dtype", torch_dtype=declared)
    with pytest.raises(ModelError, match=f"declares weights of type '{declared}'"):
        load(folder)


def test_no_precision_of_its_own_means_float32(copy):
    folder = copy("bert-mean")
    edit_json(folder / "config.json", "dtype", "torch_dtype")
    assert load(folder).dtype == "float32"


@pytest.mark.parametrize(
    ("family", "pooling", "shares"),
    [
        ("qwen3-causal-reranker", None, True),
        ("qwen2-last", None, True),
        ("qwen2-last", "MEAN", False),
        ("bert-lasttoken", None, False),
    ],
)
def test_prefixes_are_shared_where_the_last_token_of_a_causal_model_is_pooled(
    models, family, pooling, shares
):
    pooler = PoolerConfig(seq_pooling_type=pooling) if pooling else None
    assert load(models / family, pooler).check.shares_prefixes == shares


def test_a_budget_that_is_given_is_taken(models):
    assert load(models / "bert-mean", batch_tokens=77).batch_tokens == 77


def test_a_budget_that_is_not_given_is_found_once_for_each_model_and_precision(models):
    file = Path(os.environ["HF_HOME"]) / "poolembed" / "budgets.json"
    first = load(models / "bert-cls", batch_tokens=None).batch_tokens
    assert load(models / "bert-cls", batch_tokens=None).batch_tokens == first
    load(models / "bert-cls", batch_tokens=None, dtype="bfloat16")
    keys = [key for key in json.loads(file.read_text("utf-8")) if "/bert-cls " in key]
    assert len([key for key in keys if "float32" in key]) == 1
    assert len([key for key in keys if "bfloat16" in key]) == 1
    assert all("packed poolembed cpu" in key for key in keys)


def test_the_users_choices_reach_the_result(models):
    default = load(models / "bert-mean")
    changed = load(models / "bert-mean", PoolerConfig(seq_pooling_type="CLS", use_activation=False))
    assert np.linalg.norm(vectors(default)) == pytest.approx(1, abs=1e-5)
    assert np.linalg.norm(vectors(changed)) > 1.1
    short = load(models / "bert-mean", max_length=4)
    assert short.tokenizers.texts()(["the cat sat on the mat"]).lengths.tolist() == [4]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"device": "cuda:99"}, ConfigError, "torch sees"),
        ({"max_length": 4000}, ConfigError, "512 positions"),
        ({"overrides": (("no_such_key", "1"),)}, ConfigError, "no_such_key"),
    ],
)
def test_what_the_model_or_the_machine_cannot_do_is_refused(models, options, error, message):
    with pytest.raises(error, match=message):
        load(models / "bert-mean", **options)


def test_a_model_that_overflows_in_float16_is_refused_there(models):
    with pytest.raises(ConfigError, match="overflow in float16"):
        load(models / "gemma3-bidirectional", dtype="float16")


def test_a_folder_without_weights_is_refused(copy):
    folder = copy("bert-mean")
    (folder / "model.safetensors").unlink()
    with pytest.raises(ModelError):
        load(folder)


def test_loading_twice_gives_the_same_bits(models):
    np.testing.assert_array_equal(vectors(load(models / "qwen3-last")), vectors(load(models / "qwen3-last")))
