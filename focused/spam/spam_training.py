"""Fit a topic's spam classifier on its samples, beside spam made of them.

Few people label spam: the classifier learns to tell the samples, which a directory lists and which
are therefore good, from texts made of their words, and from pages that were labelled spam. Pages
are rated by popular words of the other half of the samples, as pages of a crawl are.

A family of made texts is a way in which spammers make pages that match a topic: Gyöngyi and
Garcia-Molina (2005, "Web spam taxonomy") call them repetition, dumping, weaving and phrase
stitching. Randomness is an argument: the same generator gives the same texts.
"""

from __future__ import annotations

import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from focused.spam.spam_classifier import (
    MIN_WORDS,
    PopularWords,
    SpamClassifier,
    body_text,
    content_signals,
)
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
SpamFamily = Callable[[Sequence[str], int, random.Random], str]
"""``(good texts, number of words, random generator)`` to a spam text."""

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
_KEYWORD_CHARS = 5
_KEYWORDS = 300
_FRAGMENT_WORDS = 12


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


def repeat_keywords(texts: Sequence[str], n_words: int, rng: random.Random) -> str:
    """Repeat some of the texts' frequent words, before or after a piece of a text (stuffing)."""
    keywords = frequent_words(texts, _KEYWORDS)
    chosen = rng.sample(keywords, min(len(keywords), rng.randint(3, 10)))
    stuffed: list[str] = []
    while len(stuffed) < 0.7 * n_words and chosen:
        stuffed += rng.sample(chosen, min(len(chosen), rng.randint(1, 4)))
    piece = rng.choice(texts).split()[: round(0.3 * n_words)]
    return " ".join(stuffed + piece if rng.random() < 0.5 else piece + stuffed)


def shuffle_words(texts: Sequence[str], n_words: int, rng: random.Random) -> str:
    """Draw the texts' words in random order (dumping)."""
    return " ".join(rng.choices([word for text in texts for word in text.split()], k=n_words))


def stitch_sentences(texts: Sequence[str], n_words: int, rng: random.Random) -> str:
    """Put sentences of several texts together (phrase stitching)."""
    sentences = [
        sentence
        for text in texts
        for sentence in _SENTENCE_END.split(text)
        if 4 < len(sentence.split()) < 60
    ] or [
        " ".join(words[first : first + _FRAGMENT_WORDS])
        for words in map(str.split, texts)
        for first in range(0, len(words), _FRAGMENT_WORDS)
    ]
    chosen: list[str] = []
    while len(chosen) < n_words:
        chosen += rng.choice(sentences).split()
    return " ".join(chosen)


def generate_text(texts: Sequence[str], n_words: int, rng: random.Random, *, order: int = 2) -> str:
    """Generate text by a Markov chain over the texts' words, each word after ``order`` others."""
    followers: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
    for words in map(str.split, texts):
        shifted = [words[first:] for first in range(order + 1)]
        for *before, word in zip(*shifted, strict=False):
            followers[tuple(before)].append(word)
    starts = list(followers)
    generated = list(rng.choice(starts))
    while len(generated) < n_words:
        found = followers.get(tuple(generated[-order:]))
        generated += [rng.choice(found)] if found else rng.choice(starts)
    return " ".join(generated)


TRAINING_FAMILIES: Mapping[str, SpamFamily] = {
    "keywords": repeat_keywords,
    "shuffled": shuffle_words,
    "stitched": stitch_sentences,
    "generated": generate_text,
}
"""The families that the spam classifier is trained on."""


def frequent_words(texts: Sequence[str], most: int) -> list[str]:
    """Return the most frequent longer words of the texts, in lower case."""
    counted = Counter(
        word for text in texts for word in text.lower().split() if len(word) >= _KEYWORD_CHARS
    )
    return [word for word, _ in counted.most_common(most)]


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
    from sklearn.preprocessing import SplineTransformer  # slow to import

    made = SplineTransformer(degree=1, knots=knots.T, extrapolation="constant")
    return np.asarray(made.fit_transform(rows))


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
