"""Fit the scorer of short texts by the meaning of their words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from focused.classifier.calibration import BoolArray, FloatArray
from focused.classifier.calibration_fitting import balance_classes, fit_platt_scaling
from focused.classifier.semantic_scorer import MAX_LEAD_WORDS, SemanticScorer
from focused.text.static_embedding import StaticEmbedding

# Chosen on thirteen topics of three webs (docs/decisions/0050).
_REGRESSION_C = 0.2


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

    fitted = LogisticRegression(C=_REGRESSION_C, max_iter=1000).fit(
        rows.astype(np.float64), good, sample_weight=balance_classes(weights, good)
    )
    return np.asarray(fitted.coef_[0]), float(fitted.intercept_[0])
