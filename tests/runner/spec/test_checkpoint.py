import pytest

from poolembed.errors import ModelError
from poolembed.runner.spec import read_spec
from tests.runner.spec.folders import POOLING, TRANSFORMER, Folder


def refused(folder, message, **options):
    with pytest.raises(ModelError, match=message) as caught:
        read_spec(folder.path, **options)
    assert caught.value.hint
    return caught.value


def test_a_folder_that_does_not_exist_is_refused(tmp_path):
    with pytest.raises(ModelError, match=r"none is not a folder"):
        read_spec(tmp_path / "none")


def test_an_adapter_is_refused(bert):
    error = refused(bert.write("adapter_config.json", {"peft_type": "LORA"}), r"adapter_config\.json.*LoRA")
    assert "merge" in error.hint


@pytest.mark.parametrize("content", [None, {}])
def test_missing_config_is_refused(bert, content):
    bert.remove("config.json") if content is None else bert.write("config.json", content)
    refused(bert, r"config\.json is missing or empty")


def test_a_folder_of_gguf_says_so(tmp_path):
    refused(Folder(tmp_path).write("model.gguf", ""), "the folder holds GGUF weights")


def test_missing_weights_are_refused(bert):
    refused(bert.remove("model.safetensors"), "no model.safetensors and no pytorch_model.bin")


def test_a_folder_of_onnx_alone_says_so(bert):
    refused(bert.remove("model.safetensors").write("onnx/model.onnx", ""), "only ONNX weights")


def test_a_missing_tokenizer_is_refused(bert):
    refused(bert.remove("tokenizer.json"), r"no tokenizer\.json")


def test_an_older_tokenizer_file_is_enough(bert):
    spec = read_spec(bert.remove("tokenizer.json").write("vocab.txt", "[PAD]").path)
    assert (spec.tokenizer.vocab_size, spec.tokenizer.single_template) == (None, None)


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "tokenizer_config.json", "modules.json"])
def test_unreadable_json_is_refused_by_name(library, name):
    refused(library.write(name, "{ cut"), f"{name} cannot be read as JSON")


def test_a_model_in_a_subfolder_is_found(library):
    library.write(
        "modules.json",
        [{"path": "0_Transformer", "type": TRANSFORMER}, {"path": "1_Pooling", "type": POOLING}],
    )
    (library.path / "0_Transformer").mkdir()
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors"):
        (library.path / name).rename(library.path / "0_Transformer" / name)
    library.write("0_Transformer/sentence_bert_config.json", {"max_seq_length": 32})
    spec = read_spec(library.path)
    assert (spec.subfolder, spec.weight_files, spec.max_length) == (
        "0_Transformer",
        ("0_Transformer/model.safetensors",),
        32,
    )
    assert spec.sources["max_length"] == "0_Transformer/sentence_bert_config.json: max_seq_length"


def test_modules_that_do_not_start_with_a_transformer_are_refused(library):
    refused(library.modules(POOLING), r"modules\.json starts with Pooling")


@pytest.mark.parametrize("key", ["architectures", "model_type"])
def test_an_unnamed_architecture_is_refused_with_the_way_to_name_it(bert, key):
    assert "--set" in refused(bert.config(key), f"config.json: {key} is missing").hint


def test_pickled_weights_are_warned_about(bert):
    spec = read_spec(bert.remove("model.safetensors").write("pytorch_model.bin", "").path)
    assert any("pytorch_model.bin is a pickle" in warning for warning in spec.warnings)


def test_a_missing_hidden_size_is_refused(bert):
    refused(bert.config("hidden_size"), "none of hidden_size")
