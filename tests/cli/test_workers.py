"""`--workers`: more batches at once, the same output."""

import json

import numpy as np
import pytest

from tests.cli.conftest import table_of, vectors


@pytest.fixture
def embed(poolembed, corpus, models):
    def call(*arguments):
        common = ("--model", models / "bert-mean", "--batch-tokens", "64", "--overwrite", "--json", "--quiet")
        return poolembed("embed", corpus, *common, *arguments)

    return call


def test_two_workers_write_what_one_writes(embed):
    alone = embed("--workers", "1")
    assert json.loads(alone.stdout)["workers"] == 1
    expected = vectors(table_of(alone))
    two = embed("--workers", "2")
    assert json.loads(two.stdout)["workers"] == 2
    np.testing.assert_allclose(vectors(table_of(two)), expected, rtol=0, atol=1e-6)


def test_the_number_can_be_left_to_a_trial(embed):
    result = embed("--workers", "auto")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["workers"] >= 1


@pytest.mark.parametrize(
    ("value", "message"),
    [("many", "'many' is neither a number nor auto"), ("0", "must be at least 1, got 0")],
)
def test_what_is_no_number_is_refused(embed, value, message):
    result = embed("--workers", value)
    assert result.exit_code == 2
    assert message in result.stderr
