"""Making scores into probabilities, and measuring how true they are.

All from out-of-fold raw_scores: what a model said of samples it had not seen.
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

MIN_SAMPLES_FOR_ISOTONIC = 30
"""Good samples from which the calibration follows the data (docs/explanation/classifier.md)."""

# Chosen on some hundred samples, a threshold outside these would be chance.
_THRESHOLD_RANGE = (0.3, 0.7)

_MIN_LOG_ODDS = 500.0  # log-odds below are no different and would overflow

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class ReliabilityBin:
    """Samples of similar relevance: their weight, mean predicted, share truly good."""

    count: float
    predicted: float
    observed: float


@dataclass(frozen=True, slots=True)
class ClassifierMetrics:
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
class CalibrationCurve:
    """From raw_scores to the share of good samples; ``slope`` is > 0, shares within (0, 1).

    Platt's sigmoid of slope * raw_scores + offset. Where there were samples
    enough, its mean with a rising line through ``shares`` at the ``points`` of
    raw_scores (isotonic regression): the sigmoid's form need not be the truth's,
    and with few samples the rising line's steps are chance.
    """

    slope: float
    offset: float
    points: tuple[float, ...] = ()
    shares: tuple[float, ...] = ()

    def __call__(self, raw_scores: FloatArray) -> FloatArray:
        """Probabilities of raw_scores, elementwise."""
        smooth = expit(self.slope * raw_scores + self.offset)
        if not self.points:
            return smooth
        return np.asarray((smooth + np.interp(raw_scores, self.points, self.shares)) / 2)

    def at(self, raw_scores: float) -> float:
        """The probability of one piece of raw_scores, sooner than by arrays."""
        log_odds = self.slope * raw_scores + self.offset
        smooth = (
            1 / (1 + math.exp(-log_odds)) if log_odds > -_MIN_LOG_ODDS else math.exp(-_MIN_LOG_ODDS)
        )
        if not self.points:
            return smooth
        place = bisect_right(self.points, raw_scores)
        if 0 < place < len(self.points):
            (low, high), (least, most) = (
                self.points[place - 1 : place + 1],
                self.shares[place - 1 : place + 1],
            )
            return (smooth + least + (most - least) * (raw_scores - low) / (high - low)) / 2
        return (smooth + self.shares[min(place, len(self.points) - 1)]) / 2


def fit_platt_scaling(
    raw_scores: FloatArray, good: BoolArray, weights: FloatArray | None = None
) -> tuple[float, float]:
    """Slope and offset such that sigmoid(slope * raw_scores + offset) fits ``good``.

    Targets are smoothed as in Platt 1999 ("Probabilistic outputs for support
    vector machines", section 2.2), so that a perfect separation gives a
    finite slope. The slope is negative when the raw_scores misleads. ``weights``
    of the samples are > 0; all count alike without.
    """
    from sklearn.linear_model import LogisticRegression

    weighed = np.ones(len(good)) if weights is None else weights
    positives, negatives = weighed[good].sum(), weighed[~good].sum()
    high, low = (positives + 1) / (positives + 2), 1 / (negatives + 2)
    target = np.where(good, high, low)
    scale = float(raw_scores.std()) or 1.0
    twice = np.concatenate([raw_scores, raw_scores])[:, None] / scale
    side = np.repeat([1, 0], len(raw_scores))
    weight = np.concatenate([weighed * target, weighed * (1 - target)])
    fitted = LogisticRegression(C=1e4, max_iter=1000).fit(twice, side, sample_weight=weight)
    return float(fitted.coef_[0, 0]) / scale, float(fitted.intercept_[0])


def fit_calibration_curve(
    raw_scores: FloatArray, good: BoolArray, weights: FloatArray
) -> CalibrationCurve:
    """Platt's sigmoid; from :data:`MIN_SAMPLES_FOR_ISOTONIC` good samples on joined with isotonic steps."""
    from sklearn.isotonic import IsotonicRegression

    slope, offset = fit_platt_scaling(raw_scores, good, weights)
    if slope <= 0 or good.sum() < MIN_SAMPLES_FOR_ISOTONIC:
        return CalibrationCurve(slope, offset)
    least = 1 / (weights.sum() + 2)
    most = 1 - 1 / (weights[good].sum() + 2)
    steps = IsotonicRegression(y_min=least, y_max=most).fit(raw_scores, good, sample_weight=weights)
    points, shares = steps.X_thresholds_.tolist(), steps.y_thresholds_.tolist()
    return CalibrationCurve(slope, offset, tuple(points), tuple(shares))


def cross_fit_probabilities(
    raw_scores: FloatArray, good: BoolArray, folds: NDArray[np.intp], weights: FloatArray
) -> FloatArray:
    """Each fold's probabilities by a curve fitted on the other folds, shape (n,).

    A fold without which only one class is left is fitted on all.
    """
    probability = np.empty(len(raw_scores))
    for fold in np.unique(folds):
        held_out = folds == fold
        rest = ~held_out if 0 < good[~held_out].sum() < (~held_out).sum() else folds >= 0
        curve = fit_calibration_curve(raw_scores[rest], good[rest], weights[rest])
        probability[held_out] = curve(raw_scores[held_out])
    return probability


def best_f1_threshold(
    probability: FloatArray, good: BoolArray, weights: FloatArray | None = None
) -> float:
    """The threshold with the highest F1, within 0.3 to 0.7; ties go to the middle."""
    low, high = _THRESHOLD_RANGE
    candidates = np.round(np.arange(low, high + 0.005, 0.01), 2)
    f1 = np.array([_precision_recall_f1(probability, good, t, weights)[2] for t in candidates])
    return float(np.round(np.median(candidates[f1 >= f1.max() - 1e-9]), 2))


def compute_metrics(
    probability: FloatArray, good: BoolArray, threshold: float, weights: FloatArray | None = None
) -> ClassifierMetrics:
    """All figures of :class:`ClassifierMetrics`. Both classes must be present."""
    from sklearn.metrics import average_precision_score

    precision, recall, f1 = _precision_recall_f1(probability, good, threshold, weights)
    return ClassifierMetrics(
        precision=precision,
        recall=recall,
        f1=f1,
        auc=roc_auc(probability, good, weights),
        average_precision=float(average_precision_score(good, probability, sample_weight=weights)),
        ece=expected_calibration_error(reliability_bins(probability, good, weights)),
    )


def roc_auc(raw_scores: FloatArray, good: BoolArray, weights: FloatArray | None = None) -> float:
    """Area under the ROC curve, in [0, 1]: 0.5 is chance. Both classes must be present."""
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(good, raw_scores, sample_weight=weights))


def reliability_bins(
    probability: FloatArray, good: BoolArray, weights: FloatArray | None = None
) -> list[ReliabilityBin]:
    """Ten bins of equal width over [0, 1]; empty ones are left out."""
    weighed = np.ones(len(good)) if weights is None else weights
    place = np.minimum((probability * RELIABILITY_BINS).astype(int), RELIABILITY_BINS - 1)
    return [
        ReliabilityBin(
            count=float(weighed[place == i].sum()),
            predicted=float(np.average(probability[place == i], weights=weighed[place == i])),
            observed=float(np.average(good[place == i], weights=weighed[place == i])),
        )
        for i in np.unique(place)
    ]


def expected_calibration_error(bins: list[ReliabilityBin]) -> float:
    """Mean distance of predicted and observed shares, weighed by count."""
    total = sum(one.count for one in bins) or 1
    return sum(one.count * abs(one.predicted - one.observed) for one in bins) / total


def expit(log_odds: FloatArray) -> FloatArray:
    """Probabilities of log-odds, elementwise, without overflow."""
    return np.asarray(np.exp(-np.logaddexp(0.0, -log_odds)))


def logit(probability: float) -> float:
    """Log-odds of a probability strictly between 0 and 1."""
    return math.log(probability / (1 - probability))


def _precision_recall_f1(
    probability: FloatArray, good: BoolArray, threshold: float, weights: FloatArray | None
) -> tuple[float, float, float]:
    weighed = np.ones(len(good)) if weights is None else weights
    chosen = probability >= threshold
    hits, taken, ours = (float(weighed[one].sum()) for one in (chosen & good, chosen, good))
    precision = hits / taken if taken else 0.0
    recall = hits / ours if ours else 0.0
    f1 = 2 * hits / (taken + ours) if taken or ours else 0.0
    return precision, recall, f1


_MIN_ACCEPTED = 10
"""A precision of fewer accepted good samples than this (or all there are) would be chance."""


@dataclass(frozen=True, slots=True)
class ThresholdTarget:
    """What the threshold is to give: this precision, this recall, or the best F1 (both None)."""

    precision: float | None = None
    recall: float | None = None

    def __str__(self) -> str:
        if self.precision is not None:
            return f"a precision of {self.precision:.2f}"
        return "the best F1" if self.recall is None else f"a recall of {self.recall:.2f}"


@dataclass(frozen=True, slots=True)
class ChosenThreshold:
    """A relevance in (0, 1), and whether it gives what was wished for on held-out samples."""

    relevance: float
    granted: bool = True


def choose_threshold(
    probability: FloatArray, good: BoolArray, weights: FloatArray, threshold_target: ThresholdTarget
) -> ChosenThreshold:
    """The threshold for the threshold_target, on held-out ``probability`` of samples of these weights.

    The lowest that gives the precision, or the highest that gives the recall:
    of what is granted, it gives the most of the other. A precision that
    cannot be had gives the threshold of the highest there is.
    """
    if threshold_target.precision is None and threshold_target.recall is None:
        return ChosenThreshold(best_f1_threshold(probability, good, weights))
    order = np.argsort(-probability, kind="stable")
    hits = np.cumsum(weights[order] * good[order])
    precision = hits / np.cumsum(weights[order])
    # Samples of one relevance are taken together: only the last of them is a threshold.
    ends = np.flatnonzero(np.append(np.diff(probability[order]) < 0, True))
    if threshold_target.recall is not None:
        place = ends[hits[ends] >= threshold_target.recall * hits[-1] * (1 - 1e-9)][0]
        return ChosenThreshold(_midpoint_below(probability[order], place))
    enough = ends[np.cumsum(good[order])[ends] >= min(_MIN_ACCEPTED, good.sum())]
    granted = enough[precision[enough] >= (threshold_target.precision or 0.0)]
    place = granted[-1] if len(granted) else enough[np.argmax(precision[enough])]
    return ChosenThreshold(_midpoint_below(probability[order], place), granted=len(granted) > 0)


def _midpoint_below(falling: FloatArray, place: int) -> float:
    """A relevance half way between the last accepted and the first refused sample."""
    following = falling[falling < falling[place]]
    lower = following[0] if len(following) else 0.0
    return float(np.clip((falling[place] + lower) / 2, 1e-4, 1 - 1e-4))
