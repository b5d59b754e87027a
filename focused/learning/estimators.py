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
from sklearn.naive_bayes import MultinomialNB
from sklearn.svm import LinearSVC

from focused.learning.calibration import Bools, Floats
from focused.topic import ESTIMATORS

# Chosen on hosts left out of nine topics of two builds of the documentation web, some 60 good
# and 540 other samples each; flat around these values (docs/classifier.md).
SMOOTHING = 0.05
"""Of naive Bayes: added to each word's count."""

_RIDGE_C = 3.0
# Between plain naive Bayes (0) and the regression alone (1); Wang, Manning 2012 use 0.25, too.
_TRUST = 0.25

# Likewise, on sixteen topics of the documentation web and FOLDOC.
_REGRESSION_C = 10.0
_SVM_C = 0.3


def fit_weights(
    estimator: str, rows: sp.csr_matrix, good: Bools
) -> tuple[NDArray[np.float32], float]:
    """Word weights, shape (V,), and the bias of the good-against-rest evidence.

    ``estimator`` is one of :data:`focused.topic.ESTIMATORS`. ``rows`` has
    shape (n, V), of vectors of length one; both sides must be there. The bias
    puts 0 half way between the means of the two sides. The same rows give the
    same weights.
    """
    weights = _FITS[estimator](rows, good)
    shown = rows @ weights
    middle = (shown[good].mean() + shown[~good].mean()) / 2
    return weights.astype(np.float32), float(-middle)


def _naive_bayes(rows: sp.csr_matrix, good: Bools) -> Floats:
    """Log-likelihood ratios, weighed again by a ridge regression (Wang, Manning 2012)."""
    bayes = MultinomialNB(alpha=SMOOTHING).fit(rows, good)
    ratio = bayes.feature_log_prob_[1] - bayes.feature_log_prob_[0]
    ridge = LogisticRegression(C=_RIDGE_C, class_weight="balanced", max_iter=1000)
    belief = ridge.fit(rows @ sp.diags(ratio), good).coef_[0]
    return np.asarray(ratio * (_TRUST * belief + (1 - _TRUST) * np.abs(belief).mean()))


def _logistic_regression(rows: sp.csr_matrix, good: Bools) -> Floats:
    """Ridge logistic regression on the word vectors themselves."""
    ridge = LogisticRegression(C=_REGRESSION_C, class_weight="balanced", max_iter=1000)
    return np.asarray(ridge.fit(rows, good).coef_[0])


def _linear_svm(rows: sp.csr_matrix, good: Bools) -> Floats:
    """The widest margin (Joachims 1998, "Text categorization with support vector machines")."""
    # The order in which the solver takes samples is drawn: fixed, for equal models.
    machine = LinearSVC(C=_SVM_C, class_weight="balanced", max_iter=5000, random_state=0)
    return np.asarray(machine.fit(rows, good).coef_[0])


_FITS: Mapping[str, Callable[[sp.csr_matrix, Bools], Floats]] = MappingProxyType(
    dict(zip(ESTIMATORS, (_naive_bayes, _logistic_regression, _linear_svm), strict=True))
)
