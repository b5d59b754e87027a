"""Running means of the relevance of link targets, by the position of the link.

A link's tag path and its page are informative: links like earlier links that led to relevant pages
are likely to do so again. Only predicted relevance is counted, never a ground-truth label.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import islice
from typing import Any

import numpy as np
import xxhash

MAX_POSITIONS = 200_000
"""Maximum number of keys, about 120 bytes each; at the limit the older half is dropped."""

# Smoothing: prior number of links at the crawl's mean.
_PRIOR_LINKS = 4.0


class PositionMeans:
    """Mean relevance of targets by position of the link: its page, or its tag path and host."""

    def __init__(self) -> None:
        # By key, in the order of the first links. Count as the real part and sum of relevance as
        # the imaginary part: one object per key.
        self._counts: dict[int, complex] = {}
        self._links = 0
        self._relevance = 0.0

    def __len__(self) -> int:
        return len(self._counts)

    def learn(self, key: int, relevance: float) -> None:
        """Count a link at ``key`` that led to a page of ``relevance`` in [0, 1]."""
        self._links += 1
        self._relevance += relevance
        self._counts[key] = self._counts.get(key, 0j) + complex(1.0, relevance)
        if len(self) > MAX_POSITIONS:
            self._counts = dict(islice(self._counts.items(), MAX_POSITIONS // 2, None))

    def features(self, keys: Sequence[int]) -> list[float]:
        """Return the log-odds of positions relative to those of all links; 0 where unknown."""
        mean = _clip((self._relevance + 0.5) / (self._links + 1.0))
        mean_log_odds, prior_relevance = math.log(mean / (1.0 - mean)), _PRIOR_LINKS * mean
        features = []
        for counts in map(self._counts.get, keys):
            if counts is None:
                features.append(0.0)
            else:
                share = _clip((counts.imag + prior_relevance) / (counts.real + _PRIOR_LINKS))
                features.append(math.log(share / (1.0 - share)) - mean_log_odds)
        return features

    def state(self) -> Any:
        """Return all counts as plain data."""
        known = len(self)
        keys = np.fromiter(self._counts, "<u8", known)
        counts = np.fromiter(self._counts.values(), np.complex128, known)
        cases, relevance = counts.real.astype("<u4"), counts.imag.astype("<f8")
        counts_by_key = [keys.tobytes(), cases.tobytes(), relevance.tobytes()]
        return [self._links, self._relevance, *counts_by_key]

    @classmethod
    def restored(cls, state: Any) -> PositionMeans:
        """Return the object whose :meth:`state` is given, with the same order of keys."""
        means = cls()
        means._links, means._relevance, *counts_by_key = state
        keys, cases, relevance = map(np.frombuffer, counts_by_key, ("<u8", "<u4", "<f8"))
        counts = cases + 1j * relevance
        means._counts = dict(zip(keys.tolist(), counts.tolist(), strict=True))
        return means


@lru_cache(8_192)
def position_key(*names: str) -> int:
    """Return the 64-bit key of a position."""
    return xxhash.xxh3_64_intdigest("\n".join(names).encode("utf-8", "surrogatepass"))


def _clip(mean: float) -> float:
    """Clip a mean relevance away from 0 and 1."""
    return min(max(mean, 1e-4), 1.0 - 1e-4)
