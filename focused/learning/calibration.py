"""Making scores into probabilities, and measuring how true they are.

All from out-of-fold evidence: what a model said of samples it had not seen.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, roc_auc_score

RELIABILITY_BINS = 10
# Chosen on some hundred samples, a threshold outside these would be chance.
_THRESHOLD_RANGE = (0.3, 0.7)

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Bin:
    """Samples of similar relevance: how many, mean predicted, share truly good."""

    count: int
    predicted: float
    observed: float


@dataclass(frozen=True, slots=True)
class Quality:
    """How well probabilities fit the truth; all in [0, 1], higher is better but for ``ece``.

    ``precision``, ``recall`` and ``f1`` at the threshold; ``auc`` under ROC;
    ``average_precision`` under precision and recall; ``ece`` the expected
    calibration error over ten bins of equal width.
    """

    precision: float
    recall: float
    f1: float
    auc: float
    average_precision: float
    ece: float


def platt(evidence: Floats, good: Bools) -> tuple[float, float]:
    """Slope and offset such that sigmoid(slope * evidence + offset) fits ``good``.

    Targets are smoothed as in Platt 1999 ("Probabilistic outputs for support
    vector machines", section 2.2), so that a perfect separation gives a
    finite slope. The slope is negative when the evidence misleads.
    """
    positives, negatives = int(good.sum()), int((~good).sum())
    high, low = (positives + 1) / (positives + 2), 1 / (negatives + 2)
    target = np.where(good, high, low)
    scale = float(evidence.std()) or 1.0
    twice = np.concatenate([evidence, evidence])[:, None] / scale
    side = np.repeat([1, 0], len(evidence))
    weight = np.concatenate([target, 1 - target])
    fitted = LogisticRegression(C=1e4, max_iter=1000).fit(twice, side, sample_weight=weight)
    return float(fitted.coef_[0, 0]) / scale, float(fitted.intercept_[0])


def cross_fitted(evidence: Floats, good: Bools, folds: NDArray[np.intp]) -> Floats:
    """Each fold's probabilities by a sigmoid fitted on the other folds, shape (n,).

    A fold without which only one class is left is fitted on all.
    """
    probability = np.empty(len(evidence))
    for fold in np.unique(folds):
        held_out = folds == fold
        rest = ~held_out if 0 < good[~held_out].sum() < (~held_out).sum() else folds >= 0
        slope, offset = platt(evidence[rest], good[rest])
        probability[held_out] = expit(slope * evidence[held_out] + offset)
    return probability


def best_threshold(probability: Floats, good: Bools) -> float:
    """The threshold with the highest F1, within 0.3 to 0.7; ties go to the middle."""
    low, high = _THRESHOLD_RANGE
    candidates = np.round(np.arange(low, high + 0.005, 0.01), 2)
    f1 = np.array([_precision_recall_f1(probability, good, t)[2] for t in candidates])
    return float(np.round(np.median(candidates[f1 >= f1.max() - 1e-9]), 2))


def measure(probability: Floats, good: Bools, threshold: float) -> Quality:
    """All figures of :class:`Quality`. Both classes must be present."""
    precision, recall, f1 = _precision_recall_f1(probability, good, threshold)
    return Quality(
        precision=precision,
        recall=recall,
        f1=f1,
        auc=ranking_quality(probability, good),
        average_precision=float(average_precision_score(good, probability)),
        ece=calibration_error(reliability(probability, good)),
    )


def ranking_quality(evidence: Floats, good: Bools) -> float:
    """Area under the ROC curve, in [0, 1]: 0.5 is chance. Both classes must be present."""
    return float(roc_auc_score(good, evidence))


def reliability(probability: Floats, good: Bools) -> list[Bin]:
    """Ten bins of equal width over [0, 1]; empty ones are left out."""
    place = np.minimum((probability * RELIABILITY_BINS).astype(int), RELIABILITY_BINS - 1)
    return [
        Bin(
            count=int((place == i).sum()),
            predicted=float(probability[place == i].mean()),
            observed=float(good[place == i].mean()),
        )
        for i in np.unique(place)
    ]


def calibration_error(bins: list[Bin]) -> float:
    """Mean distance of predicted and observed shares, weighed by count."""
    total = sum(one.count for one in bins) or 1
    return sum(one.count * abs(one.predicted - one.observed) for one in bins) / total


def expit(log_odds: Floats) -> Floats:
    """Probabilities of log-odds, elementwise, without overflow."""
    return np.asarray(np.exp(-np.logaddexp(0.0, -log_odds)))


def logit(probability: float) -> float:
    """Log-odds of a probability strictly between 0 and 1."""
    return float(np.log(probability / (1 - probability)))


def _precision_recall_f1(
    probability: Floats, good: Bools, threshold: float
) -> tuple[float, float, float]:
    chosen = probability >= threshold
    hits = float((chosen & good).sum())
    precision = hits / chosen.sum() if chosen.any() else 0.0
    recall = hits / good.sum() if good.any() else 0.0
    f1 = 2 * hits / (chosen.sum() + good.sum()) if chosen.any() or good.any() else 0.0
    return float(precision), float(recall), float(f1)
