"""Medians, spreads and ratios of repeated measurements."""

import statistics
from collections.abc import Sequence
from typing import Any


def spread(values: Sequence[float]) -> dict[str, Any]:
    """Return the values with their median, extremes and interquartile range.

    Args:
        values: one measurement a round, at least one.
    """
    # Of a single value Python makes no quartiles.
    low, _, high = statistics.quantiles([*values, values[-1]][: max(2, len(values))], n=4, method="inclusive")
    return {
        "values": [float(f"{value:.5g}") for value in values],
        "median": float(f"{statistics.median(values):.5g}"),
        "min": float(f"{min(values):.5g}"),
        "max": float(f"{max(values):.5g}"),
        "iqr": float(f"{high - low:.5g}"),
    }


def ratios(over: Sequence[float], under: Sequence[float]) -> list[float]:
    """Return `over / under` of each round: what slows a round down slows both."""
    return [a / b for a, b in zip(over, under, strict=True)]


def median_ratio(over: Sequence[float], under: Sequence[float]) -> float:
    """Return the median over rounds of `over / under`."""
    return statistics.median(ratios(over, under))
