"""Making scores into probabilities, and measuring how true they are.

All from out-of-fold evidence: what a model said of samples it had not seen.
scikit-learn is slow to import, and fits and measures: it is imported by what does, so
that a crawl with a model begins sooner.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

RELIABILITY_BINS = 10

ENOUGH_FOR_STEPS = 30
"""Good samples from which the calibration follows the data (docs/explanation/classifier.md)."""

# Chosen on some hundred samples, a threshold outside these would be chance.
_THRESHOLD_RANGE = (0.3, 0.7)

_LOWEST = 500.0  # log-odds below are no different and would overflow

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Bin:
    """Samples of similar relevance: their weight, mean predicted, share truly good."""

    count: float
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


@dataclass(frozen=True, slots=True)
class Curve:
    """From evidence to the share of good samples; ``slope`` is > 0, shares within (0, 1).

    Platt's sigmoid of slope * evidence + offset. Where there were samples
    enough, its mean with a rising line through ``shares`` at the ``points`` of
    evidence (isotonic regression): the sigmoid's form need not be the truth's,
    and with few samples the rising line's steps are chance.
    """

    slope: float
    offset: float
    points: tuple[float, ...] = ()
    shares: tuple[float, ...] = ()

    def __call__(self, evidence: Floats) -> Floats:
        """Probabilities of evidence, elementwise."""
        smooth = expit(self.slope * evidence + self.offset)
        if not self.points:
            return smooth
        return np.asarray((smooth + np.interp(evidence, self.points, self.shares)) / 2)

    def at(self, evidence: float) -> float:
        """The probability of one piece of evidence, sooner than by arrays."""
        log_odds = self.slope * evidence + self.offset
        smooth = 1 / (1 + math.exp(-log_odds)) if log_odds > -_LOWEST else math.exp(-_LOWEST)
        if not self.points:
            return smooth
        place = bisect_right(self.points, evidence)
        if 0 < place < len(self.points):
            (low, high), (least, most) = (
                self.points[place - 1 : place + 1],
                self.shares[place - 1 : place + 1],
            )
            return (smooth + least + (most - least) * (evidence - low) / (high - low)) / 2
        return (smooth + self.shares[min(place, len(self.points) - 1)]) / 2


def platt(evidence: Floats, good: Bools, weights: Floats | None = None) -> tuple[float, float]:
    """Slope and offset such that sigmoid(slope * evidence + offset) fits ``good``.

    Targets are smoothed as in Platt 1999 ("Probabilistic outputs for support
    vector machines", section 2.2), so that a perfect separation gives a
    finite slope. The slope is negative when the evidence misleads. ``weights``
    of the samples are > 0; all count alike without.
    """
    from sklearn.linear_model import LogisticRegression

    weighed = np.ones(len(good)) if weights is None else weights
    positives, negatives = weighed[good].sum(), weighed[~good].sum()
    high, low = (positives + 1) / (positives + 2), 1 / (negatives + 2)
    target = np.where(good, high, low)
    scale = float(evidence.std()) or 1.0
    twice = np.concatenate([evidence, evidence])[:, None] / scale
    side = np.repeat([1, 0], len(evidence))
    weight = np.concatenate([weighed * target, weighed * (1 - target)])
    fitted = LogisticRegression(C=1e4, max_iter=1000).fit(twice, side, sample_weight=weight)
    return float(fitted.coef_[0, 0]) / scale, float(fitted.intercept_[0])


def fit_curve(evidence: Floats, good: Bools, weights: Floats) -> Curve:
    """Platt's sigmoid; from :data:`ENOUGH_FOR_STEPS` good samples on joined with isotonic steps."""
    from sklearn.isotonic import IsotonicRegression

    slope, offset = platt(evidence, good, weights)
    if slope <= 0 or good.sum() < ENOUGH_FOR_STEPS:
        return Curve(slope, offset)
    least = 1 / (weights.sum() + 2)
    most = 1 - 1 / (weights[good].sum() + 2)
    steps = IsotonicRegression(y_min=least, y_max=most).fit(evidence, good, sample_weight=weights)
    points, shares = steps.X_thresholds_.tolist(), steps.y_thresholds_.tolist()
    return Curve(slope, offset, tuple(points), tuple(shares))


def cross_fitted(evidence: Floats, good: Bools, folds: NDArray[np.intp], weights: Floats) -> Floats:
    """Each fold's probabilities by a curve fitted on the other folds, shape (n,).

    A fold without which only one class is left is fitted on all.
    """
    probability = np.empty(len(evidence))
    for fold in np.unique(folds):
        held_out = folds == fold
        rest = ~held_out if 0 < good[~held_out].sum() < (~held_out).sum() else folds >= 0
        curve = fit_curve(evidence[rest], good[rest], weights[rest])
        probability[held_out] = curve(evidence[held_out])
    return probability


def best_threshold(probability: Floats, good: Bools, weights: Floats | None = None) -> float:
    """The threshold with the highest F1, within 0.3 to 0.7; ties go to the middle."""
    low, high = _THRESHOLD_RANGE
    candidates = np.round(np.arange(low, high + 0.005, 0.01), 2)
    f1 = np.array([_precision_recall_f1(probability, good, t, weights)[2] for t in candidates])
    return float(np.round(np.median(candidates[f1 >= f1.max() - 1e-9]), 2))


def measure(
    probability: Floats, good: Bools, threshold: float, weights: Floats | None = None
) -> Quality:
    """All figures of :class:`Quality`. Both classes must be present."""
    from sklearn.metrics import average_precision_score

    precision, recall, f1 = _precision_recall_f1(probability, good, threshold, weights)
    return Quality(
        precision=precision,
        recall=recall,
        f1=f1,
        auc=ranking_quality(probability, good, weights),
        average_precision=float(average_precision_score(good, probability, sample_weight=weights)),
        ece=calibration_error(reliability(probability, good, weights)),
    )


def ranking_quality(evidence: Floats, good: Bools, weights: Floats | None = None) -> float:
    """Area under the ROC curve, in [0, 1]: 0.5 is chance. Both classes must be present."""
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(good, evidence, sample_weight=weights))


def reliability(probability: Floats, good: Bools, weights: Floats | None = None) -> list[Bin]:
    """Ten bins of equal width over [0, 1]; empty ones are left out."""
    weighed = np.ones(len(good)) if weights is None else weights
    place = np.minimum((probability * RELIABILITY_BINS).astype(int), RELIABILITY_BINS - 1)
    return [
        Bin(
            count=float(weighed[place == i].sum()),
            predicted=float(np.average(probability[place == i], weights=weighed[place == i])),
            observed=float(np.average(good[place == i], weights=weighed[place == i])),
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
    return math.log(probability / (1 - probability))


def _precision_recall_f1(
    probability: Floats, good: Bools, threshold: float, weights: Floats | None
) -> tuple[float, float, float]:
    weighed = np.ones(len(good)) if weights is None else weights
    chosen = probability >= threshold
    hits, taken, ours = (float(weighed[one].sum()) for one in (chosen & good, chosen, good))
    precision = hits / taken if taken else 0.0
    recall = hits / ours if ours else 0.0
    f1 = 2 * hits / (taken + ours) if taken or ours else 0.0
    return precision, recall, f1
