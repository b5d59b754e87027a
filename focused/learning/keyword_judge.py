"""A judge that knows nothing but keywords: what a topic begins with, before there are samples."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from focused.directory.background import background_samples
from focused.errors import ConfigurationError
from focused.learning.documents import Vocabulary, page_words
from focused.learning.remembered_verdicts import RememberedVerdicts
from focused.learning.tokens import words
from focused.web.page import Judgement, Page

MIN_WORDS = 5
"""Pages with fewer words are not judged."""

_HEAD = 3.0  # a keyword in title or headings counts as so many in the text
_HALF = 1.0  # so many times make half of what a keyword can tell
_PER_WORDS = 500  # a long page must repeat a keyword as often as a short one
_ENOUGH = 1.0  # so many rare keywords, told wholly, leave no doubt
_NATS = 2.0
_MAX_NATS = 4.0


class KeywordJudge:
    """A :class:`focused.learning.protocols.TopicJudge` by how much a page speaks of keywords.

    Its relevance is a rank in [0, 1], not a probability: nothing was there to calibrate it on.
    """

    threshold = 0.25

    def __init__(self, keywords: Iterable[str]) -> None:
        """Each keyword is a word or a phrase; one that ends in ``*`` is a beginning.

        One counts the less the more texts of the general background have it. Raises
        :class:`ConfigurationError` where one has no word, and without any.
        """
        self._phrases = _phrases_of(keywords)
        background = _background_words()
        self._rarity = [_rarity(phrase, background) for phrase in self._phrases]
        self._said = RememberedVerdicts(self._verdicts)

    def judge(self, page: Page) -> Judgement:
        """Judge one page by its keywords, in the head and in the text."""
        text, head = page_words(page)
        if len(text) + len(head) < MIN_WORDS:
            return Judgement(0.0, on_topic=False, known=False)
        scale = min(1.0, _PER_WORDS / max(len(text), 1))
        told = 0.0
        for phrase, rarity in zip(self._phrases, self._rarity, strict=True):
            hits = scale * phrase.count(text) + _HEAD * phrase.count(head)
            told += rarity * hits / (hits + _HALF)
        relevance = min(told / min(sum(self._rarity), _ENOUGH), 1.0)
        return Judgement(relevance, relevance >= self.threshold)

    def verdicts(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Evidence of short texts, shape (n,), in nats: two for each rare keyword that is in it."""
        return self._said.of(texts)

    def _verdicts(self, texts: Sequence[str]) -> NDArray[np.float64]:
        tokens = [words(text) for text in texts]
        rarity = np.array(self._rarity)
        found = [[phrase.count(each) > 0 for phrase in self._phrases] for each in tokens]
        told = np.array(found, dtype=float).reshape(len(texts), len(rarity)) @ rarity
        return np.asarray(np.minimum(_NATS * told, _MAX_NATS))


class KeywordWeights:
    """The keywords as weights of single words, for a linear classifier.

    Each word of a phrase gets its share of the phrase's weight, so a phrase whose words stand
    apart counts as if they stood together.
    """

    def __init__(self, keywords: Iterable[str]) -> None:
        """Raises :class:`ConfigurationError` as :class:`KeywordJudge` does."""
        self._phrases = _phrases_of(keywords)
        self._background = _background_words()

    def words_among(self, known: Iterable[str]) -> frozenset[str]:
        """The words that a keyword has, among ``known`` and those of the general background."""
        whole = {word for phrase in self._phrases for word in phrase.whole_words}
        beginnings = tuple(begin for phrase in self._phrases for begin in phrase.beginnings)
        candidates = frozenset(known).union(*self._background)
        found = (word for word in candidates if word.startswith(beginnings)) if beginnings else ()
        return frozenset((*whole, *found))

    def of(self, vocabulary: Vocabulary) -> NDArray[np.float64]:
        """A weight >= 0 for each word of ``vocabulary``, shape (V,), 0 for all others.

        The weight is divided by the word's inverse document frequency among the samples: what
        the samples have in common may well be the topic.
        """
        weights = np.zeros(len(vocabulary))
        for phrase in self._phrases:
            share = _rarity(phrase, self._background) / phrase.length
            for place, word in enumerate(vocabulary.words):
                if phrase.has(word):
                    weights[place] = max(weights[place], share / float(vocabulary.idf[place]))
        return weights


def _phrases_of(keywords: Iterable[str]) -> list[_Phrase]:
    phrases = [_Phrase(keyword) for keyword in keywords]
    if not phrases:
        raise ConfigurationError("training.keywords: give at least one keyword")
    return phrases


@cache
def _background_words() -> tuple[frozenset[str], ...]:
    return tuple(frozenset(words(sample.text)) for sample in background_samples())


class _Phrase:
    """Words in a row; the last may be a beginning."""

    def __init__(self, keyword: str) -> None:
        self._words = words(keyword.rstrip("* "))
        if not self._words:
            raise ConfigurationError(f"training.keywords: {keyword!r} has no word of two letters")
        self._is_beginning = keyword.rstrip().endswith("*") or _is_half_a_pair(self._words[-1])

    @property
    def length(self) -> int:
        """How many words it has."""
        return len(self._words)

    @property
    def whole_words(self) -> tuple[str, ...]:
        """Its words that must stand as they are."""
        return tuple(self._words[:-1] if self._is_beginning else self._words)

    @property
    def beginnings(self) -> tuple[str, ...]:
        """Its last word, where that is the beginning of words."""
        return tuple(self._words[-1:] if self._is_beginning else ())

    def has(self, word: str) -> bool:
        """Whether ``word`` is one of its words."""
        return word in self.whole_words or word.startswith(self.beginnings or ("\0",))

    def count(self, tokens: list[str]) -> int:
        """How often it stands in ``tokens``."""
        *before, last = self._words
        matches = last.__eq__ if not self._is_beginning else lambda token: token.startswith(last)
        ends = (i for i, token in enumerate(tokens) if matches(token))
        return sum(_stands_before(before, tokens, end) for end in ends)

    def is_in(self, bag: frozenset[str]) -> bool:
        """Whether all its words are in ``bag``, in whatever order."""
        *before, last = self._words
        if not bag.issuperset(before):
            return False
        return any(token.startswith(last) for token in bag) if self._is_beginning else last in bag


def _is_half_a_pair(word: str) -> bool:
    """Whether it is one character of a script without spaces, whose texts give pairs of them."""
    return len(word) == 1 and len(words(word * 3)) > 1


def _rarity(phrase: _Phrase, background: Sequence[frozenset[str]]) -> float:
    """How much it tells, in (0, 1]: its inverse document frequency, over that of no text's."""
    texts = sum(phrase.is_in(bag) for bag in background)
    most = math.log(len(background) + 2)
    return math.log((len(background) + 2) / (texts + 1)) / most


def _stands_before(before: list[str], tokens: list[str], end: int) -> bool:
    start = end - len(before)
    return start >= 0 and tokens[start:end] == before
