import pytest

from poolembed.errors import ModelError
from poolembed.runner.spec import read_spec

FILE = "sentence_bert_config.json"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"processing_kwargs": {"image": {}}}, "processing_kwargs: image is not supported"),
        ({"processing_kwargs": {"text": {"stride": 3}}}, "processing_kwargs: text: stride is not supported"),
        ({"model_args": {"rope_scaling": {}}}, "model_args: rope_scaling is not supported"),
        ({"model_kwargs": {"pooling_mode": 1}}, "model_kwargs: pooling_mode is not supported"),
        ({"modality_config": {"message": {}}}, "takes no plain text, only message"),
        (
            {"modality_config": {"text": {"method_output_name": "pooler_output"}}},
            "method_output_name is 'pooler_output', expected 'last_hidden_state'",
        ),
    ],
)
def test_a_call_that_is_not_made_here_is_an_error(library, settings, message):
    with pytest.raises(ModelError, match=rf"{FILE}: .*{message}"):
        read_spec(library.write(FILE, settings).path)


@pytest.mark.parametrize(
    "settings",
    [
        {"model_args": {"torch_dtype": "float16", "attn_implementation": "sdpa"}},
        {"modality_config": {"text": {"method": "forward", "method_output_name": "last_hidden_state"}}},
        {"unpad_inputs": True, "transformer_task": "feature-extraction"},
        {"processing_kwargs": {"text": {"truncation": True, "padding": True}}},
    ],
)
def test_settings_of_speed_and_memory_change_nothing(library, settings):
    before = read_spec(library.path)
    assert read_spec(library.write(FILE, settings).path) == before


def test_configuration_arguments_are_put_over_config_json(library):
    library.write(FILE, {"config_args": {"is_causal": True}})
    spec = read_spec(library.path)
    assert (spec.is_causal, spec.sources["is_causal"]) == (True, f"{FILE}: config_args")
    assert spec.config_overrides == {"is_causal": True}


def test_tokenizer_arguments_are_put_over_its_configuration(library):
    library.write(FILE, {"tokenizer_args": {"model_max_length": 20, "padding_side": "left"}})
    spec = read_spec(library.path)
    assert (spec.max_length, spec.padding_side) == (20, "left")
    assert spec.sources["padding_side"] == f"{FILE}: tokenizer_args"
