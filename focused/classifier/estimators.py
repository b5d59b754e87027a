"""Estimators of the word weights: each separates good from other samples.

Every estimator yields one weight per word, so that vectors, calibration, model files and
speed are the same for all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from focused.classifier.calibration import BoolArray, FloatArray, ThresholdTarget
from focused.classifier.calibration_fitting import balance_classes
from focused.topic import ESTIMATORS

# Chosen by cross-validation over hosts on nine topics; see docs/explanation/classifier.md.
_RIDGE_C = 3.0
# Between naive Bayes (0) and regression (1); Wang, Manning 2012 use 0.25, too.
_INTERPOLATION = 0.25

# Chosen likewise on sixteen topics.
_REGRESSION_C = 10.0
_SVM_C = 0.3


def fit_word_weights(
    estimator: str, rows: sp.csr_matrix, good: BoolArray, weights: FloatArray, ratio: FloatArray
) -> tuple[NDArray[np.float32], float]:
    """Return word weights, shape (V,), and the bias of the raw score.

    ``estimator`` is one of :data:`focused.topic.ESTIMATORS`. ``rows``, shape (n, V), are unit
    vectors of both classes, which count alike whatever their size. ``weights``, shape (n,), > 0,
    are sample weights. ``ratio``, shape (V,), has naive Bayes' log-likelihood ratios. The bias
    puts 0 midway between the class means. Deterministic.
    """
    fitted = _FIT_FUNCTIONS[estimator](rows, good, balance_classes(weights, good), ratio)
    scores = rows @ fitted
    good_mean, other_mean = (
        np.average(scores[of_class], weights=weights[of_class]) for of_class in (good, ~good)
    )
    return fitted.astype(np.float32), float(-(good_mean + other_mean) / 2)


def _fit_naive_bayes(
    rows: sp.csr_matrix, good: BoolArray, weights: FloatArray, ratio: FloatArray
) -> FloatArray:
    """Log-likelihood ratios reweighted by ridge regression (Wang, Manning 2012)."""
    ridge = LogisticRegression(C=_RIDGE_C, max_iter=1000)
    coefficients = ridge.fit(rows @ sp.diags(ratio), good, sample_weight=weights).coef_[0]
    return np.asarray(
        ratio * (_INTERPOLATION * coefficients + (1 - _INTERPOLATION) * np.abs(coefficients).mean())
    )


def _fit_logistic_regression(
    rows: sp.csr_matrix, good: BoolArray, weights: FloatArray, ratio: FloatArray
) -> FloatArray:
    """Ridge logistic regression on the word vectors."""
    ridge = LogisticRegression(C=_REGRESSION_C, max_iter=1000)
    return np.asarray(ridge.fit(rows, good, sample_weight=weights).coef_[0])


def _fit_linear_svm(
    rows: sp.csr_matrix, good: BoolArray, weights: FloatArray, ratio: FloatArray
) -> FloatArray:
    """Linear SVM (Joachims 1998, "Text categorization with support vector machines")."""
    # The solver shuffles the samples: a fixed seed makes models reproducible.
    svm = LinearSVC(C=_SVM_C, max_iter=5000, random_state=0)
    return np.asarray(svm.fit(rows, good, sample_weight=weights).coef_[0])


_FIT_FUNCTIONS: Mapping[
    str, Callable[[sp.csr_matrix, BoolArray, FloatArray, FloatArray], FloatArray]
] = MappingProxyType(
    dict(
        zip(ESTIMATORS, (_fit_naive_bayes, _fit_logistic_regression, _fit_linear_svm), strict=True)
    )
)


@dataclass(frozen=True, slots=True)
class TrainingOptions:
    """Options of a training run.

    ``prior`` in (0, 1) is the expected share of good pages during the crawl; None uses the
    samples' share, clipped to 0.02 to 0.5. ``keywords`` are those the topic started from.
    ``embedding`` fits a :class:`focused.classifier.semantic_scorer.SemanticScorer`, too.
    """

    estimator: str
    target: ThresholdTarget = field(default_factory=ThresholdTarget)
    prior: float | None = None
    seed: int = 0
    keywords: tuple[str, ...] = ()
    embedding: bool = True
