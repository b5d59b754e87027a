"""The estimators a topic classifier may have: each weighs the words of good against other samples.

Whichever is chosen, what it leaves is one weight a word, so that documents,
calibration, short texts, model files and speed are the same for all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from focused.learning.calibration import Bools, Floats
from focused.topic import ESTIMATORS

# Chosen on hosts left out of nine topics of two builds of the documentation web, some 60 good
# and 540 other samples each; flat around these values (docs/explanation/classifier.md).
_RIDGE_C = 3.0
# Between plain naive Bayes (0) and the regression alone (1); Wang, Manning 2012 use 0.25, too.
_TRUST = 0.25

# Likewise, on sixteen topics of the documentation web and FOLDOC.
_REGRESSION_C = 10.0
_SVM_C = 0.3


def fit_weights(
    estimator: str, rows: sp.csr_matrix, good: Bools, weights: Floats, ratio: Floats
) -> tuple[NDArray[np.float32], float]:
    """Word weights, shape (V,), and the bias of the good-against-rest evidence.

    ``estimator`` is one of :data:`focused.topic.ESTIMATORS`. ``rows`` has
    shape (n, V), of vectors of length one; both sides must be there and count
    alike, whatever their number. ``weights``, shape (n,), > 0, tell samples of
    one side apart. ``ratio``, shape (V,), has naive Bayes' log-likelihood
    ratios. The bias puts 0 half way between the means of the two sides. The
    same rows give the same weights.
    """
    found = _FITS[estimator](rows, good, _balanced(weights, good), ratio)
    shown = rows @ found
    ours, others = (np.average(shown[side], weights=weights[side]) for side in (good, ~good))
    return found.astype(np.float32), float(-(ours + others) / 2)


def _balanced(weights: Floats, good: Bools) -> Floats:
    """Weights of mean one over the samples, the same in sum on either side."""
    balanced = weights.copy()
    for side in (good, ~good):
        balanced[side] *= len(good) / (2 * weights[side].sum())
    return balanced


def _naive_bayes(rows: sp.csr_matrix, good: Bools, weights: Floats, ratio: Floats) -> Floats:
    """Log-likelihood ratios, weighed again by a ridge regression (Wang, Manning 2012)."""
    ridge = LogisticRegression(C=_RIDGE_C, max_iter=1000)
    belief = ridge.fit(rows @ sp.diags(ratio), good, sample_weight=weights).coef_[0]
    return np.asarray(ratio * (_TRUST * belief + (1 - _TRUST) * np.abs(belief).mean()))


def _logistic_regression(
    rows: sp.csr_matrix, good: Bools, weights: Floats, ratio: Floats
) -> Floats:
    """Ridge logistic regression on the word vectors themselves."""
    ridge = LogisticRegression(C=_REGRESSION_C, max_iter=1000)
    return np.asarray(ridge.fit(rows, good, sample_weight=weights).coef_[0])


def _linear_svm(rows: sp.csr_matrix, good: Bools, weights: Floats, ratio: Floats) -> Floats:
    """The widest margin (Joachims 1998, "Text categorization with support vector machines")."""
    # The order in which the solver takes samples is drawn: fixed, for equal models.
    machine = LinearSVC(C=_SVM_C, max_iter=5000, random_state=0)
    return np.asarray(machine.fit(rows, good, sample_weight=weights).coef_[0])


_FITS: Mapping[str, Callable[[sp.csr_matrix, Bools, Floats, Floats], Floats]] = MappingProxyType(
    dict(zip(ESTIMATORS, (_naive_bayes, _logistic_regression, _linear_svm), strict=True))
)
