"""Real pretrained models, which are too large to be kept here or in the shared folder."""

import os
from functools import cache
from pathlib import Path

import pytest

from poolembed.config import ModelConfig, PoolerConfig
from poolembed.runner import load_runner

TEXTS = (
    "The quick brown fox jumps over the lazy dog near the river bank.",
    "How do I bake bread at home?",
    "Knead the dough for ten minutes, let it rise overnight, and bake the bread in a very hot oven.",
    "",
    "a",
    "  leading and trailing blanks \n",
    "UPPER CASE and naïve Zürich",
    "机器学习可以帮助我们理解语言。",
    "🙂🚀 great job! 👍🏽",
    "[CLS] [SEP] [MASK] literal special tokens",
    "x" * 300,
    "one two three four five six seven eight nine ten " * 12,
)


@pytest.fixture(scope="session")
def real():
    """Return the folder of a real model by name."""

    def folder(name):
        root = os.environ.get("POOLEMBED_MODELS")
        if not root or not (Path(root) / name).is_dir():
            pytest.skip(f"no {name} in POOLEMBED_MODELS ({root or 'not set'})")
        return Path(root) / name

    return folder


@pytest.fixture(scope="session")
def runner_of(real):
    """Return the runner of a real model with a budget of 512 tokens; it is shared."""

    @cache
    def load(name, **options):
        return load_runner(ModelConfig(model=str(real(name)), device="cpu"), PoolerConfig(**options), 512)

    return load
