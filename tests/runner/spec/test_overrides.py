"""`--set key=value` and the pooler's options: typed, checked, above everything a file says."""

from dataclasses import fields

import pytest

from poolembed.config import PoolerConfig
from poolembed.errors import ConfigError
from poolembed.runner.spec import CONFIG_KEYS, KINDS, SETTINGS, ModelSpec, read_spec
from poolembed.runner.spec.late_interaction import LateInteraction

# Settings that are no field of the record, with the field that each one changes.
RENAMED = {"normalize": "use_activation", "padding_side": "tokenizer"}


def test_every_setting_changes_a_field_of_the_record():
    names = {field.name for field in fields(ModelSpec)} | {field.name for field in fields(LateInteraction)}
    assert {RENAMED.get(name, name) for name in SETTINGS} <= names
    assert not set(SETTINGS) & set(CONFIG_KEYS)


@pytest.mark.parametrize(
    ("key", "text", "name", "value"),
    [
        ("pooling", "CLS+MEAN", "pooling", "CLS+MEAN"),
        ("include_prompt", "false", "include_prompt", False),
        ("normalize", "False", "use_activation", False),
        ("max_length", "16", "max_length", 16),
        ("padding_side", "left", "padding_side", "left"),
        ("do_lower_case", "true", "do_lower_case", True),
        ("token_types", "false", "token_types", False),
        ("similarity", "dot", "similarity", "dot"),
        ("prompts", '{"q": "query: "}', "prompts", {"q": "query: "}),
        ("is_matryoshka", "true", "is_matryoshka", True),
        ("matryoshka_dimensions", "[2, 4]", "matryoshka_dimensions", (2, 4)),
        ("is_causal", "true", "is_causal", True),
    ],
)
def test_a_setting_replaces_what_the_files_say(library, key, text, name, value):
    before = read_spec(library.path)
    after = read_spec(library.path, overrides={key: text})
    assert getattr(after, name) == value != getattr(before, name)
    source = {"include_prompt": "pooling_includes_prompt", "use_activation": "activation"}.get(name, name)
    assert after.sources[source] == "user"


def test_a_kind_can_be_chosen(library):
    spec = read_spec(library.weights(**{"classifier.weight": (2, 8)}).path, overrides={"kind": "classifier"})
    assert (spec.kind, spec.tasks, spec.sources["kind"]) == ("classifier", ("classify",), "user")


def test_a_default_prompt_can_be_chosen(library):
    library.write("config_sentence_transformers.json", {"prompts": {"query": "q: ", "document": ""}})
    spec = read_spec(library.path, overrides={"default_prompt_name": "query"})
    assert (spec.default_prompt, spec.sources["default_prompt_name"]) == ("q: ", "user")


def test_changed_keys_of_config_json_are_handed_to_the_loader(library):
    spec = read_spec(
        library.path, overrides={"is_causal": "true", "type_vocab_size": "1", "torch_dtype": "7"}
    )
    assert spec.config_overrides == {"is_causal": True, "type_vocab_size": 1, "torch_dtype": "7"}


def test_a_key_whose_type_no_one_knows_takes_any_json(library):
    library.config(rope_scaling=None)
    spec = read_spec(library.path, overrides={"rope_scaling": '{"rope_type": "linear", "factor": 2.0}'})
    assert spec.max_positions == 128


def test_a_whole_number_is_a_number(library):
    assert read_spec(
        library.config(layer_norm_eps=0.5).path, overrides={"layer_norm_eps": "1"}
    ).config_overrides == {"layer_norm_eps": 1.0}


@pytest.mark.parametrize(
    ("key", "text", "expected"),
    [
        ("kind", "chat", "one of " + ", ".join(KINDS)),
        ("include_prompt", "yes", "true or false"),
        ("max_length", "-1", "a whole number"),
        ("max_length", "many", "a whole number"),
        ("padding_side", "middle", "one of left, right"),
        ("labels", "a,b", "a JSON list of strings"),
        ("labels", '{"a": "b"}', "a JSON list of strings"),
        ("labels", "[1]", "a JSON list of strings"),
        ("prompts", '["a"]', "a JSON object of strings"),
        ("prompts", '{"a": 1}', "a JSON object of strings"),
        ("is_causal", "perhaps", "true or false"),
        ("is_causal", "1", "true or false"),
        ("hidden_size", "true", "a whole number"),
        ("architectures", "BertModel", "a JSON list"),
        ("id2label", "[]", "a JSON object"),
        ("layer_norm_eps", "small", "float"),
    ],
)
def test_a_value_of_the_wrong_type_is_an_error(library, key, text, expected):
    with pytest.raises(ConfigError, match=rf"--set {key}=.*expected {expected}"):
        read_spec(library.config(layer_norm_eps=1e-5).path, overrides={key: text})


@pytest.mark.parametrize(
    ("key", "near"),
    [
        ("poolin", "pooling"),
        ("max_lenght", "max_length"),
        ("is_casual", "is_causal"),
        ("hidden_sizes", "hidden_size"),
    ],
)
def test_an_unknown_key_names_near_ones(library, key, near):
    with pytest.raises(ConfigError, match=rf"--set {key}: unknown setting, did you mean .*{near}"):
        read_spec(library.path, overrides={key: "1"})


def test_an_unknown_key_like_no_other_is_just_unknown(library):
    with pytest.raises(ConfigError, match=r"--set zzzz: unknown setting$"):
        read_spec(library.path, overrides={"zzzz": "1"})


def test_a_pooler_option_is_pointed_to(library):
    with pytest.raises(
        ConfigError, match=r"--set logit_mean: this can be set in Python only, by PoolerConfig"
    ):
        read_spec(library.path, overrides={"logit_mean": "1"})


def test_all_problems_are_named_at_once(library):
    with pytest.raises(ConfigError, match=r"zzzz.*include_prompt"):
        read_spec(library.path, overrides={"zzzz": "1", "include_prompt": "1"})


@pytest.mark.parametrize(
    "config",
    [
        PoolerConfig(pooling_type="MAX"),
        PoolerConfig(seq_pooling_type="MAX"),
    ],
)
def test_the_pooling_option_replaces_the_files(library, config):
    spec = read_spec(library.path, pooler_config=config)
    assert (spec.pooling, spec.sources["pooling"]) == ("MAX", "user")
    assert (spec.pooler_config.seq_pooling_type, spec.pooler_config.pooling_type) == ("MAX", None)


def test_a_token_pooling_option_is_told_from_a_sequence_one(library):
    spec = read_spec(library.path, pooler_config=PoolerConfig(pooling_type="STEP", step_tag_id=7))
    assert (spec.pooling, spec.tok_pooling, spec.step_tag_id) == ("MEAN", "STEP", 7)
    assert (spec.pooler_config.tok_pooling_type, spec.pooler_config.step_tag_id) == ("STEP", 7)
    assert spec.sources["tok_pooling"] == "user"


def test_a_step_token_needs_step_pooling(library):
    with pytest.raises(ConfigError, match=r"step_tag_id"):
        read_spec(library.path, pooler_config=PoolerConfig(step_tag_id=7))


def test_the_same_thing_twice_is_an_error(library):
    with pytest.raises(ConfigError, match=r"pooling given both as an option and with --set"):
        read_spec(library.path, pooler_config=PoolerConfig(pooling_type="CLS"), overrides={"pooling": "CLS"})
    with pytest.raises(ConfigError, match=r"normalize together with use_activation"):
        read_spec(
            library.path, pooler_config=PoolerConfig(use_activation=True), overrides={"normalize": "true"}
        )


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("template", "none"),
        ("labels", '["a"]'),
        ("query_length", "8"),
        ("activation", "none"),
        ("skiplist", '["."]'),
    ],
)
def test_a_setting_without_meaning_for_the_kind_is_an_error(library, key, text):
    with pytest.raises(ConfigError, match=rf"{key}: no meaning for a model of kind 'embedding'"):
        read_spec(library.path, overrides={key: text})


@pytest.mark.parametrize("is_used", [True, False])
def test_the_activation_option_decides_over_the_files(library, is_used):
    spec = read_spec(library.path, pooler_config=PoolerConfig(use_activation=is_used))
    assert (spec.activation, spec.use_activation, spec.pooler_config.use_activation) == (
        "normalize",
        is_used,
        is_used,
    )
    assert spec.sources["activation"] == "user"
    assert spec.to_json()["activation"] == ("normalize" if is_used else "none")


def test_options_without_a_declaration_are_kept(library):
    config = PoolerConfig(dimensions=4, logit_mean=0.5, enable_chunked_processing=True)
    kept = read_spec(library.path, pooler_config=config).pooler_config
    assert (kept.dimensions, kept.logit_mean, kept.enable_chunked_processing) == (4, 0.5, True)
