"""A runner of which some rows fail."""

from dataclasses import replace

import numpy as np

from poolembed.runner import RowFailure


class FailingRunner:
    """Does what a runner does, but the first row of every call fails."""

    def __init__(self, runner):
        self._runner = runner

    def __getattr__(self, name):
        return getattr(self._runner, name)

    def pool(self, tokens, params, on_batch=None):
        pooled = self._runner.pool(tokens, params, on_batch)
        failures = {0: RowFailure("non_finite", "the model gave numbers that are not finite")}
        if pooled.lengths is None:
            return replace(pooled, failures=failures)
        lengths = np.concatenate([[0], pooled.lengths[1:]])
        return replace(pooled, values=pooled.values[pooled.lengths[0] :], lengths=lengths, failures=failures)
