"""Logistic regression with an offset and a Gaussian prior, by Newton's method.

Bishop 2006, "Pattern Recognition and Machine Learning", 4.3.3 and 4.5.1.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# In nats of the example that moves most. Convergence is quadratic.
_MAX_STEP = 1.0
_TOLERANCE = 1e-3
_MAX_ITERATIONS = 100

FloatArray = NDArray[np.float64]


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
