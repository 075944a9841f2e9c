"""Every tiny checkpoint gives what transformers gives, one text at a time and without padding."""

from contextlib import contextmanager

import pytest
import torch

from poolembed.poolers import compute_maxsim_score_batched
from tests.runner.zoo import (
    EQUAL_LENGTH,
    FAMILIES,
    PACKED,
    RAW,
    ZOO,
    Call,
    answers,
    calls,
    differences,
    load,
    runner_of,
    stored,
)

pytestmark = pytest.mark.skipif(not ZOO.is_dir(), reason=f"needs {ZOO} (POOLEMBED_SHARED)")


@contextmanager
def run_on(runner, path):
    """Run a shared runner on a path of the test's choice."""
    own = runner.backbone.path
    runner.backbone.use_path(path)
    try:
        yield
    finally:
        runner.backbone.use_path(own)


def test_the_lists_of_families_are_the_zoo():
    assert sorted(FAMILIES) == sorted(folder.name for folder in (ZOO / "models").iterdir())


@pytest.mark.parametrize("family", PACKED)
def test_what_can_be_packed_is_packed(family):
    check = load(family).check
    assert (check.path, check.reason) == ("packed", None)
    assert check.max_difference < 1e-5


@pytest.mark.parametrize("family", EQUAL_LENGTH)
def test_what_cannot_be_packed_is_found_out(family):
    runner = load(family)
    assert runner.check.path == "equal-length"
    assert runner.check.reason
    assert "cannot be packed" in runner.warnings[-1]


PLAIN = [call for call in calls() if not call.has_options]
# Every call on the path of its family but at the budget of test_each_call_gives_the_stored_result, and once
# on the other path; the rest takes minutes.
OWN = [
    (call, "packed" if call.family in PACKED else "equal-length", way)
    for call in PLAIN
    for way in (64, 8192, "alone")
]
OTHER = [(call, "equal-length", 512) for call in PLAIN if call.family in PACKED]
REST = [
    pytest.param(call, path, way, marks=pytest.mark.nightly)
    for call, path, _ in OTHER
    for way in (64, 8192, "alone")
]


@pytest.mark.parametrize("call", PLAIN, ids=str)
def test_each_call_gives_the_stored_result(call):
    assert differences(runner_of(call), call) == {}


@pytest.mark.slow
@pytest.mark.parametrize("call", [call for call in calls() if call.has_options], ids=str)
def test_each_option_gives_the_stored_result(call):
    assert differences(runner_of(call), call) == {}


@pytest.mark.slow
@pytest.mark.no_cover  # half of the time, and the tests above go through the same lines
@pytest.mark.parametrize(("call", "path", "way"), [*OWN, *OTHER, *REST], ids=str)
def test_no_budget_company_or_path_changes_a_result(call, path, way):
    runner = runner_of(call)
    budget = 512 if way == "alone" else way
    with run_on(runner, path):
        assert differences(runner, call, budget=budget, alone=way == "alone") == {}


@pytest.mark.parametrize("family", ["bert-colbert", "modernbert-colbert"])
def test_late_interaction_gives_the_stored_scores(family):
    call = Call(family, "score")
    runner = runner_of(call)
    expected = stored(call)
    sides = []
    for role in ("query", "document"):
        asked = Call(family, "token_embed", f'{{"input_type": "{role}"}}')
        rows = answers(runner, asked, [f"{row.input_id}:{role}" for row in expected])
        sides.append([torch.from_numpy(vectors) for _, vectors in rows])
    scores = [float(score) for score in compute_maxsim_score_batched(*sides)]
    assert scores == pytest.approx([float(row.output) for row in expected], abs=RAW)
