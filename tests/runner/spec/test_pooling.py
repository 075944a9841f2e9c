import pytest

from poolembed.config import PoolerConfig
from poolembed.errors import ModelError
from poolembed.runner.spec import read_spec
from tests.runner.spec.folders import DENSE, NORMALIZE, POOLING, TRANSFORMER

FLAG = "pooling_mode_{}"


@pytest.mark.parametrize(
    ("config", "pooling", "source"),
    [
        ({"pooling_mode_cls_token": True}, "CLS", "pooling_mode_cls_token"),
        ({"pooling_mode_cls_token": False, "pooling_mode_lasttoken": True}, "LAST", "pooling_mode_lasttoken"),
        ({"pooling_mode_max_tokens": True}, "MAX", "pooling_mode_max_tokens"),
        ({"pooling_mode_mean_sqrt_len_tokens": True}, "MEAN_SQRT_LEN", "pooling_mode_mean_sqrt_len_tokens"),
        ({"pooling_mode_weightedmean_tokens": True}, "WEIGHTED_MEAN", "pooling_mode_weightedmean_tokens"),
        (
            {"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": True},
            "CLS+MEAN",
            "pooling_mode_cls_token, pooling_mode_mean_tokens",
        ),
        ({"pooling_mode": "lasttoken"}, "LAST", "pooling_mode"),
        ({"pooling_mode": ["mean", "cls"]}, "MEAN+CLS", "pooling_mode"),
        ({"pooling_mode": "cls", "pooling_mode_mean_tokens": True}, "CLS", "pooling_mode"),
    ],
)
def test_both_forms_of_the_mode_are_read(library, config, pooling, source):
    spec = read_spec(library.write("1_Pooling/config.json", config).path)
    assert (spec.pooling, spec.sources["pooling"]) == (pooling, f"1_Pooling/config.json: {source}")
    assert spec.embedding_size == 8 * len(pooling.split("+"))


def test_no_flag_at_all_is_the_default_of_the_module(library):
    spec = read_spec(library.write("1_Pooling/config.json", {"word_embedding_dimension": 8}).path)
    assert (spec.pooling, spec.sources["pooling"]) == (
        "MEAN",
        "default of 1_Pooling/config.json, which sets no pooling_mode",
    )


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"pooling_mode": "median"}, "pooling_mode: the pooling mode 'median' is unknown"),
        ({"pooling_mode": ["cls", 3]}, "the pooling mode 3 is unknown"),
        ({"pooling_mode_median_tokens": True}, "'pooling_mode_median_tokens' is unknown"),
        ({"pooling_mode_cls_token": "yes"}, "pooling_mode_cls_token is 'yes', expected true or false"),
        ({}, "1_Pooling/config.json is missing"),
    ],
)
def test_an_unknown_mode_is_an_error_and_no_default(library, config, message):
    with pytest.raises(ModelError, match=message):
        read_spec(library.write("1_Pooling/config.json", config).path)


def test_an_unknown_mode_that_is_off_does_no_harm(library):
    library.write(
        "1_Pooling/config.json", {"pooling_mode_median_tokens": False, "pooling_mode_cls_token": True}
    )
    assert read_spec(library.path).pooling == "CLS"


@pytest.mark.parametrize(("declared", "expected"), [(False, False), (True, True), (None, True)])
def test_whether_the_prompt_is_pooled(library, declared, expected):
    library.write("1_Pooling/config.json", {"pooling_mode": "mean", "include_prompt": declared})
    assert read_spec(library.path).include_prompt is expected


def test_a_width_that_differs_from_config_json_counts_and_is_said(library):
    library.write("1_Pooling/config.json", {"pooling_mode": ["cls", "mean"], "word_embedding_dimension": 6})
    spec = read_spec(library.path)
    assert spec.embedding_size == 12
    assert any("word_embedding_dimension is 6" in warning for warning in spec.warnings)


def test_the_newer_name_of_the_width_is_known(library):
    library.write("1_Pooling/config.json", {"pooling_mode": "cls", "embedding_dimension": 8})
    assert not read_spec(library.path).warnings


@pytest.mark.parametrize("has_normalize", [True, False])
def test_only_a_normalize_module_normalises(library, has_normalize):
    library.modules(TRANSFORMER, POOLING, *([NORMALIZE] if has_normalize else []))
    spec = read_spec(library.path)
    assert spec.use_activation is has_normalize
    assert spec.pooler_config.use_activation is has_normalize


def test_dropout_is_nothing_outside_training(library):
    library.modules(TRANSFORMER, POOLING, "sentence_transformers.models.Dropout", NORMALIZE)
    assert read_spec(library.path).use_activation


@pytest.mark.parametrize(
    "modules",
    [
        (TRANSFORMER,),
        (TRANSFORMER, NORMALIZE),
        (TRANSFORMER, POOLING, POOLING),
        (TRANSFORMER, POOLING, NORMALIZE, DENSE),
        (TRANSFORMER, DENSE, POOLING),
    ],
)
def test_another_order_of_modules_is_an_error(library, modules):
    library.modules(*modules)
    with pytest.raises(ModelError, match=r"the order Transformer, .*is not supported"):
        read_spec(library.path)


def test_a_token_wise_normalize_is_no_normalize_of_the_embedding(library):
    library.write("2_Normalize/config.json", {"module_input_name": "token_embeddings"})
    with pytest.raises(ModelError, match=r"2_Normalize/config.json: module_input_name is 'token_embeddings'"):
        read_spec(library.path)
    library.write("2_Normalize/config.json", {"module_input_name": "sentence_embedding"})
    assert read_spec(library.path).use_activation


def test_an_encoder_without_files_is_pooled_as_sentence_transformers_does(bert):
    spec = read_spec(bert.path)
    assert (spec.pooling, spec.use_activation) == ("MEAN", False)
    assert spec.sources["pooling"] == "architecture default (nothing declared)"
    assert "MEAN and not normalised" in spec.warnings[0]


def test_a_decoder_without_files_takes_its_last_token(qwen):
    spec = read_spec(qwen.path)
    assert (spec.kind, spec.pooling, spec.use_activation) == ("embedding", "LAST", True)
    assert "LAST and normalised" in spec.warnings[0]


def test_an_unknown_family_without_files_is_an_error_until_the_user_says_how(bert):
    bert.config(model_type="martian", architectures=["MartianModel"])
    with pytest.raises(ModelError, match=r"nothing declares how MartianModel pools") as caught:
        read_spec(bert.path)
    assert "--pooling" in caught.value.hint
    spec = read_spec(bert.path, pooler_config=PoolerConfig(pooling_type="CLS"))
    assert (spec.pooling, spec.use_activation) == ("CLS", True)
    assert "normalised, as is usual for embeddings; --no-activation leaves it out" in spec.warnings[0]
    raw = read_spec(bert.path, pooler_config=PoolerConfig(pooling_type="CLS", use_activation=False))
    assert raw.use_activation is False


@pytest.mark.parametrize(("declared", "pooling"), [("avg", "MEAN"), ("cls", "CLS"), ("last", "LAST")])
def test_bidirectional_llamas_name_their_pooling_themselves(bert, declared, pooling):
    bert.config(model_type="llama_bidirec", architectures=["LlamaBidirectionalModel"], pooling=declared)
    spec = read_spec(bert.path)
    assert (spec.pooling, spec.sources["pooling"], spec.is_causal, spec.use_activation) == (
        pooling,
        "config.json: pooling",
        False,
        True,
    )
    with pytest.raises(ModelError, match=r"pooling is 'weighted'"):
        read_spec(bert.config(pooling="weighted").path)


def test_a_bidirectional_name_without_pooling_is_like_any_other(bert):
    bert.config(model_type="llama", architectures=["LlamaBidirectionalModel"])
    assert read_spec(bert.path).pooling == "LAST"
