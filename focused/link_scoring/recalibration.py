"""Calibrates link scores online, without changing their order.

The apprentice learns from untempered relevances, and follows the crawl with a delay, so its scores
are too sure. :class:`ScoreRecalibration` fits slope and intercept of their log-odds (Platt scaling)
to the tempered relevances of the pages that the links led to. Each pair is recorded before the
apprentice learns from the page, as a forecast that the page did not influence.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from focused.kernels.link_features import recalibrate

# In nats of the example that moves most. Convergence is quadratic.
_MAX_STEP = 1.0
_TOLERANCE = 1e-3
_MAX_ITERATIONS = 100

FloatArray = NDArray[np.float64]


def one_blas_thread() -> AbstractContextManager[object]:
    """Let products of matrices use one thread inside the ``with`` block.

    OpenBLAS's others would spin 25 ms after each product, on the cores of the parser processes.
    """
    limit: AbstractContextManager[object] = _thread_pools().limit(limits=1, user_api="blas")
    return limit


@cache
def _thread_pools() -> Any:
    from threadpoolctl import ThreadpoolController  # 4 ms, for which no first page should wait

    return ThreadpoolController()


def fit_newton(
    design: FloatArray,
    offset: FloatArray,
    target: FloatArray,
    precisions: FloatArray,
    start: FloatArray,
) -> FloatArray:
    """Return the MAP estimate of the k coefficients, shape (k,), by Newton's method from ``start``.

    The log-odds are offset + coefficients · design; ``design`` has shape (k, n), ``offset`` and
    ``target`` (in [0, 1]) have shape (n,). ``precisions``, shape (k,), are those of the Gaussian
    prior around zero.
    """
    coefficients = start
    log_odds = offset + coefficients @ design
    for _ in range(_MAX_ITERATIONS):
        # tanh is the fastest form of the logistic function.
        probability = 0.5 + 0.5 * np.tanh(0.5 * log_odds)
        gradient = design @ (probability - target) + precisions * coefficients
        hessian = (design * (probability * (1.0 - probability))) @ design.T
        hessian.flat[:: len(hessian) + 1] += precisions
        step = np.linalg.solve(hessian, gradient)
        change = step @ design
        largest_change = float(np.abs(change).max())
        # Damped steps: full Newton steps may overshoot far from the optimum.
        damping = min(1.0, _MAX_STEP / max(largest_change, _TOLERANCE))
        coefficients = coefficients - damping * step
        log_odds -= damping * change
        if largest_change < _TOLERANCE:
            break
    return coefficients


MIN_SLOPE, MAX_SLOPE = 0.3, 2.0
MAX_FORECASTS = 2_000
"""Number of forecasts kept, 16 bytes each; older ones are dropped."""

_FIT_INTERVAL = 25
# Of slope (around 1) and intercept (around 0).
_PRECISIONS = np.array([20.0, 20.0])
# Scores are single-precision floats, whose log-odds are infinite near 1.
_LEAST_SCORE = 1.0 / (1.0 + math.exp(12.0))


class ScoreRecalibration:
    """Slope and intercept of calibrated log-odds; 1 and 0 before the first fit."""

    def __init__(self) -> None:
        self.slope = 1.0
        self.intercept = 0.0
        # Log-odds that were predicted, and tempered relevance of the target.
        self._log_odds, self._relevances = array("d"), array("d")
        self._n_seen = 0

    def learn(self, log_odds: float, relevance: float) -> None:
        """Add a forecast and the tempered relevance in [0, 1] of the link's target."""
        self._log_odds.append(log_odds)
        self._relevances.append(relevance)
        if len(self._log_odds) > MAX_FORECASTS:
            del self._log_odds[0], self._relevances[0]
        self._n_seen += 1
        if self._n_seen % _FIT_INTERVAL == 0:
            with one_blas_thread():
                self._fit()

    def apply(self, scores: Sequence[float]) -> list[float]:
        """Return calibrated scores in [0, 1], rounded as they are stored.

        Higher scores stay higher, but for rounding.
        """
        if self._n_seen < _FIT_INTERVAL:
            return list(scores)
        calibrated = recalibrate(list(scores), self.slope, self.intercept, _LEAST_SCORE)
        return array("f", calibrated).tolist()

    def state(self) -> Any:
        """Return the learned state as plain data."""
        return [self._n_seen, self.slope, self.intercept, self._columns().astype("<f8").tobytes()]

    def restore(self, state: Any) -> None:
        """Restore what :meth:`state` returned."""
        self._n_seen, self.slope, self.intercept, kept = state
        columns = np.frombuffer(kept, "<f8").reshape(2, -1).tolist()
        self._log_odds, self._relevances = (array("d", each) for each in columns)

    def _columns(self) -> FloatArray:
        """Return the log-odds and the relevances, shape (2, n)."""
        return np.array((self._log_odds, self._relevances))

    def _fit(self) -> None:
        log_odds, relevance = self._columns()
        design = np.vstack([log_odds, np.ones(len(log_odds))])
        start = np.array([self.slope - 1.0, self.intercept])
        moved = fit_newton(design, log_odds, relevance, _PRECISIONS, start)
        self.slope = float(np.clip(1.0 + moved[0], MIN_SLOPE, MAX_SLOPE))
        if self.slope != 1.0 + moved[0]:  # out of bounds: the intercept that suits the bound
            offset = self.slope * log_odds
            moved = fit_newton(design[1:], offset, relevance, _PRECISIONS[1:], moved[1:])
        self.intercept = float(moved[-1])
