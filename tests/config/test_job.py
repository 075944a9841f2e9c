"""Values that a model's record cannot have, each named with what it can be."""

import pytest

from poolembed.config import DTYPES, MODEL_IMPLS, ModelConfig


@pytest.mark.parametrize(
    ("name", "allowed", "value"), [("dtype", DTYPES, "float8"), ("model_impl", MODEL_IMPLS, "vllm")]
)
def test_a_choice_is_one_of_its_names(name, allowed, value):
    assert [ModelConfig(**{name: each}).check() for each in allowed] == [[]] * len(allowed)
    option = f"--{name.replace('_', '-')}"
    assert ModelConfig(**{name: value}).check() == [
        f"{option} must be one of {', '.join(allowed)}, got {value!r}"
    ]
