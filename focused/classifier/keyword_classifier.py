"""Keywords instead of samples: a classifier, word weights, and proposed samples.

A topic can start from keywords alone. :class:`KeywordClassifier` guides its first crawl,
:func:`propose_samples` selects samples from the crawled pages, and :class:`KeywordWeights`
adds the keywords to the trained classifier (:mod:`focused.classifier.page_model`).
"""

from __future__ import annotations

import math
import sys
from bisect import bisect_left
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from math import ceil
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from focused.classifier.topic_classifier import CachedTextScores
from focused.directory.sample_set import background_samples
from focused.errors import ConfigurationError
from focused.labels.label_file import role_of
from focused.text.documents import Vocabulary, page_words
from focused.text.static_embedding import StaticEmbedding
from focused.text.tokens import tokenize
from focused.web.page import Classification, Page

MIN_CLASSIFIED_WORDS = 5
"""Pages with fewer words are not classified."""

_HEAD_FACTOR = 3.0  # a keyword in title or headings counts as this many in the text
_HALF_SATURATION = 1.0  # this many hits give half of a keyword's maximum
_WORDS_PER_HIT = 500  # hits are counted per this many words
_FULL_RARITY = 1.0  # total rarity that gives relevance 1
_NATS_PER_KEYWORD = 2.0
_MAX_NATS = 4.0
_PREFIX_WORDS = 12  # a prefix means this many of the words that begin with it


class KeywordClassifier:
    """A topic classifier that counts keywords.

    Its relevance is a rank in [0, 1], not a probability: there is no data to calibrate it.
    """

    threshold = 0.25

    def __init__(self, keywords: Iterable[str]) -> None:
        """A keyword is a word, a phrase, or a prefix that ends in ``*``.

        A keyword weighs less the more texts of the general background contain it. Raises
        :class:`ConfigurationError` without keywords, or for one without a word.
        """
        self._phrases = _parse_keywords(keywords)
        self._rarity = [_phrase_rarity(phrase) for phrase in self._phrases]
        self._cache = CachedTextScores(self._score_texts)

    def classify(self, page: Page) -> Classification:
        """Classify one page by the keywords in its head and text."""
        text, head = page_words(page)
        if len(text) + len(head) < MIN_CLASSIFIED_WORDS:
            return Classification(0.0, on_topic=False, known=False)
        relevance = self._relevance(text, head, ())
        return Classification(relevance, relevance >= self.threshold)

    def relevance_without_links(self, page: Page) -> float:
        """Return the relevance in [0, 1] by the keywords outside of the page's links.

        An index has its keywords in its links: it leads to the topic and is not about it.
        """
        text, head = page_words(page)
        if len(text) + len(head) < MIN_CLASSIFIED_WORDS:
            return 0.0
        return self._relevance(text, head, [tokenize(link.anchor) for link in page.links])

    def _relevance(self, text: list[str], head: list[str], left_out: Sequence[list[str]]) -> float:
        scale = min(1.0, _WORDS_PER_HIT / max(len(text), 1))
        score = 0.0
        for phrase, rarity in zip(self._phrases, self._rarity, strict=True):
            in_text = max(phrase.count(text) - sum(map(phrase.count, left_out)), 0)
            hits = scale * in_text + _HEAD_FACTOR * phrase.count(head)
            score += rarity * hits / (hits + _HALF_SATURATION)
        return min(score / min(sum(self._rarity), _FULL_RARITY), 1.0)

    def score_texts(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return log-odds of short texts, shape (n,): up to two per keyword in the text."""
        return self._cache.get(texts)

    def _score_texts(self, texts: Sequence[str]) -> NDArray[np.float64]:
        tokens = [tokenize(text) for text in texts]
        rarity = np.array(self._rarity)
        found = [[phrase.count(each) > 0 for phrase in self._phrases] for each in tokens]
        score = np.array(found, dtype=float).reshape(len(texts), len(rarity)) @ rarity
        return np.asarray(np.minimum(_NATS_PER_KEYWORD * score, _MAX_NATS))


class KeywordWeights:
    """The keywords as weights of single words, for a linear classifier.

    Each word of a phrase gets an equal share of the phrase's weight, whether or not the words
    are adjacent.
    """

    def __init__(self, keywords: Iterable[str]) -> None:
        """Raises :class:`ConfigurationError` as :class:`KeywordClassifier` does."""
        self._phrases = _parse_keywords(keywords)

    def words_among(self, known: Iterable[str]) -> frozenset[str]:
        """Return the words of ``known`` and of the general background that a keyword matches."""
        whole = {word for phrase in self._phrases for word in phrase.whole_words}
        prefixes = tuple(begin for phrase in self._phrases for begin in phrase.prefixes)
        if not prefixes:
            return frozenset(whole)
        found = (word for word in known if word.startswith(prefixes))
        return frozenset((*whole, *found)).union(*map(_background_words_from, prefixes))

    def of(self, vocabulary: Vocabulary) -> NDArray[np.float64]:
        """Return a weight >= 0 per word of ``vocabulary``, shape (V,).

        Weights are divided by the words' inverse document frequencies in the samples: words common
        to all samples are likely to be the topic.
        """
        weights = np.zeros(len(vocabulary))
        for phrase in self._phrases:
            share = _phrase_rarity(phrase) / phrase.length
            for place, word in enumerate(vocabulary.words):
                if phrase.has(word):
                    weights[place] = max(weights[place], share / float(vocabulary.idf[place]))
        return weights

    def direction(self, embedding: StaticEmbedding) -> NDArray[np.float64]:
        """Return the unit vector of what the keywords mean, shape (d,); zero if none is known."""
        total = np.zeros(embedding.dimensions)
        for phrase in self._phrases:
            words = list(phrase.whole_words)
            for prefix in phrase.prefixes:
                # Frequent words come first.
                words += [one for one in embedding.pieces if one.startswith(prefix)][:_PREFIX_WORDS]
            total += _to_unit_length(embedding.embed(words, 1).sum(axis=0, dtype=np.float64))
        return _to_unit_length(total)


def _to_unit_length(vector: NDArray[np.float64]) -> NDArray[np.float64]:
    return vector / (math.sqrt(vector @ vector) or 1.0)


def _parse_keywords(keywords: Iterable[str]) -> list[_Phrase]:
    phrases = [_Phrase(keyword) for keyword in keywords]
    if not phrases:
        raise ConfigurationError("training.keywords: give at least one keyword")
    return phrases


@cache
def _background_words() -> tuple[frozenset[str], ...]:
    return tuple(frozenset(tokenize(sample.text)) for sample in background_samples())


@cache
def _background_vocabulary() -> list[str]:
    return sorted(frozenset().union(*_background_words()))


def _background_words_from(prefix: str) -> list[str]:
    """Return the words of the general background that begin with ``prefix``."""
    words = _background_vocabulary()
    return words[bisect_left(words, prefix) : bisect_left(words, prefix + chr(sys.maxunicode))]


class _Phrase:
    """Consecutive words; the last may be a prefix."""

    def __init__(self, keyword: str) -> None:
        self._words = tokenize(keyword.rstrip("* "))
        if not self._words:
            raise ConfigurationError(f"training.keywords: {keyword!r} has no word of two letters")
        self._is_prefix = keyword.rstrip().endswith("*") or _is_single_unspaced_char(
            self._words[-1]
        )

    @property
    def length(self) -> int:
        """Number of words."""
        return len(self._words)

    @property
    def whole_words(self) -> tuple[str, ...]:
        """Words that must match exactly."""
        return tuple(self._words[:-1] if self._is_prefix else self._words)

    @property
    def prefixes(self) -> tuple[str, ...]:
        """The last word, if it is a prefix."""
        return tuple(self._words[-1:] if self._is_prefix else ())

    def has(self, word: str) -> bool:
        """Whether ``word`` matches one of its words."""
        return word in self.whole_words or word.startswith(self.prefixes or ("\0",))

    def count(self, tokens: list[str]) -> int:
        """Return how often it occurs in ``tokens``."""
        *before, last = self._words
        matches = last.__eq__ if not self._is_prefix else lambda token: token.startswith(last)
        ends = (i for i, token in enumerate(tokens) if matches(token))
        return sum(_is_preceded_by(before, tokens, end) for end in ends)

    def count_background_texts(self) -> int:
        """Return how many texts of the general background have all its words, in any order."""
        *before, last = self._words
        ends = frozenset(_background_words_from(last) if self._is_prefix else (last,))
        return sum(
            bag.issuperset(before) and not bag.isdisjoint(ends) for bag in _background_words()
        )


def _is_single_unspaced_char(word: str) -> bool:
    """Whether it is one character of a script that is tokenised to bigrams."""
    return len(word) == 1 and len(tokenize(word * 3)) > 1


def _phrase_rarity(phrase: _Phrase) -> float:
    """Return its relative inverse document frequency in the background, in (0, 1]."""
    size = len(_background_words()) + 2
    return math.log(size / (phrase.count_background_texts() + 1)) / math.log(size)


def _is_preceded_by(before: list[str], tokens: list[str], end: int) -> bool:
    start = end - len(before)
    return start >= 0 and tokens[start:end] == before


MAX_PROPOSED_GOOD = 60
MAX_PROPOSED_OTHER = 180

# Proposed shares of the pages found: few good ones, because half of the next best are wrong, and
# many others, because neighbours are more informative than the general background. Measured on
# ten topics not in benchmarks/topic_from_keywords.py; flat from an eighth to a third.
_GOOD_SHARE, _OTHER_SHARE = 0.2, 0.5
_MIN_GOOD = 12  # even if that is a larger share of a small crawl
_MAX_OTHER_RELEVANCE = 0.5
"""Pages from this relevance on are never proposed as others."""


@dataclass(frozen=True, slots=True)
class ProposedSamples:
    """Proposed pages, most informative first.

    ``seeds`` are those that contain a keyword; seeds without are probably hubs.
    """

    seeds: tuple[Page, ...]
    good: tuple[Page, ...]
    other: tuple[Page, ...]


class RatedPage(NamedTuple):
    """A page with the keywords' relevance in [0, 1]; ``own`` is that without its links."""

    page: Page
    relevance: float
    own: float


def propose_samples(
    rated: Iterable[RatedPage], seeds: Collection[str], threshold: float
) -> ProposedSamples:
    """Propose the best pages from ``threshold`` on as good, the worst as others.

    The best are those with keywords outside of their links: indexes are not about the topic.
    ``seeds`` are URLs. Pages around a good seed nearly all contain a keyword; those with the
    fewest still become others, so that the classifier learns to separate the topic from its
    neighbours. Pages reserved for evaluation are not proposed.
    """
    ranked = sorted(rated, key=lambda each: (-each.relevance, each.page.url))
    found = [
        each
        for each in ranked
        if each.page.url not in seeds and role_of(each.page.url) == "training"
    ]
    most_good = min(max(ceil(_GOOD_SHARE * len(found)), _MIN_GOOD), MAX_PROPOSED_GOOD)
    most_other = min(ceil(_OTHER_SHARE * len(found)), MAX_PROPOSED_OTHER)
    # Stable: of equals the more relevant comes first.
    best = sorted((each for each in found if each.own >= threshold), key=lambda each: -each.own)
    good = tuple(each.page for each in best[:most_good])
    chosen = {page.url for page in good}
    rest = [each for each in found if each.page.url not in chosen]
    other = [each.page for each in reversed(rest) if each.relevance < _MAX_OTHER_RELEVANCE]
    return ProposedSamples(
        seeds=tuple(each.page for each in ranked if each.page.url in seeds and each.relevance),
        good=good,
        other=tuple(other[:most_other]),
    )
