"""The topic classifier: the protocol, the linear classifier and wrappers around classifiers.

:class:`LinearTopicClassifier` scores a page with the dot product of its document vector and
the word weights of :mod:`focused.classifier.estimators`, plus the score of what its first words
mean (:mod:`focused.classifier.semantic_scorer`). A calibration curve, fitted on
held-out hosts, turns the score into a probability. Naive Bayes over the taxonomy names the
most likely category.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from focused.classifier.calibration import CalibrationCurve, FloatArray, logit, temper_relevance
from focused.classifier.semantic_scorer import LeadScorer, SemanticScorer
from focused.kernels.word_vectors import text_scores
from focused.text.documents import DocumentVector, HashedPage, Vocabulary, hash_page
from focused.text.word_hashes import hash_texts_once
from focused.web.page import Classification, Page

if TYPE_CHECKING:
    import scipy.sparse as sp

    from focused.spam.spam_classifier import SpamClassifier

ROOT_NODE = -1
"""The parent of the topmost nodes of a taxonomy."""

MIN_KNOWN_WORDS = 5
"""A page with fewer distinct known words is not classified: its relevance is the prior."""

MAX_TEXT_SCORE = 6.0
MAX_LOG_ODDS = 7.0
"""A few hundred samples cannot tell 0.1% from 0.01%: relevance stays within 0.001 to 0.999."""

MAX_CACHED_TEXTS = 40_000
"""About 200 bytes per text. The cache is cleared when it is full."""


class TopicClassifier(Protocol):
    """Classifies fetched pages and scores short texts."""

    @property
    def threshold(self) -> float:
        """The relevance from which a page counts as on topic, in [0, 1]."""

    def classify(self, page: Page) -> Classification:
        """Classify one fetched page; must not raise for unusual content."""

    def score_texts(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return a log-odds score for each short text, shape (n,).

        Positive scores favour the topic. A text without known words scores 0: the topic's
        prior is not included, so that scores can be added.
        """


def score_meanings(classifier: TopicClassifier, texts: Sequence[str]) -> NDArray[np.float64]:
    """Return log-odds of short texts by the meaning of their words, shape (n,).

    0 for each text if the classifier has no method ``score_meanings``.
    """
    score = getattr(classifier, "score_meanings", None)
    return np.zeros(len(texts)) if score is None else score(texts)


def likeliest_category(classifier: TopicClassifier, page: Page) -> str:
    """Return the most likely category of a page, on topic or not.

    Empty if the classifier has no method ``likeliest_category``.
    """
    find = getattr(classifier, "likeliest_category", None)
    return "" if find is None else find(page)


@runtime_checkable
class HashedPageClassifier(TopicClassifier, Protocol):
    """A topic classifier that needs only the hashed words of a page."""

    def classify_hashed(self, page: HashedPage) -> Classification:
        """Classify one fetched page by its hashed words."""


@dataclass(frozen=True)
class Calibration:
    """Turns raw scores into probabilities, and says which pages are not classified.

    ``shift`` moves the log-odds of ``curve`` from the samples' share of good pages to
    ``prior``. ``verdict_slope`` (>= 0) scales the scores of short texts to log-odds. ``threshold``
    is compared with relevances before tempering. A page whose share of known words is below
    ``min_known_share`` is in another language.
    """

    curve: CalibrationCurve
    shift: float
    verdict_slope: float
    prior: float
    threshold: float
    min_known_share: float = 0.0


@dataclass(frozen=True)
class Taxonomy:
    """Naive Bayes over N nodes of a tree; the first C nodes are the categories.

    ``categories`` and ``good`` have C entries. ``parents[i]`` is the parent of node i, which
    comes after its children, or -1 for the root. ``log_prior`` has shape (N,),
    ``log_likelihood`` shape (N, V).
    """

    categories: tuple[str, ...]
    good: tuple[bool, ...]
    parents: tuple[int, ...]
    log_prior: NDArray[np.float32]
    log_likelihood: NDArray[np.float32]

    def likeliest(self, vector: DocumentVector) -> str:
        """Return the most likely category, good or not."""
        joint = self.log_likelihood[:, vector.ids] @ vector.values + self.log_prior
        # Flat: normalisation does not change the order.
        posterior = (
            joint if len(self._children_by_parent) == 1 else self._propagate(joint[:, None])[:, 0]
        )
        return self.categories[int(np.argmax(posterior[: len(self.categories)]))]

    def log_posteriors(self, rows: sp.csr_matrix) -> FloatArray:
        """Return the log posterior of each category for each row, shape (n, C)."""
        joint = np.asarray(rows @ self.log_likelihood.T.astype(np.float64) + self.log_prior)
        return self._propagate(joint.T).T

    @cached_property
    def _children_by_parent(self) -> tuple[tuple[int, NDArray[np.intp]], ...]:
        """Each parent with its children, root first."""
        above = np.array(self.parents)
        return tuple(
            (int(one), np.flatnonzero(above == one)) for one in _inner_nodes_top_down(above)
        )

    def _propagate(self, joint: FloatArray) -> FloatArray:
        """Return log posteriors of the categories, shape (C, n), from ``joint`` of shape (N, n)."""
        posterior = np.empty(joint.shape)
        for parent, children in self._children_by_parent:
            among = joint[children]
            posterior[children] = among - np.logaddexp.reduce(among, axis=0)
            if parent != ROOT_NODE:
                posterior[children] += posterior[parent]
        return posterior[: len(self.categories)]


def _inner_nodes_top_down(parents: NDArray[np.intp]) -> list[int]:
    """Return the nodes with children, parents first: numbers decrease along every path."""
    inner = sorted({*parents.tolist()} - {ROOT_NODE}, reverse=True)
    return [ROOT_NODE, *inner]


@dataclass(frozen=True)
class LinearTopicClassifier:
    """A trained linear :class:`TopicClassifier`.

    ``weights`` has shape (V,), one weight per word of the vocabulary. ``semantic``, for short
    texts, and ``lead``, for pages, are None without an embedding table. ``make_spam`` returns the
    spam classifier; None where the samples were too few to fit one.
    """

    vocabulary: Vocabulary
    weights: NDArray[np.float32]
    bias: float
    taxonomy: Taxonomy
    calibration: Calibration
    semantic: SemanticScorer | None = None
    lead: LeadScorer | None = None
    make_spam: Callable[[], SpamClassifier] | None = None

    @cached_property
    def spam(self) -> SpamClassifier | None:
        """The spam classifier, built at its first use."""
        return None if self.make_spam is None else self.make_spam()

    @cached_property
    def _word_scores(self) -> bytes:
        return _packed_scores(self.vocabulary, self.weights)

    @property
    def threshold(self) -> float:
        """The relevance from which a page counts as on topic, in [0, 1]."""
        return temper_relevance(self.calibration.threshold)

    def classify(self, page: Page) -> Classification:
        """Classify one page; a page with too few known words gets the prior."""
        return self.classify_hashed(hash_page(page))

    def classify_hashed(self, page: HashedPage) -> Classification:
        """Classify one page by its hashed words."""
        vector = self.vocabulary.vectorize_page(page)
        calibration = self.calibration
        has_few_words = len(vector.ids) < MIN_KNOWN_WORDS
        if has_few_words or vector.known_share < calibration.min_known_share:
            return Classification(calibration.prior, on_topic=False, known=False)
        probability = min(calibration.curve.at(self.decision_function(vector, page)), 1.0 - 1e-12)
        relevance = sigmoid(logit(probability) + calibration.shift)
        return Classification(
            temper_relevance(relevance),
            on_topic=relevance >= calibration.threshold,
            untempered=relevance,
        )

    def likeliest_category(self, page: Page) -> str:
        """Return the most likely category of a page, on topic or not."""
        return self.taxonomy.likeliest(self.vocabulary.vectorize_page(hash_page(page)))

    def decision_function(self, vector: DocumentVector, page: HashedPage) -> float:
        """Return the raw score of a page with its vector, before calibration."""
        of_words = float(self.weights[vector.ids] @ vector.values) + self.bias
        return of_words if self.lead is None else of_words + self.lead.raw_score(page)

    def score_texts(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return log-odds of short texts, shape (n,), within ±:data:`MAX_TEXT_SCORE`."""
        slope = self.calibration.verdict_slope
        return _score_by_words(self.vocabulary, self._word_scores, texts, slope, MAX_TEXT_SCORE)

    def score_meanings(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return log-odds of short texts by the meaning of their words, shape (n,)."""
        if self.semantic is None:
            return np.zeros(len(texts))
        return self.semantic.score_texts(texts)


def score_short_texts(
    vocabulary: Vocabulary, weights: NDArray[np.float32], texts: Sequence[str]
) -> NDArray[np.float64]:
    """Return the known words' summed weights over the root of their number, shape (n,).

    The root is a compromise between the sum (independent words) and the mean (words of a
    short text repeat each other). A text without known words scores 0.
    """
    scores = _packed_scores(vocabulary, weights)
    return _score_by_words(vocabulary, scores, texts, 1.0, math.inf)


def _packed_scores(vocabulary: Vocabulary, weights: NDArray[np.float32]) -> bytes:
    return (weights * vocabulary.idf).astype(np.float32).tobytes()


def _score_by_words(
    vocabulary: Vocabulary, scores: bytes, texts: Sequence[str], slope: float, most: float
) -> NDArray[np.float64]:
    hashes, lengths = hash_texts_once(texts)
    places = vocabulary.find_hashes(hashes)
    nats = text_scores(b"", places, lengths, scores, b"", 0.0, slope, most, {}, None)
    return np.frombuffer(nats)


def sigmoid(log_odds: float) -> float:
    """Return the probability of ``log_odds``, clipped to ±:data:`MAX_LOG_ODDS`."""
    return 1.0 / (1.0 + math.exp(-min(max(log_odds, -MAX_LOG_ODDS), MAX_LOG_ODDS)))


class SwappableClassifier:
    """Delegates to a :class:`TopicClassifier` that can be replaced between two pages."""

    def __init__(self, classifier: TopicClassifier, name: str = "") -> None:
        """``name`` identifies the model in the crawl's tables; "" for an unnamed one."""
        self._classifier = classifier
        self.name = name

    def swap(self, classifier: TopicClassifier, name: str) -> None:
        """Use ``classifier`` from the next page on."""
        self._classifier = classifier
        self.name = name

    @property
    def current(self) -> TopicClassifier:
        """The wrapped classifier; it may be sent to another process."""
        return self._classifier

    @property
    def threshold(self) -> float:
        """The relevance from which a page counts as on topic, in [0, 1]."""
        return self._classifier.threshold

    def classify(self, page: Page) -> Classification:
        """Classify one fetched page."""
        return self._classifier.classify(page)

    def score_texts(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return log-odds of short texts, shape (n,)."""
        return self._classifier.score_texts(texts)

    def score_meanings(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return log-odds of short texts by meaning, shape (n,)."""
        return score_meanings(self._classifier, texts)

    def likeliest_category(self, page: Page) -> str:
        """Return the most likely category of a page, on topic or not."""
        return likeliest_category(self._classifier, page)


class ConstantClassifier:
    """Gives every page relevance 0.5 and no classification: for crawls without a model."""

    threshold = 0.5

    def classify(self, page: Page) -> Classification:
        """Return relevance 0.5."""
        return Classification(0.5, on_topic=False, known=False)

    def score_texts(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return 0 for each text."""
        return np.zeros(len(texts))


class CachedTextScores:
    """Caches the scores of short texts: sites repeat their menus on every page."""

    def __init__(
        self,
        score_texts: Callable[[Sequence[str]], FloatArray],
        max_texts: int = MAX_CACHED_TEXTS,
    ) -> None:
        """``score_texts`` maps n texts to scores of shape (n,), each text on its own."""
        self._score_texts = score_texts
        self._max_texts = max_texts
        self._scores: dict[str, float] = {}

    def get(self, texts: Sequence[str]) -> FloatArray:
        """Return the scores of ``texts``, shape (n,)."""
        scores = self._scores
        if len(scores) > self._max_texts:
            scores.clear()
        new = [text for text in dict.fromkeys(texts) if text not in scores]
        if new:
            scores.update(zip(new, self._score_texts(new).tolist(), strict=True))
        return np.fromiter(map(scores.__getitem__, texts), np.float64, len(texts))
