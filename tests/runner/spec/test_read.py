import json
import pickle
import subprocess
import sys

import pytest

from poolembed.errors import ModelError
from poolembed.runner.spec import ModelSpec, read_spec
from tests.runner.spec.folders import FAMILIES, ZOO


@pytest.mark.parametrize(
    ("config", "is_causal", "source"),
    [
        ({"model_type": "bert"}, False, "architecture default (nothing declared)"),
        ({"model_type": "bert", "is_decoder": True}, True, "config.json: is_decoder"),
        ({"model_type": "qwen3"}, True, "architecture default (nothing declared)"),
        ({"model_type": "qwen2", "is_causal": False}, False, "config.json: is_causal"),
        (
            {"model_type": "gemma3_text", "use_bidirectional_attention": True},
            False,
            "config.json: use_bidirectional_attention",
        ),
        (
            {"model_type": "gemma3_text", "use_bidirectional_attention": False},
            True,
            "config.json: use_bidirectional_attention",
        ),
        ({"model_type": "nomic_bert", "causal": False}, False, "config.json: causal"),
        ({"model_type": "martian"}, False, "architecture default (nothing declared)"),
        (
            {"model_type": "martian", "architectures": ["MartianForCausalLM"]},
            True,
            "architecture default (nothing declared)",
        ),
    ],
)
def test_the_direction_of_attention(library, config, is_causal, source):
    spec = read_spec(library.config(**config).path)
    assert (spec.is_causal, spec.sources["is_causal"]) == (is_causal, source)


@pytest.mark.parametrize("key", ["hidden_size", "d_model", "dim", "n_embd", "emb_dim"])
def test_the_width_goes_by_several_names(library, key):
    spec = read_spec(library.config("hidden_size", **{key: 8}).path)
    assert (spec.hidden_size, spec.sources["hidden_size"]) == (8, f"config.json: {key}")


@pytest.mark.parametrize(
    ("config", "dtype"), [({"torch_dtype": "float16"}, "float16"), ({"dtype": "bfloat16"}, "bfloat16")]
)
def test_the_precision_goes_by_two_names(library, config, dtype):
    assert read_spec(library.config("torch_dtype", **config).path).dtype == dtype


def test_an_undeclared_precision_stays_unknown(library):
    assert read_spec(library.config("torch_dtype").path).dtype is None


def test_the_name_is_the_folder_when_none_is_given(library):
    assert read_spec(library.path).name == "some-library-model"
    assert read_spec(library.path, model_name="a/b").name == "a/b"


def test_a_spec_travels_to_another_process(library):
    spec = read_spec(library.path)
    assert pickle.loads(pickle.dumps(spec)) == spec


def test_a_spec_cannot_be_changed(library):
    with pytest.raises(AttributeError):
        read_spec(library.path).max_length = 3


def test_what_the_pooling_layer_asks_of_a_model_is_there():
    wanted = {"is_matryoshka", "matryoshka_dimensions", "embedding_size", "pooler_config"}
    assert wanted <= set(ModelSpec.__slots__)


def test_reading_imports_neither_torch_nor_transformers(library):
    code = """
import sys, types
from pathlib import Path
import poolembed
# The room around this package may import them; the package itself must not.
room = types.ModuleType("poolembed.runner")
room.__path__ = [str(Path(poolembed.__file__).parent / "runner")]
sys.modules["poolembed.runner"] = room
from poolembed.runner.spec import read_spec
read_spec(Path(sys.argv[1])).to_json()
print(sorted({"torch", "transformers", "tokenizers", "pyarrow", "safetensors"} & set(sys.modules)))
"""
    command = [sys.executable, "-c", code, str(library.path)]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"


BROKEN = {
    "unknown pooling mode": ("bert-mean", "1_Pooling/config.json", {"pooling_mode": "median"}, "median"),
    "dense without weights": (
        "bert-dense-matryoshka",
        "2_Dense/model.safetensors",
        None,
        "2_Dense declares a Dense",
    ),
    "unreadable json": ("bert-mean", "modules.json", "[{", "modules.json cannot be read"),
    "no config": ("bert-mean", "config.json", None, "config.json is missing"),
    "no weights": ("bert-mean", "model.safetensors", None, "no model.safetensors"),
    "no tokenizer": ("modernbert-cls", "tokenizer.json", None, "no tokenizer.json"),
    "quantised": ("bert-mean", "config.json", {"quantization_config": {"bits": 4}}, "quantised"),
    "half of bge-m3": ("xlmroberta-bge-m3", "sparse_linear.pt", None, "sparse_linear.pt is missing"),
    "template gone": (
        "qwen3-seqcls",
        "tokenizer_config.json",
        {"chat_template": None},
        "chat template 'default'",
    ),
    "splade by sum": ("bert-splade", "1_SpladePooling/config.json", {"pooling_strategy": "sum"}, "'sum'"),
    "label surplus": (
        "bert-seqcls",
        "config.json",
        {"id2label": {str(i): "x" for i in range(5)}},
        "3 outputs",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_model_of_the_zoo_is_refused_with_what_to_do(zoo, case):
    family, name, change, message = BROKEN[case]
    folder = zoo(family)
    if change is None:
        folder.remove(name)
    elif isinstance(change, dict):
        folder.edit(name, **change)
    else:
        folder.write(name, change)
    with pytest.raises(ModelError, match=message) as caught:
        read_spec(folder.path)
    assert caught.value.hint


@pytest.mark.skipif(not FAMILIES, reason="the shared zoo of checkpoints is not there (POOLEMBED_SHARED)")
@pytest.mark.parametrize("family", ["bert-colbert", "qwen3-seqcls", "bert-seqcls", "bert-mean"])
def test_a_table_shows_what_the_json_says(family):
    spec = read_spec(ZOO / "models" / family)
    values = json.loads(json.dumps(spec.to_json()))
    for name, value, _ in spec.rows():
        if name in values and name not in ("tokenizer", "template"):
            assert json.loads(json.dumps(value)) == values[name]
