"""Where links that paid stood: on which page, in which path of tags, to which host.

A place is known by a 64-bit hash of its name. What came of the links at a
place is held against the mean of the crawl.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from focused.learning.tally import Tally, within_share

MAX_PLACES = 200_000
"""Places remembered, some 150 bytes each; beyond it the older half is forgotten."""

# A place is taken for one of the crawl's mean until it has had as many links as this.
_MEAN_LINKS = 4.0
# A page's links stand in few places, for which arrays are not worth their making.
_FEW = 16


class Places:
    """Counts followed links and the sum of their targets' relevance, by place."""

    def __init__(self) -> None:
        self._places = Tally()

    def __len__(self) -> int:
        return len(self._places)

    def learn(self, place: int, relevance: float) -> None:
        """A link at ``place`` led to a page of ``relevance`` in [0, 1]."""
        self._places.add(place, relevance)
        if len(self) > MAX_PLACES:
            self._places.forget(MAX_PLACES // 2)

    def evidence(self, places: Sequence[int], mean: float) -> NDArray[np.float64]:
        """How much better each place is than ``mean``, in (0, 1), in nats; 0: unknown."""
        different = set(places)
        if len(different) <= _FEW:
            told_of = {place: self.evidence_of(place, mean) for place in different}
            return np.array([told_of[place] for place in places])
        told = np.zeros(len(places))
        numbers = self._places.numbers_of(places)
        met = numbers >= 0
        mean = within_share(mean)
        share = self._places.log_odds(numbers[met], _MEAN_LINKS * mean, _MEAN_LINKS)
        told[met] = share - math.log(mean / (1.0 - mean))
        return told

    def evidence_of(self, place: int, mean: float) -> float:
        """:meth:`evidence` of one place."""
        mean = within_share(mean)
        share = self._places.log_odds_of(place, _MEAN_LINKS * mean, _MEAN_LINKS)
        return 0.0 if share is None else share - math.log(mean / (1.0 - mean))

    def state(self) -> Any:
        """All that is known, as plain data; see :meth:`restored`."""
        return self._places.state()

    @classmethod
    def restored(cls, state: Any) -> Places:
        """What :meth:`state` gave, in the same order of places."""
        found = cls()
        found._places = Tally.restored(state)
        return found


@lru_cache(8_192)
def place_of(*names: str) -> int:
    """A place's number."""
    return xxhash.xxh3_64_intdigest("\n".join(names).encode("utf-8", "surrogatepass"))
