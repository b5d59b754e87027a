"""Combines the scores of several models of a page into one.

This is stacking (Wolpert 1992, "Stacked generalization"). The coefficients are fitted to scores of
samples that the models had not seen, so that a model counts for what it is worth on the topic's own
samples. With few samples they stay near a prior, in which the first model, the base, weighs most.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from focused.classifier.calibration import BoolArray, FloatArray, expit

# Per half distance of a part's class means: the base's coefficient, and that of the other parts
# together. Chosen on topics of four webs (docs/decisions/0051), and flat around it.
_BASE_MEAN, _OTHERS_MEAN = 1.5, 1.1
_PRIOR_PRECISION = 0.3
# Scores beyond are noise. In half distances of the class means.
_SCORE_LIMIT = 4.0
_MIN_DISTANCE = 1e-6


@dataclass(frozen=True, slots=True)
class ScoreCombination:
    """A linear combination of k parts: ``coefficients``, each >= 0, and ``offset``.

    ``shares`` tell how much each part counts: coefficients per half distance of the part's class
    means, of sum 1, or all 0 if no part separates the classes.
    """

    coefficients: tuple[float, ...]
    offset: float
    shares: tuple[float, ...]

    def apply(self, scores: FloatArray) -> FloatArray:
        """Return the combined scores, shape (n,), of n pages' parts, shape (n, k)."""
        return np.asarray(scores @ self.coefficients + self.offset)


def fit_combination(scores: FloatArray, good: BoolArray, weights: FloatArray) -> ScoreCombination:
    """Fit a combination to out-of-fold ``scores`` of both classes, shape (n, k), base first.

    Logistic regression with a Gaussian prior; both classes have the weight of the smaller one. A
    part that does not rank good samples above others has coefficient 0.
    """
    balanced = weights.copy()
    smaller = min(weights[good].sum(), weights[~good].sum())
    for of_class in (good, ~good):
        balanced[of_class] *= smaller / weights[of_class].sum()
    high, low = (np.average(scores[of_class], axis=0, weights=weights[of_class])
                 for of_class in (good, ~good))  # fmt: skip
    unit, middle = (high - low) / 2, (high + low) / 2
    separates = unit > _MIN_DISTANCE
    unit = np.where(separates, unit, 1.0)
    columns = np.clip((scores - middle) / unit, -_SCORE_LIMIT, _SCORE_LIMIT) * separates
    found = _fit_coefficients(columns, good, balanced) * separates
    coefficients = found / unit
    return ScoreCombination(
        tuple(coefficients.tolist()),
        float(-coefficients @ middle),
        tuple((found / (found.sum() or 1.0)).tolist()),
    )


def _fit_coefficients(columns: FloatArray, good: BoolArray, weights: FloatArray) -> FloatArray:
    """Return the MAP estimates of the coefficients, shape (k,), each >= 0."""
    parts = columns.shape[1]
    mean = np.array([0.0, _BASE_MEAN, *[_OTHERS_MEAN / max(parts - 1, 1)] * (parts - 1)])
    precision = np.array([0.0, *[_PRIOR_PRECISION] * parts])
    inputs = np.column_stack((np.ones(len(good)), columns))

    def loss(found: FloatArray) -> tuple[float, FloatArray]:
        log_odds = inputs @ found
        misfit = weights @ (np.logaddexp(0.0, log_odds) - good * log_odds)
        pull = precision * (found - mean)
        gradient = inputs.T @ (weights * (expit(log_odds) - good)) + pull
        return float(misfit + pull @ (found - mean) / 2), gradient

    bounds = ((None, None), *((0.0, None),) * parts)
    return np.asarray(minimize(loss, mean, jac=True, method="L-BFGS-B", bounds=bounds).x[1:])
