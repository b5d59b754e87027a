"""Where links that paid stood: on which page, in which path of tags, to which host.

A place is known by a 64-bit hash of its name. What came of the links at a
place is held against the mean of the crawl.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import xxhash

MAX_PLACES = 200_000
"""Places remembered, some 150 bytes each; beyond it the older half is forgotten."""

# A place is taken for one of the crawl's mean until it has had as many links as this.
_MEAN_LINKS = 4.0
_SHARE_EDGE = 1e-4


class Places:
    """Counts followed links and the sum of their targets' relevance, by place."""

    def __init__(self, rows: Mapping[int, tuple[int, float]] | None = None) -> None:
        """``rows`` are what :meth:`rows` gave."""
        self._found = dict(rows or {})

    def learn(self, place: int, relevance: float) -> None:
        """A link at ``place`` led to a page of ``relevance`` in [0, 1]."""
        links, total = self._found.get(place, (0, 0.0))
        self._found[place] = (links + 1, total + relevance)
        if len(self._found) > MAX_PLACES:
            self._found = dict(list(self._found.items())[MAX_PLACES // 2 :])

    def evidence(self, place: int, mean: float) -> float:
        """How much better the place is than ``mean``, in (0, 1), in nats; 0: unknown."""
        found = self._found.get(place)
        if found is None:
            return 0.0
        mean = min(max(mean, _SHARE_EDGE), 1.0 - _SHARE_EDGE)
        share = (found[1] + _MEAN_LINKS * mean) / (found[0] + _MEAN_LINKS)
        share = min(max(share, _SHARE_EDGE), 1.0 - _SHARE_EDGE)
        return math.log(share / (1.0 - share)) - math.log(mean / (1.0 - mean))

    def rows(self) -> Mapping[int, tuple[int, float]]:
        """All that is known, to be kept."""
        return self._found


def place_of(*names: str) -> int:
    """A place's number."""
    return xxhash.xxh3_64_intdigest("\n".join(names).encode("utf-8", "surrogatepass"))
