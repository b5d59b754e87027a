"""Cases and the sum of their relevance, by place.

The counts lie in arrays, so that many are asked for at once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

_ROOM = 1_024
_SHARE_EDGE = 1e-4

Floats = NDArray[np.float64]


class Tally:
    """Counts by place; a place's number is its rank in the order in which places were met."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}
        # By number, with room for more than there are.
        self._cases: Floats = np.zeros(_ROOM)
        self._relevance: Floats = np.zeros(_ROOM)

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

    def numbers_of(self, places: Sequence[int]) -> NDArray[np.intp]:
        """The places' numbers, shape (n,), -1 for those that were never met."""
        return np.fromiter(map(self._numbers.get, places, repeat(-1)), np.intp, len(places))

    def log_odds(self, numbers: NDArray[np.intp], relevance: float, cases: float) -> Floats:
        """Of the cases' mean relevance, by number, in nats, shape (n,).

        So many ``cases`` before the first, of so much ``relevance`` in all, hold it.
        """
        shares = (self._relevance[numbers] + relevance) / (self._cases[numbers] + cases)
        return log_odds_of_shares(shares)

    def log_odds_of(self, place: int, relevance: float, cases: float) -> float | None:
        """:meth:`log_odds` of one place; None: it was never met."""
        number = self._numbers.get(place)
        if number is None:
            return None
        of_place = float(self._relevance[number]), float(self._cases[number])
        share = within_share((of_place[0] + relevance) / (of_place[1] + cases))
        return math.log(share / (1.0 - share))

    def forget(self, many: int) -> None:
        """Forget so many places, those that were met first."""
        self._numbers = _numbered(list(self._numbers)[many:])
        self._cases = self._cases[many:].copy()
        self._relevance = self._relevance[many:].copy()

    def state(self) -> Any:
        """All that is known, as plain data; see :meth:`restored`."""
        known = len(self)
        places = np.fromiter(self._numbers, np.uint64, known).astype("<u8")
        cases, relevance = self._cases[:known], self._relevance[:known]
        return [places.tobytes(), cases.astype("<u4").tobytes(), relevance.astype("<f8").tobytes()]

    @classmethod
    def restored(cls, state: Any) -> Tally:
        """What :meth:`state` gave, in the same order of places."""
        tally = cls()
        places, cases, relevance = state
        tally._numbers = _numbered(np.frombuffer(places, "<u8").tolist())
        tally._cases = np.frombuffer(cases, "<u4").astype(np.float64)
        tally._relevance = np.frombuffer(relevance, "<f8").astype(np.float64)
        return tally


def within_share(mean: float) -> float:
    """A mean relevance in [0, 1], as far from 0 and 1 as those of places and words are held."""
    return min(max(mean, _SHARE_EDGE), 1.0 - _SHARE_EDGE)


def log_odds_of_shares(shares: Floats) -> Floats:
    """Of mean relevances in [0, 1], held as :func:`within_share` does, in nats."""
    held = np.minimum(np.maximum(shares, _SHARE_EDGE), 1.0 - _SHARE_EDGE)
    return np.asarray(np.log(held / (1.0 - held)))


def _numbered(places: Sequence[int]) -> dict[int, int]:
    return {place: number for number, place in enumerate(places)}
