"""Fit calibration curves, choose thresholds, and measure classifiers.

All functions expect out-of-fold scores. scikit-learn is imported inside functions: it is slow to
import.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from focused.classifier.calibration import BoolArray, CalibrationCurve, FloatArray, ThresholdTarget

RELIABILITY_BINS = 10


MIN_SAMPLES_FOR_ISOTONIC = 30
"""Minimum number of good samples for isotonic regression (docs/explanation/classifier.md)."""


# With a few hundred samples a threshold outside this range would be noise.
_THRESHOLD_RANGE = (0.3, 0.7)


@dataclass(frozen=True, slots=True)
class ReliabilityBin:
    """Samples of similar relevance: total weight, mean prediction, share of good samples."""

    count: float
    predicted: float
    observed: float


@dataclass(frozen=True, slots=True)
class ClassifierMetrics:
    """Metrics in [0, 1]; higher is better except for ``ece``.

    ``precision``, ``recall`` and ``f1`` at the threshold; ``auc`` is the area under the ROC
    curve; ``ece`` the expected calibration error over ten bins of equal width.
    """

    precision: float
    recall: float
    f1: float
    auc: float
    average_precision: float
    ece: float


def balance_classes(weights: FloatArray, good: BoolArray) -> FloatArray:
    """Return weights with mean one and the same sum per class."""
    balanced = weights.copy()
    for of_class in (good, ~good):
        balanced[of_class] *= len(good) / (2 * weights[of_class].sum())
    return balanced


def fit_platt_scaling(
    raw_scores: FloatArray, good: BoolArray, weights: FloatArray | None = None
) -> tuple[float, float]:
    """Return slope and offset such that sigmoid(slope * score + offset) fits ``good``.

    Targets are smoothed as in Platt 1999 ("Probabilistic outputs for support vector machines",
    section 2.2), so that perfect separation gives a finite slope. A negative slope means that
    the scores mislead. ``weights`` are > 0, by default all equal.
    """
    from sklearn.linear_model import LogisticRegression

    sample_weights = np.ones(len(good)) if weights is None else weights
    positives, negatives = sample_weights[good].sum(), sample_weights[~good].sum()
    high, low = (positives + 1) / (positives + 2), 1 / (negatives + 2)
    target = np.where(good, high, low)
    scale = float(raw_scores.std()) or 1.0
    repeated = np.concatenate([raw_scores, raw_scores])[:, None] / scale
    target_class = np.repeat([1, 0], len(raw_scores))
    weight = np.concatenate([sample_weights * target, sample_weights * (1 - target)])
    fitted = LogisticRegression(C=1e4, max_iter=1000).fit(
        repeated, target_class, sample_weight=weight
    )
    return float(fitted.coef_[0, 0]) / scale, float(fitted.intercept_[0])


def fit_calibration_curve(
    raw_scores: FloatArray, good: BoolArray, weights: FloatArray
) -> CalibrationCurve:
    """Fit Platt scaling, combined with isotonic regression if there are enough good samples."""
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
    """Return each fold's probabilities by a curve fitted on the other folds, shape (n,).

    A fold whose complement has a single class uses a curve fitted on all folds.
    """
    probability = np.empty(len(raw_scores))
    for fold in np.unique(folds):
        held_out = folds == fold
        rest = ~held_out if 0 < good[~held_out].sum() < (~held_out).sum() else folds >= 0
        curve = fit_calibration_curve(raw_scores[rest], good[rest], weights[rest])
        probability[held_out] = [curve.at(score) for score in raw_scores[held_out].tolist()]
    return probability


def best_f1_threshold(
    probability: FloatArray, good: BoolArray, weights: FloatArray | None = None
) -> float:
    """Return the threshold with the highest F1, within 0.3 to 0.7; ties go to the median."""
    low, high = _THRESHOLD_RANGE
    candidates = np.round(np.arange(low, high + 0.005, 0.01), 2)
    f1 = np.array([_precision_recall_f1(probability, good, t, weights)[2] for t in candidates])
    return float(np.round(np.median(candidates[f1 >= f1.max() - 1e-9]), 2))


def compute_metrics(
    probability: FloatArray, good: BoolArray, threshold: float, weights: FloatArray | None = None
) -> ClassifierMetrics:
    """Compute :class:`ClassifierMetrics`. Both classes must be present."""
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
    """Return the area under the ROC curve. Both classes must be present."""
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(good, raw_scores, sample_weight=weights))


def reliability_bins(
    probability: FloatArray, good: BoolArray, weights: FloatArray | None = None
) -> list[ReliabilityBin]:
    """Return the non-empty of ten bins of equal width over [0, 1]."""
    sample_weights = np.ones(len(good)) if weights is None else weights
    index = np.minimum((probability * RELIABILITY_BINS).astype(int), RELIABILITY_BINS - 1)
    return [
        ReliabilityBin(
            count=float(sample_weights[index == i].sum()),
            predicted=float(
                np.average(probability[index == i], weights=sample_weights[index == i])
            ),
            observed=float(np.average(good[index == i], weights=sample_weights[index == i])),
        )
        for i in np.unique(index)
    ]


def expected_calibration_error(bins: list[ReliabilityBin]) -> float:
    """Return the weighted mean distance of predicted and observed shares."""
    total = sum(one.count for one in bins) or 1
    return sum(one.count * abs(one.predicted - one.observed) for one in bins) / total


def _precision_recall_f1(
    probability: FloatArray, good: BoolArray, threshold: float, weights: FloatArray | None
) -> tuple[float, float, float]:
    sample_weights = np.ones(len(good)) if weights is None else weights
    chosen = probability >= threshold
    hits, taken, ours = (float(sample_weights[one].sum()) for one in (chosen & good, chosen, good))
    precision = hits / taken if taken else 0.0
    recall = hits / ours if ours else 0.0
    f1 = 2 * hits / (taken + ours) if taken or ours else 0.0
    return precision, recall, f1


_MIN_ACCEPTED = 10
"""Minimum number of accepted good samples for which a precision is meaningful."""


@dataclass(frozen=True, slots=True)
class ChosenThreshold:
    """A relevance in (0, 1); ``granted`` if it reaches the target on held-out samples."""

    relevance: float
    granted: bool = True


def choose_threshold(
    probability: FloatArray, good: BoolArray, weights: FloatArray, target: ThresholdTarget
) -> ChosenThreshold:
    """Choose the threshold for the target from held-out probabilities.

    Returns the lowest threshold that reaches the precision, or the highest that reaches the
    recall. If no threshold reaches the precision, returns the one with the highest precision.
    """
    if target.precision is None and target.recall is None:
        return ChosenThreshold(best_f1_threshold(probability, good, weights))
    order = np.argsort(-probability, kind="stable")
    hits = np.cumsum(weights[order] * good[order])
    precision = hits / np.cumsum(weights[order])
    # Only the last of several equal probabilities can be a threshold.
    ends = np.flatnonzero(np.append(np.diff(probability[order]) < 0, True))
    if target.recall is not None:
        index = ends[hits[ends] >= target.recall * hits[-1] * (1 - 1e-9)][0]
        return ChosenThreshold(_midpoint_below(probability[order], index))
    enough = ends[np.cumsum(good[order])[ends] >= min(_MIN_ACCEPTED, good.sum())]
    granted = enough[precision[enough] >= (target.precision or 0.0)]
    index = granted[-1] if len(granted) else enough[np.argmax(precision[enough])]
    return ChosenThreshold(_midpoint_below(probability[order], index), granted=len(granted) > 0)


def _midpoint_below(descending: FloatArray, index: int) -> float:
    """Return the midpoint between the last accepted and the first rejected sample."""
    following = descending[descending < descending[index]]
    lower = following[0] if len(following) else 0.0
    return float(np.clip((descending[index] + lower) / 2, 1e-4, 1 - 1e-4))
