"""Cases and the sum of their relevance, by what they have in common: a place.

The counts lie in arrays, so that many are asked for at once.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from itertools import count, repeat
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

_ROOM = 1_024
_SHARE_EDGE = 1e-4

K = TypeVar("K", bound=Hashable)
Floats = NDArray[np.float64]


class Tally(Generic[K]):
    """Counts by key; a key's number is its place in the order in which keys were met."""

    def __init__(self) -> None:
        self._numbers: defaultdict[K, int] = _numbered(())
        # By number, with room for more than there are.
        self._cases: Floats = np.zeros(_ROOM)
        self._relevance: Floats = np.zeros(_ROOM)

    def __len__(self) -> int:
        return len(self._numbers)

    def __iter__(self) -> Iterator[K]:
        return iter(self._numbers)

    def add(self, keys: Collection[K], relevance: float) -> None:
        """One case of ``relevance`` for each of the keys, none of them twice."""
        met = np.fromiter(map(self._numbers.__getitem__, keys), np.intp, len(keys))
        lacking = len(self._numbers) - len(self._cases)
        if lacking > 0:
            more = np.zeros(lacking + len(self._cases) // 4)
            self._cases = np.concatenate([self._cases, more])
            self._relevance = np.concatenate([self._relevance, more])
        self._cases[met] += 1.0
        self._relevance[met] += relevance

    def numbers_of(self, keys: Iterable[K], many: int) -> NDArray[np.intp]:
        """The numbers of ``many`` keys, shape (many,), -1 for those that were never met."""
        return np.fromiter(map(self._numbers.get, keys, repeat(-1)), np.intp, many)

    def log_odds(self, numbers: NDArray[np.intp], relevance: float, cases: float) -> Floats:
        """Of the cases' mean relevance, by number, in nats, shape (n,).

        So many ``cases`` before the first, of so much ``relevance`` in all, hold it.
        """
        return log_odds_of((self._relevance[numbers] + relevance) / (self._cases[numbers] + cases))

    def log_odds_of(self, key: K, relevance: float, cases: float) -> float | None:
        """:meth:`log_odds` of one key; None: it was never met."""
        number = self._numbers.get(key)
        if number is None:
            return None
        of_key = float(self._relevance[number]), float(self._cases[number])
        share = within_share((of_key[0] + relevance) / (of_key[1] + cases))
        return math.log(share / (1.0 - share))

    def keep(self, numbers: NDArray[np.intp]) -> None:
        """Forget all keys but those of these numbers, ascending."""
        keys = list(self._numbers)
        self._numbers = _numbered([keys[number] for number in numbers.tolist()])
        self._cases = self._cases[numbers]
        self._relevance = self._relevance[numbers]

    def counts(self) -> tuple[bytes, bytes]:
        """What is known of all keys, in their order, to be kept; see :meth:`restored`."""
        known = len(self)
        cases, relevance = self._cases[:known], self._relevance[:known]
        return cases.astype("<u4").tobytes(), relevance.astype("<f8").tobytes()

    @classmethod
    def restored(cls, keys: Sequence[K], cases: bytes, relevance: bytes) -> Tally[K]:
        """From its keys in their order, and what :meth:`counts` gave."""
        tally = cls()
        tally._numbers = _numbered(keys)
        tally._cases = np.frombuffer(cases, "<u4").astype(np.float64)
        tally._relevance = np.frombuffer(relevance, "<f8").astype(np.float64)
        return tally


def within_share(mean: float) -> float:
    """A mean relevance in [0, 1], as far from 0 and 1 as those of keys are held."""
    return min(max(mean, _SHARE_EDGE), 1.0 - _SHARE_EDGE)


def log_odds_of(shares: Floats) -> Floats:
    """Of mean relevances in [0, 1], held as :func:`within_share` does, in nats."""
    held = np.minimum(np.maximum(shares, _SHARE_EDGE), 1.0 - _SHARE_EDGE)
    return np.asarray(np.log(held / (1.0 - held)))


def _numbered(keys: Sequence[K]) -> defaultdict[K, int]:
    # A new key gets the next number as it is asked for.
    numbers: defaultdict[K, int] = defaultdict(count(len(keys)).__next__)
    numbers.update(zip(keys, count(), strict=False))
    return numbers
