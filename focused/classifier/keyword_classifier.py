"""A classifier that knows nothing but keywords: what a topic begins with, before there are samples."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from math import ceil

import numpy as np
from numpy.typing import NDArray

from focused.classifier.topic_classifier import CachedTextScores
from focused.directory.background_samples import background_samples
from focused.errors import ConfigurationError
from focused.labels.label import role_of
from focused.text.documents import Vocabulary, page_words
from focused.text.tokens import tokenize
from focused.web.page import Classification, Page

MIN_CLASSIFIED_WORDS = 5
"""Pages with fewer words are not judged."""

_HEAD_FACTOR = 3.0  # a keyword in title or headings counts as so many in the text
_HALF_SATURATION = 1.0  # so many times make half of what a keyword can tell
_WORDS_PER_HIT = 500  # a long page must repeat a keyword as often as a short one
_FULL_RARITY = 1.0  # so many rare keywords, told wholly, leave no doubt
_NATS_PER_KEYWORD = 2.0
_MAX_NATS = 4.0


class KeywordClassifier:
    """A :class:`focused.classifier.topic_classifier.TopicClassifier` by how much a page speaks of keywords.

    Its relevance is a rank in [0, 1], not a probability: nothing was there to calibrate it on.
    """

    threshold = 0.25

    def __init__(self, keywords: Iterable[str]) -> None:
        """Each keyword is a word or a phrase; one that ends in ``*`` is a beginning.

        One counts the less the more texts of the general background have it. Raises
        :class:`ConfigurationError` where one has no word, and without any.
        """
        self._phrases = _parse_keywords(keywords)
        background = _background_words()
        self._rarity = [_phrase_rarity(phrase, background) for phrase in self._phrases]
        self._cache = CachedTextScores(self._score_texts)

    def classify(self, page: Page) -> Classification:
        """Judge one page by its keywords, in the head and in the text."""
        text, head = page_words(page)
        if len(text) + len(head) < MIN_CLASSIFIED_WORDS:
            return Classification(0.0, on_topic=False, known=False)
        scale = min(1.0, _WORDS_PER_HIT / max(len(text), 1))
        told = 0.0
        for phrase, rarity in zip(self._phrases, self._rarity, strict=True):
            hits = scale * phrase.count(text) + _HEAD_FACTOR * phrase.count(head)
            told += rarity * hits / (hits + _HALF_SATURATION)
        relevance = min(told / min(sum(self._rarity), _FULL_RARITY), 1.0)
        return Classification(relevance, relevance >= self.threshold)

    def score_texts(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Evidence of short texts, shape (n,), in nats: two for each rare keyword that is in it."""
        return self._cache.get(texts)

    def _score_texts(self, texts: Sequence[str]) -> NDArray[np.float64]:
        tokens = [tokenize(text) for text in texts]
        rarity = np.array(self._rarity)
        found = [[phrase.count(each) > 0 for phrase in self._phrases] for each in tokens]
        told = np.array(found, dtype=float).reshape(len(texts), len(rarity)) @ rarity
        return np.asarray(np.minimum(_NATS_PER_KEYWORD * told, _MAX_NATS))


class KeywordWeights:
    """The keywords as weights of single words, for a linear classifier.

    Each word of a phrase gets its share of the phrase's weight, so a phrase whose words stand
    apart counts as if they stood together.
    """

    def __init__(self, keywords: Iterable[str]) -> None:
        """Raises :class:`ConfigurationError` as :class:`KeywordClassifier` does."""
        self._phrases = _parse_keywords(keywords)
        self._background = _background_words()

    def words_among(self, known: Iterable[str]) -> frozenset[str]:
        """The words that a keyword has, among ``known`` and those of the general background."""
        whole = {word for phrase in self._phrases for word in phrase.whole_words}
        prefixes = tuple(begin for phrase in self._phrases for begin in phrase.prefixes)
        candidates = frozenset(known).union(*self._background)
        found = (word for word in candidates if word.startswith(prefixes)) if prefixes else ()
        return frozenset((*whole, *found))

    def of(self, vocabulary: Vocabulary) -> NDArray[np.float64]:
        """A weight >= 0 for each word of ``vocabulary``, shape (V,), 0 for all others.

        The weight is divided by the word's inverse document frequency among the samples: what
        the samples have in common may well be the topic.
        """
        weights = np.zeros(len(vocabulary))
        for phrase in self._phrases:
            share = _phrase_rarity(phrase, self._background) / phrase.length
            for place, word in enumerate(vocabulary.words):
                if phrase.has(word):
                    weights[place] = max(weights[place], share / float(vocabulary.idf[place]))
        return weights


def _parse_keywords(keywords: Iterable[str]) -> list[_Phrase]:
    phrases = [_Phrase(keyword) for keyword in keywords]
    if not phrases:
        raise ConfigurationError("training.keywords: give at least one keyword")
    return phrases


@cache
def _background_words() -> tuple[frozenset[str], ...]:
    return tuple(frozenset(tokenize(sample.text)) for sample in background_samples())


class _Phrase:
    """Words in a row; the last may be a beginning."""

    def __init__(self, keyword: str) -> None:
        self._words = tokenize(keyword.rstrip("* "))
        if not self._words:
            raise ConfigurationError(f"training.keywords: {keyword!r} has no word of two letters")
        self._is_prefix = keyword.rstrip().endswith("*") or _is_single_unspaced_char(
            self._words[-1]
        )

    @property
    def length(self) -> int:
        """How many words it has."""
        return len(self._words)

    @property
    def whole_words(self) -> tuple[str, ...]:
        """Its words that must stand as they are."""
        return tuple(self._words[:-1] if self._is_prefix else self._words)

    @property
    def prefixes(self) -> tuple[str, ...]:
        """Its last word, where that is the beginning of words."""
        return tuple(self._words[-1:] if self._is_prefix else ())

    def has(self, word: str) -> bool:
        """Whether ``word`` is one of its words."""
        return word in self.whole_words or word.startswith(self.prefixes or ("\0",))

    def count(self, tokens: list[str]) -> int:
        """How often it stands in ``tokens``."""
        *before, last = self._words
        matches = last.__eq__ if not self._is_prefix else lambda token: token.startswith(last)
        ends = (i for i, token in enumerate(tokens) if matches(token))
        return sum(_is_preceded_by(before, tokens, end) for end in ends)

    def occurs_in(self, bag: frozenset[str]) -> bool:
        """Whether all its words are in ``bag``, in whatever order."""
        *before, last = self._words
        if not bag.issuperset(before):
            return False
        return any(token.startswith(last) for token in bag) if self._is_prefix else last in bag


def _is_single_unspaced_char(word: str) -> bool:
    """Whether it is one character of a script without spaces, whose texts give pairs of them."""
    return len(word) == 1 and len(tokenize(word * 3)) > 1


def _phrase_rarity(phrase: _Phrase, background: Sequence[frozenset[str]]) -> float:
    """How much it tells, in (0, 1]: its inverse document frequency, over that of no text's."""
    texts = sum(phrase.occurs_in(bag) for bag in background)
    most = math.log(len(background) + 2)
    return math.log((len(background) + 2) / (texts + 1)) / most


def _is_preceded_by(before: list[str], tokens: list[str], end: int) -> bool:
    start = end - len(before)
    return start >= 0 and tokens[start:end] == before


MAX_PROPOSED_GOOD = 60
MAX_PROPOSED_OTHER = 180

# Of the pages found, the shares that are proposed: few good ones, for half of the next best are
# wrong, and many others, for neighbours tell more than the general background. Measured on ten
# topics that benchmarks/topic_from_keywords.py does not have; flat from an eighth to a third.
_GOOD_SHARE, _OTHER_SHARE = 0.2, 0.5
_MIN_GOOD = 12  # of a small crawl more than a fifth
_MAX_OTHER_RELEVANCE = 0.5
"""From this relevance on no page is proposed as an other, be all pages better."""


@dataclass(frozen=True, slots=True)
class ProposedSamples:
    """Pages with the relevance that the keywords give them, in [0, 1], most telling first.

    ``seeds`` are those that speak of a keyword at all: others are hubs, perhaps.
    """

    seeds: tuple[Page, ...]
    good: tuple[tuple[Page, float], ...]
    other: tuple[tuple[Page, float], ...]


def propose_samples(
    judged: Iterable[tuple[Page, float]], seeds: Collection[str], threshold: float
) -> ProposedSamples:
    """The best of those from ``threshold`` on as good, the worst as other; ``seeds`` are URLs.

    Around a good seed nearly all pages have a keyword; those with the fewest are others
    nevertheless, so that the classifier learns to tell the topic from its neighbours. None of
    the pages found is proposed that is the evaluation set's (:mod:`focused.labels.label`):
    a model that has learned from it cannot be measured by it.
    """
    ranked = sorted(judged, key=lambda each: (-each[1], each[0].url))
    found = [
        each for each in ranked if each[0].url not in seeds and role_of(each[0].url) == "training"
    ]
    most_good = max(ceil(_GOOD_SHARE * len(found)), _MIN_GOOD)
    most_other = ceil(_OTHER_SHARE * len(found))
    good = [each for each in found if each[1] >= threshold][:most_good]
    rest = found[len(good) :]
    other = [each for each in reversed(rest) if each[1] < _MAX_OTHER_RELEVANCE][:most_other]
    return ProposedSamples(
        seeds=tuple(page for page, relevance in ranked if page.url in seeds and relevance > 0.0),
        good=tuple(good[:MAX_PROPOSED_GOOD]),
        other=tuple(other[:MAX_PROPOSED_OTHER]),
    )
