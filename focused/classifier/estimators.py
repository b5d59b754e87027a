"""The estimators a topic classifier may have: each weighs the words of good against other samples.

Whichever is chosen, what it leaves is one weight a word, so that documents,
calibration, short texts, model files and speed are the same for all.
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
from focused.topic import ESTIMATORS

# Chosen on hosts left out of nine topics of two builds of the documentation web, some 60 good
# and 540 other samples each; flat around these values (docs/explanation/classifier.md).
_RIDGE_C = 3.0
# Between plain naive Bayes (0) and the regression alone (1); Wang, Manning 2012 use 0.25, too.
_INTERPOLATION = 0.25

# Likewise, on sixteen topics of the documentation web and FOLDOC.
_REGRESSION_C = 10.0
_SVM_C = 0.3


def fit_word_weights(
    estimator: str, rows: sp.csr_matrix, good: BoolArray, weights: FloatArray, ratio: FloatArray
) -> tuple[NDArray[np.float32], float]:
    """Word weights, shape (V,), and the bias of the good-against-rest raw_scores.

    ``estimator`` is one of :data:`focused.topic.ESTIMATORS`. ``rows`` has
    shape (n, V), of vectors of length one; both sides must be there and count
    alike, whatever their number. ``weights``, shape (n,), > 0, tell samples of
    one side apart. ``ratio``, shape (V,), has naive Bayes' log-likelihood
    ratios. The bias puts 0 half way between the means of the two sides. The
    same rows give the same weights.
    """
    found = _FIT_FUNCTIONS[estimator](rows, good, _balance_classes(weights, good), ratio)
    shown = rows @ found
    ours, others = (np.average(shown[side], weights=weights[side]) for side in (good, ~good))
    return found.astype(np.float32), float(-(ours + others) / 2)


def _balance_classes(weights: FloatArray, good: BoolArray) -> FloatArray:
    """Weights of mean one over the samples, the same in sum on either side."""
    balanced = weights.copy()
    for side in (good, ~good):
        balanced[side] *= len(good) / (2 * weights[side].sum())
    return balanced


def _fit_naive_bayes(
    rows: sp.csr_matrix, good: BoolArray, weights: FloatArray, ratio: FloatArray
) -> FloatArray:
    """Log-likelihood ratios, weighed again by a ridge regression (Wang, Manning 2012)."""
    ridge = LogisticRegression(C=_RIDGE_C, max_iter=1000)
    belief = ridge.fit(rows @ sp.diags(ratio), good, sample_weight=weights).coef_[0]
    return np.asarray(
        ratio * (_INTERPOLATION * belief + (1 - _INTERPOLATION) * np.abs(belief).mean())
    )


def _fit_logistic_regression(
    rows: sp.csr_matrix, good: BoolArray, weights: FloatArray, ratio: FloatArray
) -> FloatArray:
    """Ridge logistic regression on the word vectors themselves."""
    ridge = LogisticRegression(C=_REGRESSION_C, max_iter=1000)
    return np.asarray(ridge.fit(rows, good, sample_weight=weights).coef_[0])


def _fit_linear_svm(
    rows: sp.csr_matrix, good: BoolArray, weights: FloatArray, ratio: FloatArray
) -> FloatArray:
    """The widest margin (Joachims 1998, "Text categorization with support vector machines")."""
    # The order in which the solver takes samples is drawn: fixed, for equal models.
    machine = LinearSVC(C=_SVM_C, max_iter=5000, random_state=0)
    return np.asarray(machine.fit(rows, good, sample_weight=weights).coef_[0])


_FIT_FUNCTIONS: Mapping[
    str, Callable[[sp.csr_matrix, BoolArray, FloatArray, FloatArray], FloatArray]
] = MappingProxyType(
    dict(
        zip(ESTIMATORS, (_fit_naive_bayes, _fit_logistic_regression, _fit_linear_svm), strict=True)
    )
)


@dataclass(frozen=True, slots=True)
class TrainingOptions:
    """How to fit: what weighs the words, what the threshold is for, the prior, and the seed.

    ``prior`` in (0, 1) is the share of good pages among those to be judged;
    None takes the samples' own, held within 0.02 to 0.5. ``keywords`` are what the
    topic began with, if anything.
    """

    estimator: str
    threshold_target: ThresholdTarget = field(default_factory=ThresholdTarget)
    prior: float | None = None
    seed: int = 0
    keywords: tuple[str, ...] = ()
