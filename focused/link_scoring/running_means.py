"""Cases and the sum of their relevance, by place.

The counts lie in arrays, so that many are asked for at once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import repeat
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from focused.text.word_hashes import HashedTexts, WordHashes

_INITIAL_CAPACITY = 1_024
_MIN_MEAN = 1e-4

FloatArray = NDArray[np.float64]


class RunningMeans:
    """Counts by place; a place's number is its rank in the order in which places were met."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}
        # By number, with room for more than there are.
        self._cases: FloatArray = np.zeros(_INITIAL_CAPACITY)
        self._relevance: FloatArray = np.zeros(_INITIAL_CAPACITY)

    def __len__(self) -> int:
        return len(self._numbers)

    def add(self, place: int, relevance: float) -> None:
        """One case of ``relevance``."""
        number = self._numbers.setdefault(place, len(self._numbers))
        if number == len(self._cases):
            more = np.zeros(1 + len(self._cases) // 4)
            self._cases = np.concatenate([self._cases, more])
            self._relevance = np.concatenate([self._relevance, more])
        self._cases[number] += 1.0
        self._relevance[number] += relevance

    def indices_of(self, places: Sequence[int]) -> NDArray[np.intp]:
        """The places' numbers, shape (n,), -1 for those that were never met."""
        return np.fromiter(map(self._numbers.get, places, repeat(-1)), np.intp, len(places))

    def log_odds(self, numbers: NDArray[np.intp], relevance: float, cases: float) -> FloatArray:
        """Of the cases' mean relevance, by number, in nats, shape (n,).

        So many ``cases`` before the first, of so much ``relevance`` in all, hold it.
        """
        shares = (self._relevance[numbers] + relevance) / (self._cases[numbers] + cases)
        return log_odds_of_means(shares)

    def log_odds_of_key(self, place: int, relevance: float, cases: float) -> float | None:
        """:meth:`log_odds` of one place; None: it was never met."""
        number = self._numbers.get(place)
        if number is None:
            return None
        of_place = float(self._relevance[number]), float(self._cases[number])
        share = clip_mean((of_place[0] + relevance) / (of_place[1] + cases))
        return math.log(share / (1.0 - share))

    def forget(self, many: int) -> None:
        """Forget so many places, those that were met first."""
        self._numbers = _number_keys(list(self._numbers)[many:])
        self._cases = self._cases[many:].copy()
        self._relevance = self._relevance[many:].copy()

    def state(self) -> Any:
        """All that is known, as plain data; see :meth:`restored`."""
        known = len(self)
        places = np.fromiter(self._numbers, np.uint64, known).astype("<u8")
        cases, relevance = self._cases[:known], self._relevance[:known]
        return [places.tobytes(), cases.astype("<u4").tobytes(), relevance.astype("<f8").tobytes()]

    @classmethod
    def restored(cls, state: Any) -> RunningMeans:
        """What :meth:`state` gave, in the same order of places."""
        tally = cls()
        places, cases, relevance = state
        tally._numbers = _number_keys(np.frombuffer(places, "<u8").tolist())
        tally._cases = np.frombuffer(cases, "<u4").astype(np.float64)
        tally._relevance = np.frombuffer(relevance, "<f8").astype(np.float64)
        return tally


def clip_mean(mean: float) -> float:
    """A mean relevance in [0, 1], as far from 0 and 1 as those of places and words are held."""
    return min(max(mean, _MIN_MEAN), 1.0 - _MIN_MEAN)


def log_odds_of_means(shares: FloatArray) -> FloatArray:
    """Of mean relevances in [0, 1], held as :func:`clip_mean` does, in nats."""
    held = np.minimum(np.maximum(shares, _MIN_MEAN), 1.0 - _MIN_MEAN)
    return np.asarray(np.log(held / (1.0 - held)))


def _number_keys(places: Sequence[int]) -> dict[int, int]:
    return {place: number for number, place in enumerate(places)}


MAX_POSITIONS = 200_000
"""Places remembered, some 150 bytes each; beyond it the older half is forgotten."""

# A place is taken for one of the crawl's mean until it has had as many links as this.
_PRIOR_LINKS = 4.0
# A page's links stand in few places, for which arrays are not worth their making.
_MAX_SCALAR_KEYS = 16


class PositionMeans:
    """Counts followed links and the sum of their targets' relevance, by place."""

    def __init__(self) -> None:
        self._places = RunningMeans()

    def __len__(self) -> int:
        return len(self._places)

    def learn(self, place: int, relevance: float) -> None:
        """A link at ``place`` led to a page of ``relevance`` in [0, 1]."""
        self._places.add(place, relevance)
        if len(self) > MAX_POSITIONS:
            self._places.forget(MAX_POSITIONS // 2)

    def features(self, places: Sequence[int], mean: float) -> NDArray[np.float64]:
        """How much better each place is than ``mean``, in (0, 1), in nats; 0: unknown."""
        different = set(places)
        if len(different) <= _MAX_SCALAR_KEYS:
            told_of = {place: self.features_of(place, mean) for place in different}
            return np.array([told_of[place] for place in places])
        told = np.zeros(len(places))
        numbers = self._places.indices_of(places)
        met = numbers >= 0
        mean = clip_mean(mean)
        share = self._places.log_odds(numbers[met], _PRIOR_LINKS * mean, _PRIOR_LINKS)
        told[met] = share - math.log(mean / (1.0 - mean))
        return told

    def features_of(self, place: int, mean: float) -> float:
        """:meth:`features` of one place."""
        mean = clip_mean(mean)
        share = self._places.log_odds_of_key(place, _PRIOR_LINKS * mean, _PRIOR_LINKS)
        return 0.0 if share is None else share - math.log(mean / (1.0 - mean))

    def state(self) -> Any:
        """All that is known, as plain data; see :meth:`restored`."""
        return self._places.state()

    @classmethod
    def restored(cls, state: Any) -> PositionMeans:
        """What :meth:`state` gave, in the same order of places."""
        found = cls()
        found._places = RunningMeans.restored(state)
        return found


@lru_cache(8_192)
def position_key(*names: str) -> int:
    """A place's number."""
    return xxhash.xxh3_64_intdigest("\n".join(names).encode("utf-8", "surrogatepass"))


SLOT_BITS = 20
"""A million slots of 8 bytes: of 50,000 words one in twenty shares its own."""

MAX_WORD_FEATURE_NATS = 6.0

# A word is taken for one of the crawl's mean until it has led to as much relevance as this
# against it. Counted in relevance, not in cases: where hardly a page is on topic, the small
# relevances of a few links are noise.
_PRIOR_RELEVANCE = 2.0
_DROPPED_BITS = 32 - SLOT_BITS
_SHIFT = np.uint32(_DROPPED_BITS)


class WordMeans:
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

    def learn(self, words: WordHashes, relevance: float) -> None:
        """One case: its words, each of which counts once, and its ``relevance`` in [0, 1]."""
        # What is added to a slot twice in one statement is added once.
        self._counts[_slots_of(words)] += complex(1.0, relevance)
        self._all_cases += 1
        self._all_relevance += relevance

    def features(self, texts: HashedTexts) -> NDArray[np.float64]:
        """How much each text's words speak for what they stand on, in nats within ±6, shape (m,).

        The sum over known words of their share's log-odds less the crawl's,
        over the root of their number: words of one text repeat each other.
        0: all unknown.
        """
        many = len(texts.lengths)
        counts = self._counts.take(_slots_of(texts.hashes))
        met = counts.real > 0.0
        counts, owners = counts[met].astype(np.complex128), texts.owners[met]
        mean = clip_mean(self.rate)
        share = (counts.imag + _PRIOR_RELEVANCE) / (counts.real + _PRIOR_RELEVANCE / mean)
        worth = log_odds_of_means(share) - math.log(mean / (1.0 - mean))
        total = np.bincount(owners, worth, minlength=many)
        told = total / np.sqrt(np.maximum(np.bincount(owners, minlength=many), 1))
        return np.minimum(np.maximum(told, -MAX_WORD_FEATURE_NATS), MAX_WORD_FEATURE_NATS)

    def features_of(self, words: Sequence[int]) -> float:
        """:meth:`features` of one short text, for which arrays are not worth their making."""
        mean = clip_mean(self.rate)
        of_mean, cases = math.log(mean / (1.0 - mean)), _PRIOR_RELEVANCE / mean
        total, many = 0.0, 0
        for word in words:
            met = self._counts.item(word >> _DROPPED_BITS)
            if met:
                share = clip_mean((met.imag + _PRIOR_RELEVANCE) / (met.real + cases))
                total += math.log(share / (1.0 - share)) - of_mean
                many += 1
        told = total / math.sqrt(max(many, 1))
        return max(-MAX_WORD_FEATURE_NATS, min(MAX_WORD_FEATURE_NATS, told))

    def state(self) -> Any:
        """All that is known, as plain data; see :meth:`restored`."""
        met = np.flatnonzero(self._counts)
        counts = self._counts[met].astype("<c8").tobytes()
        return [self._all_cases, self._all_relevance, met.astype("<u4").tobytes(), counts]

    @classmethod
    def restored(cls, state: Any) -> WordMeans:
        """What :meth:`state` gave."""
        worth = cls()
        worth._all_cases, worth._all_relevance, met, counts = state
        worth._counts[np.frombuffer(met, "<u4")] = np.frombuffer(counts, "<c8")
        return worth


def _slots_of(hashes: WordHashes) -> NDArray[np.intp]:
    return (hashes >> _SHIFT).astype(np.intp)
