"""The topic classifier: words with weights, calibrated.

The weights come from one of the estimators of
:mod:`focused.learning.estimators`. By default naive Bayes gives each word its
log-likelihood ratio between the good categories and the rest. It takes words
that come together for independent witnesses; a ridge logistic regression on
the ratios learns how much to believe of each (Wang, Manning 2012, "Baselines
and bigrams"). A page's evidence is one dot product; Platt's sigmoid, fitted
on hosts left out of the training, turns it into a probability (Platt 1999).
The good categories' share is summed as in soft focus (Chakrabarti, van den
Berg, Dom 1999); naive Bayes over the whole taxonomy names the likeliest
category.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import repeat

import numpy as np
from numpy.typing import NDArray

from focused.learning.documents import DocumentVector, Vocabulary
from focused.learning.tokens import words
from focused.web.page import Judgement, Page

MIN_KNOWN_WORDS = 5
"""Pages with fewer different known words are not judged: relevance is the prior."""

MAX_VERDICT_NATS = 6.0
MAX_LOG_ODDS = 7.0
"""Some hundred samples cannot tell 0.1% from 0.01%: relevance stays within 0.001 to 0.999."""


@dataclass(frozen=True)
class Taxonomy:
    """Naive Bayes over categories, C of them, good or not.

    ``log_likelihood`` has shape (C, V), ``log_prior`` shape (C,).
    """

    categories: tuple[str, ...]
    good: tuple[bool, ...]
    log_prior: NDArray[np.float32]
    log_likelihood: NDArray[np.float32]

    def likeliest(self, vector: DocumentVector, good: bool) -> str:
        """The likeliest category on the given side; of both when that side is empty."""
        return self.categories[int(np.argmax(self._log_posterior(vector, good)))]

    def _log_posterior(self, vector: DocumentVector, good: bool) -> NDArray[np.float64]:
        joint = self.log_likelihood[:, vector.ids] @ vector.values + self.log_prior
        side = np.array(self.good) == good
        return np.where(side, joint, -np.inf) if side.any() else joint


@dataclass(frozen=True)
class Calibration:
    """From evidence to probabilities. ``slope`` and ``verdict_slope`` are >= 0.

    Relevance is sigmoid(slope * evidence + offset), the prior included in the
    offset; a short text's verdict is verdict_slope * its evidence, in nats.
    """

    slope: float
    offset: float
    verdict_slope: float
    prior: float
    threshold: float


@dataclass(frozen=True)
class TopicClassifier:
    """A trained judge; implements :class:`focused.learning.protocols.TopicJudge`.

    ``weights`` has shape (V,), one for each word of the vocabulary.
    """

    vocabulary: Vocabulary
    weights: NDArray[np.float32]
    bias: float
    taxonomy: Taxonomy
    calibration: Calibration

    @property
    def threshold(self) -> float:
        """The relevance from which a page counts as on topic, in [0, 1]."""
        return self.calibration.threshold

    def judge(self, page: Page) -> Judgement:
        """Judge one page; a page with hardly a known word gets the prior."""
        vector = self.vocabulary.page_vector(page)
        if len(vector.ids) < MIN_KNOWN_WORDS:
            prior = self.calibration.prior
            return Judgement(prior, on_topic=False, known=False)
        log_odds = self.calibration.slope * self.evidence(vector) + self.calibration.offset
        relevance = sigmoid(log_odds)
        on_topic = relevance >= self.threshold
        return Judgement(relevance, on_topic, True, self.taxonomy.likeliest(vector, on_topic))

    def evidence(self, vector: DocumentVector) -> float:
        """The uncalibrated evidence of one vector, any real number."""
        return float(self.weights[vector.ids] @ vector.values) + self.bias

    def verdicts(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Evidence of short texts in nats, shape (n,), within ±:data:`MAX_VERDICT_NATS`."""
        raw = short_text_evidence(self.vocabulary, self.weights, texts)
        nats = self.calibration.verdict_slope * raw
        return np.clip(nats, -MAX_VERDICT_NATS, MAX_VERDICT_NATS)


def short_text_evidence(
    vocabulary: Vocabulary, weights: NDArray[np.float32], texts: Sequence[str]
) -> NDArray[np.float64]:
    """Sum of the known words' weights over the root of their number, shape (n,).

    The root stands between adding words up as if they were independent and
    taking their mean: words of one short text repeat each other. Text without
    a known word gives 0.
    """
    # A page repeats its texts (menus, list items); each is split once.
    unique = list(dict.fromkeys(texts))
    tokens = [words(text) for text in unique]
    lengths = np.fromiter(map(len, tokens), np.intp, len(tokens))
    flat = [token for part in tokens for token in part]
    index = vocabulary.index
    places = np.fromiter(map(index.get, flat, repeat(-1)), np.intp, len(flat))
    owner = np.repeat(np.arange(len(unique)), lengths)[places >= 0]
    places = places[places >= 0]
    gain = weights[places] * vocabulary.idf[places]
    total = np.bincount(owner, gain, minlength=len(unique))
    known = np.bincount(owner, minlength=len(unique))
    evidence = total / np.sqrt(np.maximum(known, 1))
    place_of = {text: place for place, text in enumerate(unique)}
    return evidence[np.fromiter(map(place_of.__getitem__, texts), np.intp, len(texts))]


def sigmoid(log_odds: float) -> float:
    """The probability of ``log_odds``, held within ±:data:`MAX_LOG_ODDS`."""
    return float(1.0 / (1.0 + np.exp(-np.clip(log_odds, -MAX_LOG_ODDS, MAX_LOG_ODDS))))
