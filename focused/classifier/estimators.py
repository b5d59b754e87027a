"""Estimators of the parts of a page's score, and their combination.

Each separates good from other samples: those of words yield one weight per word, so that vectors,
calibration, model files and speed are the same for all; that of meanings a direction in the space
of the embedding.

The combination is stacking (Wolpert 1992, "Stacked generalization"). Its coefficients are fitted to
scores of samples that the parts had not seen, so that a part counts for what it is worth on the
topic's own samples. With few samples they stay near a prior, in which the first part, the base,
weighs most.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from focused.classifier.calibration import BoolArray, FloatArray, ThresholdTarget, expit
from focused.classifier.calibration_fitting import balance_classes, fit_platt_scaling
from focused.classifier.semantic_scorer import MAX_LEAD_WORDS, SemanticScorer
from focused.text.static_embedding import StaticEmbedding
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
    return fit_near_prior(columns, good, weights, mean, precision)[1:]


def fit_near_prior(
    columns: FloatArray,
    good: BoolArray,
    weights: FloatArray,
    mean: FloatArray,
    precision: FloatArray,
) -> FloatArray:
    """Fit a logistic regression with a Gaussian prior; return bias and k coefficients >= 0.

    ``columns``, shape (n, k), are of n samples; ``mean`` and ``precision``, shape (k + 1,), of the
    prior, that of the bias first. Maximum a posteriori.
    """
    inputs = np.column_stack((np.ones(len(good)), columns))

    def loss(found: FloatArray) -> tuple[float, FloatArray]:
        log_odds = inputs @ found
        misfit = weights @ (np.logaddexp(0.0, log_odds) - good * log_odds)
        pull = precision * (found - mean)
        gradient = inputs.T @ (weights * (expit(log_odds) - good)) + pull
        return float(misfit + pull @ (found - mean) / 2), gradient

    bounds = ((None, None), *((0.0, None),) * columns.shape[1])
    return np.asarray(minimize(loss, mean, jac=True, method="L-BFGS-B", bounds=bounds).x)


# Chosen on thirteen topics of three webs (docs/decisions/0050).
_MEANING_C = 0.2


def fit_semantic_scorer(
    embedding: StaticEmbedding,
    leads: Sequence[str],
    titles: Sequence[str],
    good: BoolArray,
    weights: FloatArray,
    folds: NDArray[np.intp],
) -> SemanticScorer:
    """Fit a scorer to n samples: their ``leads`` (title and description) and ``titles``.

    ``good``, ``weights`` and ``folds``, shape (n,), are as in validation. The slope is that of
    titles scored by models of the other folds; it is 0 where these don't separate the samples.
    """
    rows = embedding.embed(leads, MAX_LEAD_WORDS)
    title_rows = embedding.embed(titles, MAX_LEAD_WORDS)
    raw_scores = score_left_out(rows, title_rows, good, weights, folds)
    slope, _ = fit_platt_scaling(raw_scores, good, weights) if title_rows.any() else (0.0, 0.0)
    direction, bias = fit_direction(rows, good, weights)
    return SemanticScorer(embedding, direction, bias, max(slope, 0.0))


def score_left_out(
    rows: NDArray[np.float32],
    scored_rows: NDArray[np.float32],
    good: BoolArray,
    weights: FloatArray,
    folds: NDArray[np.intp],
) -> FloatArray:
    """Return scores of ``scored_rows`` by models of the other folds' ``rows``, shape (n,).

    Both are vectors of the same n samples, shape (n, d); a zero vector scores 0. A fold whose
    complement has a single class uses a model of all folds.
    """
    scores = np.zeros(len(good))
    for fold in np.unique(folds):
        train, test = folds != fold, folds == fold
        if not 0 < good[train].sum() < train.sum():
            train = np.ones(len(good), dtype=bool)
        direction, bias = fit_direction(rows[train], good[train], weights[train])
        scores[test] = scored_rows[test] @ direction + bias
    return np.where(scored_rows.any(axis=1), scores, 0.0)


def fit_direction(
    rows: NDArray[np.float32], good: BoolArray, weights: FloatArray
) -> tuple[FloatArray, float]:
    """Fit logistic regression to vectors, shape (n, d), both classes with the same total weight.

    Returns the coefficients, shape (d,), and the bias.
    """
    from sklearn.linear_model import LogisticRegression

    fitted = LogisticRegression(C=_MEANING_C, max_iter=1000).fit(
        rows.astype(np.float64), good, sample_weight=balance_classes(weights, good)
    )
    return np.asarray(fitted.coef_[0]), float(fitted.intercept_[0])
