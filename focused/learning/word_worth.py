"""What words have been worth so far in this crawl.

A word shares in the relevance of what it stood on: the words of a followed
link in that of the page it led to, the words of a page in its own. So the
words of host, directory and subject tell soon where the topic is, whatever the
topic model was taught. Only judged relevance comes in here, never a label.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from focused.learning.tally import Tally, within_share

MAX_WORDS = 200_000
"""Words remembered, some 150 bytes each; beyond it those met once are forgotten."""

MAX_WORDS_NATS = 6.0

# A word is taken for one of the crawl's mean until it has led to as much relevance as this
# against it. Counted in relevance, not in cases: where hardly a page is on topic, the small
# relevances of a few links are noise.
_MEAN_RELEVANCE = 2.0


class WordWorth:
    """Counts cases and the sum of their relevance, by word."""

    def __init__(self, max_words: int = MAX_WORDS) -> None:
        self._max_words = max_words
        self._words: Tally[str] = Tally()
        self._all_cases = 0
        self._all_relevance = 0.0

    def __len__(self) -> int:
        return len(self._words)

    @property
    def rate(self) -> float:
        """The mean relevance of all cases, in (0, 1)."""
        return (self._all_relevance + 0.5) / (self._all_cases + 1.0)

    def learn(self, words: Collection[str], relevance: float) -> None:
        """One case: its words, each once, and its ``relevance`` in [0, 1]."""
        self._words.add(words, relevance)
        self._all_cases += 1
        self._all_relevance += relevance
        if len(self) > self._max_words:
            # Words met once go, and when that is too little, the longest known stay.
            self._words.keep(self._words.often(1)[: self._max_words // 2])

    def evidence(self, texts: Sequence[Sequence[str]]) -> NDArray[np.float64]:
        """How much each text's words speak for what they stand on, in nats within ±6, shape (n,).

        The sum over known words of their share's log-odds less the crawl's,
        over the root of their number: words of one text repeat each other.
        0: all unknown.
        """
        many = len(texts)
        lengths = np.fromiter(map(len, texts), np.intp, many)
        numbers = self._words.numbers_of(chain.from_iterable(texts), int(lengths.sum()))
        met = numbers >= 0
        owner = np.repeat(np.arange(many), lengths)[met]
        mean = within_share(self.rate)
        worth = self._words.log_odds(numbers[met], _MEAN_RELEVANCE, _MEAN_RELEVANCE / mean)
        total = np.bincount(owner, worth - math.log(mean / (1.0 - mean)), minlength=many)
        told = total / np.sqrt(np.maximum(np.bincount(owner, minlength=many), 1))
        return np.minimum(np.maximum(told, -MAX_WORDS_NATS), MAX_WORDS_NATS)

    def evidence_of(self, text: Sequence[str]) -> float:
        """:meth:`evidence` of one short text, for which arrays are not worth their making."""
        mean = within_share(self.rate)
        of_mean, cases = math.log(mean / (1.0 - mean)), _MEAN_RELEVANCE / mean
        told = [self._words.log_odds_of(word, _MEAN_RELEVANCE, cases) for word in text]
        worths = [each - of_mean for each in told if each is not None]
        if not worths:
            return 0.0
        total = sum(worths) / math.sqrt(len(worths))
        return max(-MAX_WORDS_NATS, min(MAX_WORDS_NATS, total))

    def state(self) -> Any:
        """All that is known, as plain data; see :meth:`restored`."""
        return [self._all_cases, self._all_relevance, list(self._words), *self._words.counts()]

    @classmethod
    def restored(cls, state: Any, max_words: int = MAX_WORDS) -> WordWorth:
        """What :meth:`state` gave, in the same order of words."""
        worth = cls(max_words)
        worth._all_cases, worth._all_relevance, *words = state
        worth._words = Tally.restored(*words)
        return worth
