"""Tiny models of the zoo, each loaded once."""

from functools import cache

import pytest

from poolembed import PoolingModel


@pytest.fixture(scope="session")
def models(shared):
    """The folder with a model folder for each family."""
    return shared / "zoo" / "models"


@pytest.fixture(scope="session")
def model_of(models):
    """Return the model of a family, on the CPU; it is shared, so it must not be changed."""
    return cache(lambda family: PoolingModel(str(models / family), device="cpu"))
