"""The topic classifier: words with weights, calibrated.

The weights come from one of the estimators of
:mod:`focused.classifier.estimators`. By default naive Bayes gives each word its
log-likelihood ratio between the good categories and the rest. It takes words
that come together for independent witnesses; a ridge logistic regression on
the ratios learns how much to believe of each (Wang, Manning 2012, "Baselines
and bigrams"). A page's raw_scores is one dot product; Platt's sigmoid, fitted
on hosts left out of the training, turns it into a probability (Platt 1999).
The good categories' share is summed as in soft focus (Chakrabarti, van den
Berg, Dom 1999); naive Bayes over the whole taxonomy names the likeliest
category.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from focused.classifier.calibration import CalibrationCurve, logit
from focused.classifier.taxonomy import Taxonomy
from focused.text.documents import DocumentVector, HashedPage, Vocabulary, hash_page
from focused.text.word_hashes import hash_texts_once
from focused.web.page import Classification, Page

MIN_KNOWN_WORDS = 5
"""Pages with fewer different known words are not judged: relevance is the prior."""

MAX_TEXT_SCORE = 6.0
MAX_LOG_ODDS = 7.0
"""Some hundred samples cannot tell 0.1% from 0.01%: relevance stays within 0.001 to 0.999."""


@dataclass(frozen=True)
class Calibration:
    """From raw_scores to probabilities, and when there is too little raw_scores for one.

    Relevance is what ``curve`` says of the raw_scores, its log-odds moved by
    ``shift`` from the samples' share of good pages to the ``prior``; a short
    text's verdict is ``verdict_slope`` (>= 0) * its raw_scores, in nats. A page
    of whose words a smaller share than ``min_known_share`` is known is foreign.
    """

    curve: CalibrationCurve
    shift: float
    verdict_slope: float
    prior: float
    threshold: float
    min_known_share: float = 0.0


@dataclass(frozen=True)
class LinearTopicClassifier:
    """A trained classifier; implements :class:`focused.link_scoring.protocols.TopicClassifier`.

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

    def classify(self, page: Page) -> Classification:
        """Judge one page; one with hardly a known word, or a foreign one, gets the prior."""
        return self.classify_hashed(hash_page(page))

    def classify_hashed(self, page: HashedPage) -> Classification:
        """:meth:`classify` a page by its words."""
        vector = self.vocabulary.vectorize_page(page)
        calibration = self.calibration
        few = len(vector.ids) < MIN_KNOWN_WORDS
        if few or vector.known_share < calibration.min_known_share:
            return Classification(calibration.prior, on_topic=False, known=False)
        share = min(calibration.curve.at(self.decision_function(vector)), 1.0 - 1e-12)
        relevance = sigmoid(logit(share) + calibration.shift)
        on_topic = relevance >= self.threshold
        return Classification(relevance, on_topic, True, self.taxonomy.likeliest(vector))

    def decision_function(self, vector: DocumentVector) -> float:
        """The uncalibrated raw_scores of one vector, any real number."""
        return float(self.weights[vector.ids] @ vector.values) + self.bias

    def score_texts(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Evidence of short texts in nats, shape (n,), within ±:data:`MAX_TEXT_SCORE`."""
        raw = score_short_texts(self.vocabulary, self.weights, texts)
        nats = self.calibration.verdict_slope * raw
        return np.clip(nats, -MAX_TEXT_SCORE, MAX_TEXT_SCORE)


def score_short_texts(
    vocabulary: Vocabulary, weights: NDArray[np.float32], texts: Sequence[str]
) -> NDArray[np.float64]:
    """Sum of the known words' weights over the root of their number, shape (n,).

    The root stands between adding words up as if they were independent and
    taking their mean: words of one short text repeat each other. Text without
    a known word gives 0.
    """
    told = hash_texts_once(texts)
    places = vocabulary.indices_of_hashes(told.hashes)
    known = places >= 0
    owners, places = told.owners[known], places[known]
    gain = weights[places] * vocabulary.idf[places]
    total = np.bincount(owners, gain, minlength=len(texts))
    many = np.bincount(owners, minlength=len(texts))
    return total / np.sqrt(np.maximum(many, 1))


def sigmoid(log_odds: float) -> float:
    """The probability of ``log_odds``, held within ±:data:`MAX_LOG_ODDS`."""
    return 1.0 / (1.0 + math.exp(-min(max(log_odds, -MAX_LOG_ODDS), MAX_LOG_ODDS)))


MAX_CACHED_TEXTS = 40_000
"""Texts, some 200 bytes each; beyond it all are forgotten."""

FloatArray = NDArray[np.float64]


class CachedTextScores:
    """Asks about each text once, for judges that take their time."""

    def __init__(
        self, ask: Callable[[Sequence[str]], FloatArray], most: int = MAX_CACHED_TEXTS
    ) -> None:
        """``ask`` gives verdicts of n texts, shape (n,), each by its text alone."""
        self._ask = ask
        self._most = most
        self._known: dict[str, float] = {}

    def of(self, texts: Sequence[str]) -> FloatArray:
        """The verdicts of texts, shape (n,)."""
        known = self._known
        if len(known) > self._most:
            known.clear()
        new = [text for text in dict.fromkeys(texts) if text not in known]
        if new:
            known.update(zip(new, self._ask(new).tolist(), strict=True))
        return np.fromiter(map(known.__getitem__, texts), np.float64, len(texts))
