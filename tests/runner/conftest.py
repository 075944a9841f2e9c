"""Tiny models of the zoo, each loaded once."""

from functools import cache

import pytest
from transformers import AutoTokenizer

from poolembed.config import ModelConfig
from poolembed.runner import load_runner


@pytest.fixture(scope="session")
def runner_of(models):
    """Return the runner of a family, on the CPU; shared, so not to be changed; with a given budget."""
    return cache(lambda family: load_runner(ModelConfig(model=str(models / family), device="cpu"), None, 512))


@pytest.fixture(scope="session")
def tokenizer_of(models):
    """Return a new tokenizer of a family, free to be changed."""
    return lambda family: AutoTokenizer.from_pretrained(models / family)


@pytest.fixture
def own_runner(models):
    """A runner of a test's own, to be changed at will."""
    return lambda family="bert-mean", **options: load_runner(
        ModelConfig(model=str(models / family), device="cpu", **options), None, 128
    )
