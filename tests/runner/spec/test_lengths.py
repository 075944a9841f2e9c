"""How long a row may be: position tables, offsets, sentinels, sentence-transformers, the user."""

import pytest

from poolembed.errors import ConfigError, ModelError
from poolembed.runner.spec import read_spec


@pytest.mark.parametrize(
    ("config", "positions"),
    [
        ({"model_type": "bert", "max_position_embeddings": 512}, 512),
        ({"model_type": "roberta", "max_position_embeddings": 514, "pad_token_id": 1}, 512),
        ({"model_type": "xlm-roberta", "max_position_embeddings": 8194}, 8192),
        ({"model_type": "camembert", "max_position_embeddings": 514, "pad_token_id": 0}, 513),
        ({"model_type": "mpnet", "max_position_embeddings": 514, "pad_token_id": 5}, 512),
        ({"model_type": "esm", "max_position_embeddings": 1026, "position_embedding_type": "rotary"}, 1026),
        ({"model_type": "gpt2", "n_positions": 1024}, 1024),
        ({"model_type": "openai-gpt", "n_ctx": 512}, 512),
        ({"model_type": "modernbert", "max_position_embeddings": 8192}, 8192),
        ({"model_type": "deberta-v2", "max_position_embeddings": 512}, None),
        ({"model_type": "t5", "n_positions": 512}, None),
        ({"model_type": "xlnet", "max_position_embeddings": -1}, None),
        ({"model_type": "bloom"}, None),
        (
            {
                "model_type": "llama",
                "max_position_embeddings": 100,
                "rope_scaling": {"type": "linear", "factor": 4},
            },
            400,
        ),
        (
            {
                "model_type": "llama",
                "max_position_embeddings": 100,
                "rope_parameters": {"rope_type": "dynamic", "factor": 2.5},
            },
            250,
        ),
        (
            {
                "model_type": "llama",
                "max_position_embeddings": 100,
                "rope_scaling": {"rope_type": "yarn", "factor": 4},
            },
            100,
        ),
        (
            {
                "model_type": "llama",
                "max_position_embeddings": 100,
                "rope_scaling": {"rope_type": "llama3", "factor": 8},
            },
            100,
        ),
        (
            {"model_type": "llama", "max_position_embeddings": 100, "rope_scaling": {"rope_type": "linear"}},
            100,
        ),
    ],
)
def test_usable_positions_of_each_family(library, config, positions):
    library.config("max_position_embeddings", **config)
    assert read_spec(library.path).max_positions == positions


def test_a_table_smaller_than_its_offset_is_an_error(library):
    library.config(model_type="roberta", max_position_embeddings=2, pad_token_id=1)
    with pytest.raises(ModelError, match=r"no position is left"):
        read_spec(library.path)


@pytest.mark.parametrize(
    ("positions", "tokenizer", "library_length", "length", "source"),
    [
        (64, 1e30, None, 64, "config.json: max_position_embeddings"),
        (64, 48, None, 48, "tokenizer_config.json: model_max_length"),
        (64, 96, None, 64, "config.json: max_position_embeddings"),
        (64, 48, 32, 32, "sentence_bert_config.json: max_seq_length"),
        (64, 48, 56, 56, "sentence_bert_config.json: max_seq_length"),
        (None, 48, None, 48, "tokenizer_config.json: model_max_length"),
        (None, None, None, 2048, "architecture default (nothing declared)"),
    ],
)
def test_length_without_a_choice(library, positions, tokenizer, library_length, length, source):
    library.config(max_position_embeddings=positions).edit(
        "tokenizer_config.json", model_max_length=tokenizer
    )
    if library_length:
        library.write("sentence_bert_config.json", {"max_seq_length": library_length})
    spec = read_spec(library.path)
    assert (spec.max_length, spec.sources["max_length"]) == (length, source)
    assert bool(spec.warnings) == (length == 2048)


def test_a_declared_length_beyond_the_table_is_cut_and_said(library):
    spec = read_spec(library.write("sentence_bert_config.json", {"max_seq_length": 100}).path)
    assert spec.max_length == 64
    assert any("max_seq_length is 100" in warning and "64" in warning for warning in spec.warnings)


def test_a_length_of_the_processor_counts_like_the_older_key(library):
    settings = {"processing_kwargs": {"text": {"max_length": 20}}}
    spec = read_spec(library.write("sentence_bert_config.json", settings).path)
    assert (spec.max_length, spec.sources["max_length"]) == (
        20,
        "sentence_bert_config.json: processing_kwargs: text: max_length",
    )


@pytest.mark.parametrize(
    ("config", "length"),
    [
        ({"model_type": "deberta-v2", "max_position_embeddings": 40}, 40),
        ({"model_type": "t5", "n_positions": 44}, 44),
        ({"model_type": "xlnet", "max_position_embeddings": -1}, 48),
    ],
)
def test_relative_models_keep_the_length_they_were_trained_for(library, config, length):
    library.config("max_position_embeddings", **config).edit("tokenizer_config.json", model_max_length=48)
    assert read_spec(library.path).max_length == length
    assert read_spec(library.path, max_length=5000).max_length == 5000


@pytest.mark.parametrize("chosen", [1, 48, 64])
def test_the_user_decides_up_to_the_table(library, chosen):
    library.write("sentence_bert_config.json", {"max_seq_length": 32})
    spec = read_spec(library.path, max_length=chosen)
    assert (spec.max_length, spec.sources["max_length"]) == (chosen, "user")


@pytest.mark.parametrize(
    ("chosen", "message"), [(65, "more than the model's 64 positions"), (0, "at least one")]
)
def test_no_choice_goes_beyond_the_table(library, chosen, message):
    with pytest.raises(ConfigError, match=message):
        read_spec(library.path, max_length=chosen)


def test_lower_casing_is_declared_next_to_the_length(library):
    spec = read_spec(library.write("sentence_bert_config.json", {"do_lower_case": True}).path)
    assert (spec.do_lower_case, spec.sources["do_lower_case"]) == (
        True,
        "sentence_bert_config.json: do_lower_case",
    )
