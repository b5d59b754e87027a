"""A judge that knows nothing but keywords: what a topic begins with, before there are samples."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from focused.directory.background import background_samples
from focused.errors import ConfigurationError
from focused.learning.documents import page_words
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
        self._phrases = [_Phrase(keyword) for keyword in keywords]
        if not self._phrases:
            raise ConfigurationError("training.keywords: give at least one keyword")
        background = [frozenset(words(sample.text)) for sample in background_samples()]
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


class _Phrase:
    """Words in a row; the last may be a beginning."""

    def __init__(self, keyword: str) -> None:
        self._words = words(keyword.rstrip("* "))
        if not self._words:
            raise ConfigurationError(f"training.keywords: {keyword!r} has no word of two letters")
        self._is_beginning = keyword.rstrip().endswith("*") or _is_half_a_pair(self._words[-1])

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
