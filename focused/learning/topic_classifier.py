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

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from focused.learning.calibration import Curve, logit
from focused.learning.documents import DocumentVector, HashedPage, Vocabulary, hashed
from focused.learning.taxonomy import Taxonomy
from focused.learning.word_hashes import words_of
from focused.web.page import Judgement, Page

MIN_KNOWN_WORDS = 5
"""Pages with fewer different known words are not judged: relevance is the prior."""

MAX_VERDICT_NATS = 6.0
MAX_LOG_ODDS = 7.0
"""Some hundred samples cannot tell 0.1% from 0.01%: relevance stays within 0.001 to 0.999."""


@dataclass(frozen=True)
class Calibration:
    """From evidence to probabilities, and when there is too little evidence for one.

    Relevance is what ``curve`` says of the evidence, its log-odds moved by
    ``shift`` from the samples' share of good pages to the ``prior``; a short
    text's verdict is ``verdict_slope`` (>= 0) * its evidence, in nats. A page
    of whose words a smaller share than ``min_known_share`` is known is foreign.
    """

    curve: Curve
    shift: float
    verdict_slope: float
    prior: float
    threshold: float
    min_known_share: float = 0.0


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
        """Judge one page; one with hardly a known word, or a foreign one, gets the prior."""
        return self.judge_words(hashed(page))

    def judge_words(self, page: HashedPage) -> Judgement:
        """:meth:`judge` a page by its words."""
        vector = self.vocabulary.page_vector(page)
        calibration = self.calibration
        few = len(vector.ids) < MIN_KNOWN_WORDS
        if few or vector.known_share < calibration.min_known_share:
            return Judgement(calibration.prior, on_topic=False, known=False)
        share = min(calibration.curve.at(self.evidence(vector)), 1.0 - 1e-12)
        relevance = sigmoid(logit(share) + calibration.shift)
        on_topic = relevance >= self.threshold
        return Judgement(relevance, on_topic, True, self.taxonomy.likeliest(vector))

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
    told = words_of(texts)
    places = vocabulary.places_of(told.hashes)
    known = places >= 0
    owners, places = told.owners[known], places[known]
    gain = weights[places] * vocabulary.idf[places]
    total = np.bincount(owners, gain, minlength=len(texts))
    many = np.bincount(owners, minlength=len(texts))
    return total / np.sqrt(np.maximum(many, 1))


def sigmoid(log_odds: float) -> float:
    """The probability of ``log_odds``, held within ±:data:`MAX_LOG_ODDS`."""
    return 1.0 / (1.0 + math.exp(-min(max(log_odds, -MAX_LOG_ODDS), MAX_LOG_ODDS)))
