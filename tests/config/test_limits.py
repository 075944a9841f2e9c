"""Budgets and deadlines: what is understood, what they allow, and what is refused."""

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolembed.config import Budget, InputConfig, JobConfig, LimitConfig, parse_deadline
from poolembed.errors import ConfigError

NOON = datetime(2026, 3, 28, 12, 0, 0)


@given(st.integers(0, 1000), st.integers(0, 1000), st.integers(0, 10**6))
def test_a_number_allows_so_many_rows_of_any_input(count, spoiled, rows):
    assert Budget.parse(str(count)).allows(spoiled, rows) == (spoiled <= count)


@given(st.integers(0, 1000), st.integers(0, 10**6), st.integers(0, 10**6))
def test_a_percentage_is_exact(tenths, spoiled, rows):
    assert Budget.parse(f"{tenths / 10}%").allows(spoiled, rows) == (spoiled * 1000 <= tenths * rows)


@pytest.mark.parametrize("text", ["", "-1", "1.5", "5 %", "%", "101%", "100.1%", "many", "1e3", "5%%"])
def test_what_is_no_budget_is_refused(text):
    with pytest.raises(ConfigError):
        Budget.parse(text)


@pytest.mark.parametrize(
    ("text", "seconds"), [("45s", 45), ("90m", 5400), ("2h30m", 9000), ("1h1m1s", 3661), ("48h", 172_800)]
)
def test_a_duration_counts_from_now(text, seconds):
    assert parse_deadline(text, NOON) == NOON + timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("12:01", datetime(2026, 3, 28, 12, 1)),
        ("12:00", datetime(2026, 3, 29, 12, 0)),
        ("06:00", datetime(2026, 3, 29, 6, 0)),
        ("23:59", datetime(2026, 3, 28, 23, 59)),
    ],
)
def test_a_time_is_the_next_one_on_the_clock(text, moment):
    assert parse_deadline(text, NOON) == moment


@pytest.mark.parametrize("text", ["", "0m", "24:00", "6:00", "06:60", "soon", "-5m", "5", f"{10**12}h"])
def test_what_is_no_deadline_is_refused(text):
    with pytest.raises(ConfigError):
        parse_deadline(text, NOON)


def test_every_problem_is_told_with_its_option():
    problems = LimitConfig(max_rejects="x", max_truncated="200%", deadline="25:00").check()
    assert [problem.partition(":")[0] for problem in problems] == [
        "--max-rejects",
        "--max-truncated",
        "--deadline",
    ]


def test_a_budget_of_rejects_needs_that_rows_are_rejected():
    limits = LimitConfig(max_rejects="3")
    with pytest.raises(ConfigError, match="--max-rejects is for --on-error skip"):
        JobConfig(command="embed", input=InputConfig(paths=("a",)), limits=limits).check()
    JobConfig(command="embed", input=InputConfig(paths=("a",), on_error="skip"), limits=limits).check()
