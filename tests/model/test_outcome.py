"""A number that is NaN or infinite never reaches an output, whatever the shape of the results."""

import numpy as np
import pytest

from poolembed.model.operation import Outcome
from poolembed.results import Ragged
from poolembed.runner import RowFailure

NAN, INF = np.float32("nan"), np.float32("inf")
LENGTHS = np.asarray([2, 0, 1, 3])


def outcome(column, failures=None):
    return Outcome(
        columns={"label": ["a"] * 4, "column": column},
        num_tokens=np.ones(4, np.int32),
        truncated=np.zeros(4, np.bool_),
        failures=failures or {},
    )


@pytest.mark.parametrize(
    ("column", "bad"),
    [
        (np.asarray([1, NAN, INF, -INF], np.float32), [1, 2, 3]),
        (np.asarray([[1, 2], [1, NAN], [0, 0], [INF, 1]], np.float16), [1, 3]),
        (np.asarray([1, 2, 3, 4], np.int8), []),
        (Ragged(LENGTHS, np.asarray([1, NAN, 2, 3, 4, INF], np.float32)), [0, 3]),
        (Ragged(LENGTHS, np.asarray([[1, 1]] * 2 + [[NAN, 0]] + [[1, 1]] * 3, np.float32)), [2]),
        (Ragged(LENGTHS, {"token": list("abcdef"), "weight": np.asarray([0, 0, 0, INF, 0, 0])}), [3]),
    ],
    ids=["numbers", "vectors", "integers", "lists", "lists of vectors", "lists of records"],
)
def test_a_row_with_such_a_number_is_a_failure(column, bad):
    found = outcome(column).only_finite().failures
    assert list(found) == bad
    assert {failure.code for failure in found.values()} <= {"non_finite"}


def test_a_failure_that_has_a_reason_keeps_it():
    reason = RowFailure("no_tokens", "the text has no tokens")
    found = outcome(np.asarray([1, NAN, NAN, 1]), {1: reason}).only_finite().failures
    assert found[1] is reason
    assert found[2].code == "non_finite"


def test_finite_results_stay_as_they_are():
    finite = outcome(np.ones(4, np.float32))
    assert finite.only_finite() is finite
