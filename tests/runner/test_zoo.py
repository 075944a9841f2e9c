"""Every tiny checkpoint gives what transformers gives, one text at a time and without padding."""

from contextlib import contextmanager

import pytest

from tests.runner.zoo import EQUAL_LENGTH, FAMILIES, PACKED, ZOO, calls, differences, load, runner_of

pytestmark = pytest.mark.skipif(not ZOO.is_dir(), reason=f"needs {ZOO} (POOLEMBED_SHARED)")

BUDGETS = (64, 512, 8192)


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


@pytest.mark.parametrize("call", PLAIN, ids=str)
def test_each_call_gives_the_stored_result(call):
    assert differences(runner_of(call), call) == {}


@pytest.mark.slow
@pytest.mark.parametrize("call", [call for call in calls() if call.has_options], ids=str)
def test_each_option_gives_the_stored_result(call):
    assert differences(runner_of(call), call) == {}


@pytest.mark.slow
@pytest.mark.parametrize("way", [*BUDGETS, "alone"])
@pytest.mark.parametrize("path", ["packed", "equal-length"])
@pytest.mark.parametrize("call", PLAIN, ids=str)
def test_no_budget_company_or_path_changes_a_result(call, path, way):
    runner = runner_of(call)
    if path == "packed" and runner.check.path != "packed":
        pytest.skip("cannot be packed")
    budget = 512 if way == "alone" else way
    with run_on(runner, path):
        assert differences(runner, call, budget=budget, alone=way == "alone") == {}
