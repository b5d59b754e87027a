"""Fit a topic's spam classifier on its samples, beside spam made of them.

Few people label spam: the classifier learns to tell the samples, which a directory lists and which
are therefore good, from texts that :mod:`focused.spam.spam_families` makes of their words, and from
pages that were labelled spam. Pages are rated by popular words of the other half of the samples, as
pages of a crawl are.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from focused.spam.content_signals import (
    MIN_WORDS,
    SIGNALS,
    PopularWords,
    body_text,
    content_signals,
)
from focused.spam.spam_classifier import SpamClassifier
from focused.spam.spam_families import TRAINING_FAMILIES
from focused.web.page import Page

MIN_SAMPLES = 40
"""With fewer samples that have a text no spam classifier is fitted."""
MAX_SAMPLES = 200
MIN_SEPARATION = 0.75
"""The least area under the ROC curve on held-out samples; below it there is no classifier."""

_KNOTS = np.linspace(0.0, 1.0, 4)
_INVERSE_PENALTY = 0.1
_TEXTS_PER_SPAM = 6
_MIN_SPAM_WORDS, _MAX_SPAM_WORDS = 60, 800
_FOLDS = 5
_LABEL_WEIGHT = 5.0
"""A page labelled spam weighs as much as this many made ones."""

FloatArray = NDArray[np.float64]


def fit_spam_classifier(
    pages: Sequence[Page],
    seed: int,
    labelled_spam: Sequence[Page] = (),
    spam_sites: Collection[str] = (),
) -> SpamClassifier | None:
    """Fit a spam classifier on good pages; None for fewer than 40 pages of 30 words.

    None, too, if it doesn't tell held-out pages from spam. ``spam_sites`` are the registered
    domains of pages labelled spam. The same arguments give the same classifier.
    """
    rng = random.Random(seed)
    usable = [page for page in pages if len(body_text(page).split()) >= MIN_WORDS]
    if len(usable) < MIN_SAMPLES:
        return None
    if len(usable) > MAX_SAMPLES:
        usable = rng.sample(usable, MAX_SAMPLES)
    rows, is_spam, weights = _training_rows(usable, labelled_spam, rng)
    knots = _signal_knots(rows)
    basis = _basis(rows, knots)
    folds = np.arange(len(rows)) % _FOLDS
    held_out = np.zeros(len(rows))
    for fold in range(_FOLDS):
        inside = folds != fold
        coefficients, bias = _fit(basis[inside], is_spam[inside], weights[inside])
        held_out[~inside] = basis[~inside] @ coefficients + bias
    if _area_under_curve(held_out, is_spam) < MIN_SEPARATION:
        return None
    coefficients, bias = _fit(basis, is_spam, weights)
    return SpamClassifier(
        PopularWords.count(map(body_text, usable)),
        knots.astype(np.float32),
        coefficients.reshape(knots.shape).astype(np.float32),
        bias,
        float(held_out[~is_spam].mean()),
        float(held_out[is_spam].mean()),
        tuple(sorted(spam_sites)),
    )


def make_spam(pages: Sequence[Page], rng: random.Random) -> list[Page]:
    """Make a page of each training family for every fourth page, with another page's title."""
    texts = [body_text(page) for page in pages]
    made = []
    for _ in range(0, len(pages), 4):
        for family in TRAINING_FAMILIES.values():
            length = len(rng.choice(texts).split())
            n_words = min(max(length, _MIN_SPAM_WORDS), _MAX_SPAM_WORDS)
            sources = rng.sample(texts, min(_TEXTS_PER_SPAM, len(texts)))
            text = family(sources, n_words, rng)
            made.append(Page(rng.choice(pages).url, rng.choice(pages).title, text=text))
    return made


def _training_rows(
    pages: Sequence[Page], labelled_spam: Sequence[Page], rng: random.Random
) -> tuple[FloatArray, NDArray[np.bool_], FloatArray]:
    """Return signals of good and spam pages in random order, which are spam, and their weights."""
    shuffled = rng.sample(pages, len(pages))
    rows: list[tuple[FloatArray, bool, float]] = []
    for place in (0, 1):
        half, others = shuffled[place::2], shuffled[1 - place :: 2]
        popular = PopularWords.count(map(body_text, others))
        for page, is_spam, weight in (
            *((page, False, 1.0) for page in half),
            *((page, True, 1.0) for page in make_spam(half, rng)),
            *((page, True, _LABEL_WEIGHT) for page in labelled_spam[place::2]),
        ):
            signals = content_signals(page, popular)
            if signals is not None:
                rows.append((signals, is_spam, weight))
    rng.shuffle(rows)
    signal_rows, spam, weights = zip(*rows, strict=True)
    return np.array(signal_rows), np.array(spam, dtype=bool), np.array(weights)


def _signal_knots(rows: FloatArray) -> FloatArray:
    """Return knots at the quantiles of each signal, strictly ascending, shape (19, k)."""
    knots = np.quantile(rows, _KNOTS, axis=0).T
    least = 1e-3 * np.maximum(knots[:, -1:] - knots[:, :1], 1e-3)
    return knots + least * np.arange(len(_KNOTS))


def _basis(rows: FloatArray, knots: FloatArray) -> FloatArray:
    """Return the linear B-spline basis of each signal, shape (n, 19 * k)."""
    hats = np.eye(knots.shape[1])
    return np.column_stack(
        [
            np.interp(rows[:, place], knots[place], hat)
            for place in range(len(SIGNALS))
            for hat in hats
        ]
    )


def _fit(
    basis: FloatArray, is_spam: NDArray[np.bool_], weights: FloatArray
) -> tuple[FloatArray, float]:
    from sklearn.linear_model import LogisticRegression  # slow to import

    model = LogisticRegression(C=_INVERSE_PENALTY, class_weight="balanced", max_iter=2_000)
    model.fit(basis, is_spam, weights)
    return model.coef_[0], float(model.intercept_[0])


def _area_under_curve(scores: FloatArray, is_spam: NDArray[np.bool_]) -> float:
    from sklearn.metrics import roc_auc_score  # slow to import

    return float(roc_auc_score(is_spam, scores))
