"""What words have been worth so far in this crawl.

A word shares in the relevance of what it stood on: the words of a followed
link in that of the page it led to, the words of a page in its own. So the
words of host, directory and subject tell soon where the topic is, whatever the
topic model was taught. Only judged relevance comes in here, never a label.

Words are counted in a table of fixed length by their hash (Weinberger, Dasgupta,
Langford, Smola, Attenberg 2009, "Feature hashing for large scale multitask
learning"): two words that share a slot share their worth.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from focused.learning.tally import log_odds_of_shares, within_share
from focused.learning.word_hashes import Hashes, Words

SLOT_BITS = 20
"""A million slots of 8 bytes: of 50,000 words one in twenty shares its own."""

MAX_WORDS_NATS = 6.0

# A word is taken for one of the crawl's mean until it has led to as much relevance as this
# against it. Counted in relevance, not in cases: where hardly a page is on topic, the small
# relevances of a few links are noise.
_MEAN_RELEVANCE = 2.0
_BITS_LEFT = 32 - SLOT_BITS
_SHIFT = np.uint32(_BITS_LEFT)


class WordWorth:
    """Counts cases and the sum of their relevance, by word."""

    def __init__(self) -> None:
        # A word's cases, and as imaginary part their relevance: one number to fetch, and to add.
        self._counts = np.zeros(1 << SLOT_BITS, np.complex64)
        self._all_cases = 0
        self._all_relevance = 0.0

    @property
    def rate(self) -> float:
        """The mean relevance of all cases, in (0, 1)."""
        return (self._all_relevance + 0.5) / (self._all_cases + 1.0)

    def learn(self, words: Hashes, relevance: float) -> None:
        """One case: its words, each of which counts once, and its ``relevance`` in [0, 1]."""
        # What is added to a slot twice in one statement is added once.
        self._counts[_slots(words)] += complex(1.0, relevance)
        self._all_cases += 1
        self._all_relevance += relevance

    def evidence(self, texts: Words) -> NDArray[np.float64]:
        """How much each text's words speak for what they stand on, in nats within ±6, shape (m,).

        The sum over known words of their share's log-odds less the crawl's,
        over the root of their number: words of one text repeat each other.
        0: all unknown.
        """
        many = len(texts.lengths)
        counts = self._counts.take(_slots(texts.hashes))
        met = counts.real > 0.0
        counts, owners = counts[met].astype(np.complex128), texts.owners[met]
        mean = within_share(self.rate)
        share = (counts.imag + _MEAN_RELEVANCE) / (counts.real + _MEAN_RELEVANCE / mean)
        worth = log_odds_of_shares(share) - math.log(mean / (1.0 - mean))
        total = np.bincount(owners, worth, minlength=many)
        told = total / np.sqrt(np.maximum(np.bincount(owners, minlength=many), 1))
        return np.minimum(np.maximum(told, -MAX_WORDS_NATS), MAX_WORDS_NATS)

    def evidence_of(self, words: Sequence[int]) -> float:
        """:meth:`evidence` of one short text, for which arrays are not worth their making."""
        mean = within_share(self.rate)
        of_mean, cases = math.log(mean / (1.0 - mean)), _MEAN_RELEVANCE / mean
        total, many = 0.0, 0
        for word in words:
            met = self._counts.item(word >> _BITS_LEFT)
            if met:
                share = within_share((met.imag + _MEAN_RELEVANCE) / (met.real + cases))
                total += math.log(share / (1.0 - share)) - of_mean
                many += 1
        told = total / math.sqrt(max(many, 1))
        return max(-MAX_WORDS_NATS, min(MAX_WORDS_NATS, told))

    def state(self) -> Any:
        """All that is known, as plain data; see :meth:`restored`."""
        met = np.flatnonzero(self._counts)
        counts = self._counts[met].astype("<c8").tobytes()
        return [self._all_cases, self._all_relevance, met.astype("<u4").tobytes(), counts]

    @classmethod
    def restored(cls, state: Any) -> WordWorth:
        """What :meth:`state` gave."""
        worth = cls()
        worth._all_cases, worth._all_relevance, met, counts = state
        worth._counts[np.frombuffer(met, "<u4")] = np.frombuffer(counts, "<c8")
        return worth


def _slots(hashes: Hashes) -> NDArray[np.intp]:
    return (hashes >> _SHIFT).astype(np.intp)
