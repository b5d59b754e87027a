"""Scores short texts by their meaning: a linear model over a static word embedding.

Naive Bayes knows the words of the samples; an anchor of one other word says nothing to it. The
embedding (:mod:`focused.text.static_embedding`) gives words of similar meaning similar vectors, so
that a logistic regression on the samples' titles and descriptions has a weight for every word
piece of the language. Its scores are calibrated on left-out titles: where the embedding does not
separate the samples, in a language it doesn't know, scores are near 0.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from focused.classifier.calibration import (
    BoolArray,
    FloatArray,
    balance_classes,
    fit_platt_scaling,
)
from focused.text.static_embedding import StaticEmbedding, split_word
from focused.text.tokens import tokenize
from focused.text.word_hashes import HashedTexts, hash_texts_once

MAX_LEAD_WORDS = 40
MAX_SEMANTIC_SCORE = 6.0
MAX_CACHED_WORDS = 200_000
"""About 100 bytes per word. The cache is cleared when it is full."""

# Chosen on thirteen topics of three webs (docs/explanation/classifier.md).
_REGRESSION_C = 0.2


class SemanticScorer:
    """Scores of one topic: log-odds of short texts, 0 for a text without known words.

    ``direction``, shape (d,), and ``bias`` are the linear model; ``slope`` (>= 0) scales its scores
    to log-odds. ``embedding_name`` identifies the table that ``direction`` belongs to.
    """

    def __init__(
        self, embedding: StaticEmbedding, direction: FloatArray, bias: float, slope: float
    ) -> None:
        self.embedding_name = embedding.name
        self.direction = direction
        self.bias = bias
        self.slope = slope
        self._pieces = embedding.index
        self._piece_scores = embedding.project(direction).tolist()
        self._piece_squares = embedding.squared_norms.tolist()
        self._clear()

    def _clear(self) -> None:
        self._rows: dict[int, int] = {}
        # Score and squared length per known word, by its row.
        self._words = np.zeros((1024, 2))

    def score_texts(self, texts: Sequence[str]) -> FloatArray:
        """Return log-odds of short texts, shape (n,), within ±:data:`MAX_SEMANTIC_SCORE`."""
        nats = self.slope * self.raw_scores(texts)
        return np.clip(nats, -MAX_SEMANTIC_SCORE, MAX_SEMANTIC_SCORE)

    def raw_scores(self, texts: Sequence[str]) -> FloatArray:
        """Return the linear model's scores, shape (n,); 0 for a text without known words."""
        hashed = hash_texts_once(texts)
        owners = hashed.owners
        rows = self._rows_of(texts, hashed, owners)
        values = self._words[rows]
        score, square = (
            np.bincount(owners, values[:, column], minlength=len(texts)) for column in (0, 1)
        )
        known = square > 0
        return np.where(known, score / np.sqrt(np.where(known, square, 1.0)) + self.bias, 0.0)

    def _rows_of(
        self, texts: Sequence[str], hashed: HashedTexts, owners: NDArray[np.intp]
    ) -> NDArray[np.intp]:
        """Return the row of each word of the texts, looking up words not met before."""
        if len(self._rows) > MAX_CACHED_WORDS:
            self._clear()
        find = self._rows.get
        rows = np.array([find(word, -1) for word in hashed.hashes.tolist()], np.intp)
        unknown = np.flatnonzero(rows < 0)
        if len(unknown):
            begins = hashed.lengths.cumsum() - hashed.lengths
            words: dict[int, list[str]] = {}
            for place, text in zip(unknown.tolist(), owners[unknown].tolist(), strict=True):
                if text not in words:
                    words[text] = tokenize(texts[text])
                word = words[text][place - begins[text]]
                rows[place] = self._look_up_word(int(hashed.hashes[place]), word)
        return rows

    def _look_up_word(self, hashed: int, word: str) -> int:
        row = self._rows.get(hashed)
        if row is not None:  # earlier in the same texts
            return row
        row = self._rows[hashed] = len(self._rows)
        if row == len(self._words):
            self._words = np.concatenate((self._words, np.zeros_like(self._words)))
        pieces = split_word(word, self._pieces)
        self._words[row] = (
            sum(map(self._piece_scores.__getitem__, pieces)),
            sum(map(self._piece_squares.__getitem__, pieces)),
        )
        return row


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
