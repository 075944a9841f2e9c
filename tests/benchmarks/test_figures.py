"""Medians, spreads, ratios and differences of vectors."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.figures import median_ratio, spread
from benchmarks.vectors import difference


def test_a_spread_is_what_numpy_says_of_the_values():
    values = [3.0, 1.0, 4.0, 1.5, 9.0]
    found = spread(values)
    assert found["median"] == np.median(values)
    assert (found["min"], found["max"]) == (1.0, 9.0)
    assert found["iqr"] == pytest.approx(np.subtract(*np.percentile(values, [75, 25])))


def test_a_single_value_has_no_spread():
    assert spread([2.0]) == {"values": [2.0], "median": 2.0, "min": 2.0, "max": 2.0, "iqr": 0.0}


@given(st.lists(st.floats(0.1, 100), min_size=1, max_size=9))
def test_what_slows_a_whole_round_down_changes_no_ratio(slowness):
    assert median_ratio([3 * slow for slow in slowness], [2 * slow for slow in slowness]) == pytest.approx(
        1.5
    )


def test_rounds_that_do_not_match_are_no_ratio():
    with pytest.raises(ValueError, match="shorter"):
        median_ratio([1.0, 2.0], [1.0])


def test_a_right_angle_is_seen_in_the_cosine_and_in_the_difference():
    found = difference(
        np.array([[1, 0], [0, 1]], dtype=np.float32), np.array([[1, 0], [1, 0]], dtype=np.float32)
    )
    assert found == {"max_difference": 1.0, "min_cosine": 0.0, "mean_cosine": 0.5}


def test_scores_have_no_cosine():
    assert difference(np.array([1.0, 2.0]), np.array([1.0, 2.5])) == {"max_difference": 0.5}


def test_other_shapes_are_other_work():
    with pytest.raises(ValueError, match="shape"):
        difference(np.zeros((2, 3), np.float32), np.zeros((2, 4), np.float32))
