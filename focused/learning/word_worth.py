"""What words have been worth so far in this crawl.

A word shares in the relevance of what it stood on: the words of a followed
link in that of the page it led to, the words of a page in its own. So the
words of host, directory and subject tell soon where the topic is, whatever the
topic model was taught. Only judged relevance comes in here, never a label.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

MAX_WORDS = 200_000
"""Words remembered, some 200 bytes each; beyond it those met once are forgotten."""

MAX_WORDS_NATS = 6.0

# A word is taken for one of the crawl's mean until it has led to as much relevance as this
# against it. Counted in relevance, not in cases: where hardly a page is on topic, the small
# relevances of a few links are noise.
_MEAN_RELEVANCE = 2.0
_SHARE_EDGE = 1e-4

WordRows = Sequence[tuple[str, int, float]]
"""Word, cases, sum of their relevance; the first row stands for all cases."""


class WordWorth:
    """Counts cases and the sum of their relevance, by word."""

    def __init__(self, max_words: int = MAX_WORDS) -> None:
        self._max_words = max_words
        self._cases: dict[str, int] = {}
        self._relevance: dict[str, float] = {}
        self._all_cases = 0
        self._all_relevance = 0.0
        # A page's links share most of their words; each lesson moves the worth of all words.
        self._worth = _Remembered(self._worth_of)
        self._set_mean()

    def __len__(self) -> int:
        return len(self._cases)

    @property
    def rate(self) -> float:
        """The mean relevance of all cases, in (0, 1)."""
        return (self._all_relevance + 0.5) / (self._all_cases + 1.0)

    def learn(self, words: Iterable[str], relevance: float) -> None:
        """One case: its words, each once, and its ``relevance`` in [0, 1]."""
        cases, sums = self._cases, self._relevance
        for word in words:
            cases[word] = cases.get(word, 0) + 1
            sums[word] = sums.get(word, 0.0) + relevance
        self._all_cases += 1
        self._all_relevance += relevance
        self._set_mean()
        if len(cases) > self._max_words:
            self._forget()

    def evidence(self, words: Iterable[str]) -> float:
        """How much the words speak for what they stand on, in nats within ±6; 0: all unknown.

        The sum over known words of their share's log-odds less the crawl's,
        over the root of their number: words of one text repeat each other.
        """
        known = [worth for worth in map(self._worth.__getitem__, words) if worth is not None]
        if not known:
            return 0.0
        total = sum(known) / math.sqrt(len(known))
        return max(-MAX_WORDS_NATS, min(MAX_WORDS_NATS, total))

    def rows(self) -> WordRows:
        """All that is known, to be kept; see :meth:`restored`."""
        of_words = ((word, n, self._relevance[word]) for word, n in self._cases.items())
        return [("", self._all_cases, self._all_relevance), *of_words]

    @classmethod
    def restored(cls, rows: WordRows, max_words: int = MAX_WORDS) -> WordWorth:
        """What :meth:`rows` gave, in the same order of words."""
        worth = cls(max_words)
        (_, worth._all_cases, worth._all_relevance), *of_words = rows
        worth._cases = {word: cases for word, cases, _ in of_words}
        worth._relevance = {word: relevance for word, _, relevance in of_words}
        worth._set_mean()
        return worth

    def _set_mean(self) -> None:
        mean = min(max(self.rate, _SHARE_EDGE), 1.0 - _SHARE_EDGE)
        self._mean_log_odds = math.log(mean / (1.0 - mean))
        self._mean_cases = _MEAN_RELEVANCE / mean
        self._worth.clear()

    def _worth_of(self, word: str) -> float | None:
        """What one word speaks for, in nats; None: it was not met."""
        cases = self._cases.get(word)
        if cases is None:
            return None
        share = (self._relevance[word] + _MEAN_RELEVANCE) / (cases + self._mean_cases)
        share = min(max(share, _SHARE_EDGE), 1.0 - _SHARE_EDGE)
        return math.log(share / (1.0 - share)) - self._mean_log_odds

    def _forget(self) -> None:
        """Make room: words met once go, and when that is too little, the longest known stay."""
        kept = [word for word, cases in self._cases.items() if cases > 1][: self._max_words // 2]
        self._cases = {word: self._cases[word] for word in kept}
        self._relevance = {word: self._relevance[word] for word in kept}


class _Remembered(dict[str, float | None]):
    """What a function says of words, each asked for once until cleared."""

    def __init__(self, of_word: Callable[[str], float | None]) -> None:
        super().__init__()
        self._of_word = of_word

    def __missing__(self, word: str) -> float | None:
        worth = self[word] = self._of_word(word)
        return worth
