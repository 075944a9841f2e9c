import copy
import dataclasses
import pickle

import pytest

from poolembed.config import REMOVED_POOLER_FIELDS, SEQ_POOLING_TYPES, TOK_POOLING_TYPES, PoolerConfig
from poolembed.errors import ConfigError
from poolembed.poolers.methods.registry import SEQUENCE_METHODS, TOKEN_METHODS


def test_names_are_those_of_the_registry():
    assert tuple(SEQUENCE_METHODS.builtin) == SEQ_POOLING_TYPES
    assert tuple(TOKEN_METHODS.builtin) == TOK_POOLING_TYPES


@pytest.mark.parametrize("name", [*SEQ_POOLING_TYPES, "CLS+MEAN", "MAX+LAST+MEAN"])
def test_pooling_type_fills_the_sequence_field(name):
    config = PoolerConfig(pooling_type=name)
    assert (config.seq_pooling_type, config.tok_pooling_type, config.pooling_type) == (name, None, None)
    assert config == PoolerConfig(seq_pooling_type=name)


@pytest.mark.parametrize("name", TOK_POOLING_TYPES)
def test_pooling_type_fills_the_token_field(name):
    config = PoolerConfig(pooling_type=name)
    assert (config.seq_pooling_type, config.tok_pooling_type, config.pooling_type) == (None, name, None)


@pytest.mark.parametrize("field", ["seq_pooling_type", "tok_pooling_type"])
def test_pooling_type_excludes_the_fields_it_fills(field):
    with pytest.raises(ConfigError, match=f"'pooling_type' and '{field}' exclude each other"):
        PoolerConfig(pooling_type="CLS", **{field: "ALL"})


@pytest.mark.parametrize("name", ["FOO", "cls", "CLS+ALL", "CLS+", "ALL+STEP"])
def test_unknown_pooling_type_is_refused_with_the_known_ones(name):
    with pytest.raises(ConfigError, match=r"unknown pooling_type .*MEAN_SQRT_LEN.*STEP"):
        PoolerConfig(pooling_type=name)


def test_names_of_other_packages_go_to_the_fields_directly():
    assert PoolerConfig(seq_pooling_type="THEIRS").get_seq_pooling_type() == "THEIRS"
    assert PoolerConfig(tok_pooling_type="THEIRS").get_tok_pooling_type() == "THEIRS"


@pytest.mark.parametrize(("name", "pointer"), REMOVED_POOLER_FIELDS.items())
def test_removed_names_point_to_their_replacement(name, pointer):
    with pytest.raises(ConfigError) as caught:
        PoolerConfig(**{name: True})
    assert f"'{name}' was removed: {pointer}" in str(caught.value)


def test_unknown_names_are_refused_with_what_resembles_them():
    with pytest.raises(ConfigError) as caught:
        PoolerConfig(dimension=3, normalize=True, xyzzy=1)
    message = str(caught.value)
    assert "unknown pooler setting 'dimension', did you mean 'dimensions'?" in message
    assert "unknown pooler setting 'xyzzy';" not in message
    assert "unknown pooler setting 'xyzzy'" in message
    assert "'normalize' was removed" in message
    assert "returned_token_ids" in caught.value.hint


@pytest.mark.parametrize("task", ["score", "encode"])
def test_removed_tasks_are_refused(task):
    with pytest.raises(ValueError, match="was removed"):
        PoolerConfig(task=task)


def test_a_known_task_is_kept():
    assert PoolerConfig(task="token_embed").task == "token_embed"


def test_every_wrong_value_is_listed():
    with pytest.raises(ConfigError) as caught:
        PoolerConfig(task="nope", dimensions=0, max_embed_len=-1, logit_mean=float("nan"), logit_sigma=0)
    message = str(caught.value)
    for part in (
        "unknown pooling task 'nope'",
        "dimensions must be at least 1, got 0",
        "max_embed_len must be at least 1, got -1",
        "logit_mean must be finite, got nan",
        "logit_sigma must not be 0",
    ):
        assert part in message


@pytest.mark.parametrize("sigma", [0, 0.0, -0.0, float("inf"), float("nan")])
def test_sigma_that_cannot_divide_is_refused(sigma):
    with pytest.raises(ValueError, match="logit_sigma"):
        PoolerConfig(logit_sigma=sigma)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"task": 1}, "task must be a name, got 1"),
        ({"pooling_type": True}, "pooling_type must be a name"),
        ({"use_activation": 1}, "use_activation must be true or false"),
        ({"enable_chunked_processing": None}, "enable_chunked_processing must be true or false"),
        ({"enable_flash_late_interaction": "yes"}, "enable_flash_late_interaction must be true or false"),
        ({"dimensions": True}, "dimensions must be a whole number"),
        ({"dimensions": 64.0}, "dimensions must be a whole number"),
        ({"step_tag_id": "5"}, "step_tag_id must be a whole number"),
        ({"logit_mean": "1"}, "logit_mean must be a number"),
        ({"logit_sigma": True}, "logit_sigma must be a number"),
        ({"returned_token_ids": (True,)}, "returned_token_ids must be a tuple of token ids"),
        ({"returned_token_ids": "12"}, "returned_token_ids must be a tuple of token ids"),
    ],
)
def test_values_of_the_wrong_type_are_refused(values, message):
    with pytest.raises(ConfigError, match=message):
        PoolerConfig(**values)


@pytest.mark.parametrize("value", [1, 1.5, -2, 1e-30])
def test_sigma_and_mean_may_be_any_other_number(value):
    config = PoolerConfig(logit_mean=value, logit_sigma=value)
    assert (config.logit_mean, config.logit_sigma) == (value, value)


def test_smallest_counts_are_taken():
    config = PoolerConfig(dimensions=1, max_embed_len=1, step_tag_id=0)
    assert (config.dimensions, config.max_embed_len, config.step_tag_id) == (1, 1, 0)


def test_asking_for_an_unset_method_is_an_error():
    with pytest.raises(ValueError, match="seq_pooling_type is not set"):
        PoolerConfig(tok_pooling_type="ALL").get_seq_pooling_type()
    with pytest.raises(ValueError, match="tok_pooling_type is not set"):
        PoolerConfig(seq_pooling_type="CLS").get_tok_pooling_type()


def test_it_is_frozen_slotted_hashable_and_copies():
    config = PoolerConfig(pooling_type="MEAN", returned_token_ids=[3, 4])
    assert config.returned_token_ids == (3, 4)
    assert hash(config) == hash(PoolerConfig(seq_pooling_type="MEAN", returned_token_ids=(3, 4)))
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.task = "embed"
    assert not hasattr(config, "__dict__")
    assert pickle.loads(pickle.dumps(config)) == config
    assert copy.deepcopy(config) == config
    assert PoolerConfig(**dataclasses.asdict(config)) == config
    assert dataclasses.replace(config, dimensions=5).dimensions == 5
