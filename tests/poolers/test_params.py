from dataclasses import dataclass

import pytest

from poolembed.config import PoolerConfig
from poolembed.errors import ConfigError
from poolembed.poolers import LateChunkingParams, PoolingParams, PoolingParamsUpdate

TASKS = ["embed", "classify", "token_embed", "token_classify"]
TOKEN_TASKS = ["token_embed", "token_classify"]


@dataclass
class FakeSpec:
    pooler_config: PoolerConfig | None = None
    is_matryoshka: bool = False
    matryoshka_dimensions: tuple[int, ...] | None = None
    embedding_size: int = 32


def spec(**config):
    return FakeSpec(PoolerConfig(**config))


def test_every_parameter_is_open_by_default():
    params = PoolingParams()
    assert (params.use_activation, params.dimensions, params.late_chunking_params) == (None, None, None)
    assert (params.step_tag_id, params.returned_token_ids, params.task) == (None, None, None)
    assert params.requires_token_ids is False


@pytest.mark.parametrize("task", ["score", "encode"])
def test_removed_tasks_are_refused(task):
    with pytest.raises(ValueError, match=rf"{task}' was removed \(use '"):
        PoolingParams(task=task)


def test_unknown_tasks_are_refused():
    with pytest.raises(ConfigError, match="unknown pooling task 'foo'"):
        PoolingParams(task="foo")


@pytest.mark.parametrize(
    ("name", "replacement"),
    [
        ("normalize", "use_activation"),
        ("softmax", "use_activation"),
        ("activation", "use_activation"),
        ("truncate_prompt_tokens", "max_length"),
    ],
)
def test_removed_parameters_point_to_their_replacement(name, replacement):
    with pytest.raises(ValueError, match=rf"'{name}' was removed: use '{replacement}'"):
        PoolingParams(**{name: True})


def test_unknown_parameters_are_refused():
    with pytest.raises(TypeError, match="xyzzy"):
        PoolingParams(xyzzy=1)


@pytest.mark.parametrize("name", ["dimensions", "step_tag_id"])
@pytest.mark.parametrize("value", [True, 1.0, "1"])
def test_numbers_that_are_none_are_refused(name, value):
    with pytest.raises(ConfigError, match=f"{name} must be a whole number, got"):
        PoolingParams(**{name: value})


@pytest.mark.parametrize("size", [0, -1, True, False, 1.5, "2", None, 2**63])
def test_chunk_size_must_be_a_count(size):
    with pytest.raises(ValueError, match="chunk_size must be"):
        LateChunkingParams(chunk_size=size)


@pytest.mark.parametrize("size", [1, 2**63 - 1])
def test_chunk_size_reaches_from_one_to_the_largest_int64(size):
    assert LateChunkingParams(chunk_size=size).chunk_size == size


def test_a_clone_is_independent():
    params = PoolingParams(task="token_embed", returned_token_ids=[1, 2], step_tag_id=3)
    clone = params.clone()
    assert clone == params
    clone.returned_token_ids.append(9)
    clone.use_activation = False
    assert params.returned_token_ids == [1, 2]
    assert params.use_activation is None


def test_the_repr_shows_every_field():
    text = repr(PoolingParams(task="embed", dimensions=5))
    assert text.startswith("PoolingParams(")
    assert "dimensions=5" in text
    assert "task='embed'" in text


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("config", [None, PoolerConfig(), PoolerConfig(use_activation=True)])
def test_activation_is_on_unless_somebody_says_otherwise(task, config):
    params = PoolingParams(task=task)
    params.verify(FakeSpec(config))
    assert params.use_activation is True


@pytest.mark.parametrize("task", TASKS)
def test_the_row_wins_over_the_config(task):
    for value in (True, False):
        params = PoolingParams(task=task, use_activation=value)
        params.verify(spec(use_activation=not value))
        assert params.use_activation is value


@pytest.mark.parametrize("task", TASKS)
def test_the_config_fills_what_the_row_leaves_open(task):
    params = PoolingParams(task=task)
    params.verify(spec(use_activation=False))
    assert params.use_activation is False


@pytest.mark.parametrize("task", ["embed", "token_embed"])
def test_dimensions_of_the_config_are_a_default(task):
    model = FakeSpec(PoolerConfig(dimensions=16), is_matryoshka=True)
    params = PoolingParams(task=task)
    params.verify(model)
    assert params.dimensions == 16
    params = PoolingParams(task=task, dimensions=8)
    params.verify(model)
    assert params.dimensions == 8


@pytest.mark.parametrize("task", ["classify", "token_classify"])
def test_dimensions_of_the_config_do_not_reach_classifiers(task):
    params = PoolingParams(task=task)
    params.verify(FakeSpec(PoolerConfig(dimensions=16), is_matryoshka=True))
    assert params.dimensions is None


@pytest.mark.parametrize("task", ["plugin", "embed&token_classify", None])
def test_other_tasks_are_left_as_they_are(task):
    params = PoolingParams(task=task, dimensions=7, step_tag_id=1)
    params.verify(spec(use_activation=False))
    assert params == PoolingParams(task=task, dimensions=7, step_tag_id=1)


@pytest.mark.parametrize("task", ["embed", "token_embed"])
def test_dimensions_need_a_matryoshka_model(task):
    with pytest.raises(ValueError, match=r"declares no matryoshka dimensions.*all 32"):
        PoolingParams(task=task, dimensions=16).verify(FakeSpec(is_matryoshka=False))


@pytest.mark.parametrize("dimensions", [0, -1, 33, 64])
def test_dimensions_lie_within_the_embedding(dimensions):
    with pytest.raises(ValueError, match=rf"dimensions={dimensions} is outside \[1, 32\]"):
        PoolingParams(task="embed", dimensions=dimensions).verify(FakeSpec(is_matryoshka=True))


@pytest.mark.parametrize("dimensions", [1, 16, 32])
@pytest.mark.parametrize("trained", [None, ()])
def test_without_a_list_all_dimensions_within_the_embedding_do(dimensions, trained):
    params = PoolingParams(task="embed", dimensions=dimensions)
    params.verify(FakeSpec(is_matryoshka=True, matryoshka_dimensions=trained))
    assert params.dimensions == dimensions


def test_with_a_list_only_trained_dimensions_do():
    model = FakeSpec(is_matryoshka=True, matryoshka_dimensions=(8, 16))
    PoolingParams(task="embed", dimensions=16).verify(model)
    with pytest.raises(ValueError, match=r"dimensions=12 is not one the model was trained for.*8, 16"):
        PoolingParams(task="embed", dimensions=12).verify(model)


def test_checks_of_dimensions_come_in_order():
    """Not matryoshka, then out of range, then not in the list."""
    outside = PoolingParams(task="embed", dimensions=99)
    with pytest.raises(ConfigError, match="declares no matryoshka"):
        outside.verify(FakeSpec(is_matryoshka=False, matryoshka_dimensions=(8,)))
    with pytest.raises(ConfigError, match="outside"):
        outside.verify(FakeSpec(is_matryoshka=True, matryoshka_dimensions=(8,)))


@pytest.mark.parametrize("task", ["classify", "token_classify"])
def test_classifiers_refuse_dimensions(task):
    model = FakeSpec(PoolerConfig(), is_matryoshka=True)
    with pytest.raises(
        ValueError, match=f"task '{task}' does not understand dimensions .it understands use_act"
    ):
        PoolingParams(task=task, dimensions=16).verify(model)


@pytest.mark.parametrize("task", ["embed", "classify", "token_classify", "plugin", None])
def test_late_chunking_is_for_token_embeddings(task):
    params = PoolingParams(task=task, late_chunking_params=LateChunkingParams(4))
    with pytest.raises(ValueError, match="late chunking needs task 'token_embed'"):
        params.verify(spec(tok_pooling_type="ALL"))


def test_late_chunking_passes_for_token_embeddings():
    params = PoolingParams(task="token_embed", late_chunking_params=LateChunkingParams(4))
    params.verify(spec(tok_pooling_type="ALL"))
    assert params.late_chunking_params == LateChunkingParams(4)
    assert params.use_activation is True


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("given", [{"step_tag_id": 0}, {"returned_token_ids": [1]}])
@pytest.mark.parametrize("config", [{"tok_pooling_type": "ALL"}, {"seq_pooling_type": "CLS"}])
def test_step_parameters_need_step_pooling(task, given, config):
    with pytest.raises(ValueError, match=f"task '{task}' does not understand {next(iter(given))} here"):
        PoolingParams(task=task, **given).verify(spec(**config))


@pytest.mark.parametrize("task", ["embed", "classify"])
def test_step_parameters_need_a_token_task(task):
    with pytest.raises(ValueError, match="step_tag_id, returned_token_ids here"):
        PoolingParams(task=task, step_tag_id=0, returned_token_ids=[1]).verify(spec(tok_pooling_type="STEP"))
    params = PoolingParams(task=task)
    params.verify(spec(tok_pooling_type="STEP", step_tag_id=5))
    assert params.step_tag_id is None


@pytest.mark.parametrize("task", TOKEN_TASKS)
def test_step_pooling_fills_step_parameters_from_the_config(task):
    model = spec(tok_pooling_type="STEP", step_tag_id=5, returned_token_ids=(1, 2))
    params = PoolingParams(task=task)
    params.verify(model)
    assert (params.step_tag_id, params.returned_token_ids) == (5, (1, 2))
    params = PoolingParams(task=task, step_tag_id=0, returned_token_ids=[])
    params.verify(model)
    assert (params.step_tag_id, params.returned_token_ids) == (0, [])


@pytest.mark.parametrize("task", TASKS)
def test_without_a_config_step_parameters_are_left_alone(task):
    params = PoolingParams(task=task, step_tag_id=5)
    params.verify(FakeSpec(None))
    assert params.step_tag_id == 5


def test_late_chunking_and_steps_exclude_each_other():
    params = PoolingParams(task="token_embed", late_chunking_params=LateChunkingParams(4))
    params.clone().verify(spec(tok_pooling_type="STEP"))
    with pytest.raises(ValueError, match="late chunking averages rows that 'step_tag_id' would pick"):
        params.verify(spec(tok_pooling_type="STEP", step_tag_id=5))


def test_foreign_parameters_are_refused_with_task_and_valid_names():
    with pytest.raises(ConfigError, match=r"task 'classify' does not understand dimensions .*use_activation"):
        PoolingParams(task="classify", dimensions=4).verify(FakeSpec())


@pytest.mark.parametrize(("a", "b"), [(False, False), (False, True), (True, False), (True, True)])
def test_updates_join(a, b):
    update = PoolingParamsUpdate(requires_token_ids=a) | PoolingParamsUpdate(requires_token_ids=b)
    assert update == PoolingParamsUpdate(requires_token_ids=a or b)


@pytest.mark.parametrize("value", [True, False])
def test_an_update_is_written_into_the_parameters(value):
    params = PoolingParams(task="embed")
    PoolingParamsUpdate(requires_token_ids=value).apply(params)
    assert params.requires_token_ids is value
