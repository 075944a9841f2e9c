"""Tiny models of the zoo, each loaded once, and what the reference gives for them."""

import json
from functools import cache

import pyarrow.parquet as pq
import pytest

from poolembed import PoolingModel
from poolembed.config import ModelConfig
from poolembed.runner import load_runner


@pytest.fixture(scope="session")
def zoo(shared):
    """The folder with models, inputs and expected outputs."""
    return shared / "zoo"


@pytest.fixture(scope="session")
def runner_of(zoo):
    """Return the runner of a family; shared, so not to be changed; with a given budget, not a tried one."""
    return cache(
        lambda family: load_runner(
            ModelConfig(model=str(zoo / "models" / family), device="cpu"), batch_tokens=512
        )
    )


@pytest.fixture(scope="session")
def inputs_of(zoo):
    """Return the shared inputs of a kind (`pairs`), one dict each."""

    @cache
    def inputs(kind):
        lines = (zoo / "inputs" / f"{kind}.jsonl").read_text("utf-8").splitlines()
        return [json.loads(line) for line in lines]

    return inputs


@pytest.fixture(scope="session")
def expected(zoo):
    """Return what transformers gives for each input id."""

    def outputs(family, task, params):
        rows = pq.read_table(
            zoo / "expected" / f"{family}.parquet",
            filters=[("task", "=", task), ("reference", "=", "transformers"), ("params", "=", params)],
        ).to_pylist()
        return {row["input_id"]: row["output"] for row in rows if row["output"] is not None}

    return outputs


@pytest.fixture(scope="session")
def models(shared):
    """The folder with a model folder for each family."""
    return shared / "zoo" / "models"


@pytest.fixture(scope="session")
def model_of(models):
    """Return the model of a family, on the CPU; it is shared, so it must not be changed."""
    return cache(lambda family: PoolingModel(str(models / family), device="cpu"))
