"""Running means of the relevance of link targets, by key and by word.

A link's tag path, its page and its words are informative: links like earlier links that led
to relevant pages are likely to do so again. Only predicted relevance is counted, never a
ground-truth label.

Word counts are in a table of fixed size indexed by hash (Weinberger, Dasgupta, Langford,
Smola, Attenberg 2009, "Feature hashing for large scale multitask learning").
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import islice
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from focused.kernels.link_features import clip_mean, word_features
from focused.text.word_hashes import HashedTexts, WordHashes

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

    def __len__(self) -> int:
        return len(self._counts)

    def learn(self, key: int, relevance: float) -> None:
        """Count a link at ``key`` that led to a page of ``relevance`` in [0, 1]."""
        self._counts[key] = self._counts.get(key, 0j) + complex(1.0, relevance)
        if len(self) > MAX_POSITIONS:
            self._counts = dict(islice(self._counts.items(), MAX_POSITIONS // 2, None))

    def features(self, keys: Sequence[int], mean: float) -> list[float]:
        """Return the log-odds of positions relative to ``mean``, in (0, 1); 0 where unknown."""
        mean = clip_mean(mean)
        mean_log_odds, prior_relevance = math.log(mean / (1.0 - mean)), _PRIOR_LINKS * mean
        features = []
        for counts in map(self._counts.get, keys):
            if counts is None:
                features.append(0.0)
            else:
                share = clip_mean((counts.imag + prior_relevance) / (counts.real + _PRIOR_LINKS))
                features.append(math.log(share / (1.0 - share)) - mean_log_odds)
        return features

    def state(self) -> Any:
        """Return all counts as plain data."""
        known = len(self)
        keys = np.fromiter(self._counts, "<u8", known)
        counts = np.fromiter(self._counts.values(), np.complex128, known)
        cases, relevance = counts.real.astype("<u4"), counts.imag.astype("<f8")
        return [keys.tobytes(), cases.tobytes(), relevance.tobytes()]

    @classmethod
    def restored(cls, state: Any) -> PositionMeans:
        """Return the object whose :meth:`state` is given, with the same order of keys."""
        means = cls()
        keys, cases, relevance = map(np.frombuffer, state, ("<u8", "<u4", "<f8"))
        counts = cases + 1j * relevance
        means._counts = dict(zip(keys.tolist(), counts.tolist(), strict=True))
        return means


@lru_cache(8_192)
def position_key(*names: str) -> int:
    """Return the 64-bit key of a position."""
    return xxhash.xxh3_64_intdigest("\n".join(names).encode("utf-8", "surrogatepass"))


SLOT_BITS = 18
"""A quarter of a million slots of 8 bytes: of 50,000 words one in six collides."""

_STORED_BITS = 20
"""Slots are stored as if the table had so many, as it once had."""

MAX_WORD_FEATURE_NATS = 6.0

# Smoothing: prior relevance at the crawl's mean. In relevance, not in observations: where hardly
# a page is on topic, small relevances of a few links are noise.
_PRIOR_RELEVANCE = 2.0
_DROPPED_BITS = 32 - SLOT_BITS
_SHIFT = np.uint32(_DROPPED_BITS)
_STORED_SHIFT = _STORED_BITS - SLOT_BITS


class WordMeans:
    """Mean relevance by word: of the targets of links with the word, or of pages with the word."""

    def __init__(self) -> None:
        # Count as the real part and sum of relevance as the imaginary part: one access per word.
        self._counts = np.zeros(1 << SLOT_BITS, np.complex64)
        self._all_cases = 0
        self._all_relevance = 0.0

    @property
    def rate(self) -> float:
        """The mean relevance of all observations, in (0, 1)."""
        return (self._all_relevance + 0.5) / (self._all_cases + 1.0)

    def learn(self, words: WordHashes, relevance: float) -> None:
        """Count one observation: its distinct words and its ``relevance`` in [0, 1]."""
        # Repeated slots are counted once.
        self._counts[_slots_of(words)] += complex(1.0, relevance)
        self._all_cases += 1
        self._all_relevance += relevance

    def features(self, texts: HashedTexts, limits: Sequence[int]) -> list[float]:
        """Return the feature of the first ``limits[i]`` words of each text i."""
        counts = self._counts[_slots_of(texts.hashes)].tobytes()
        return word_features(
            counts,
            texts.lengths,
            list(limits),
            clip_mean(self.rate),
            _PRIOR_RELEVANCE,
            MAX_WORD_FEATURE_NATS,
        )

    def state(self) -> Any:
        """Return all counts as plain data."""
        slots = np.flatnonzero(self._counts)
        counts = self._counts[slots].astype("<c8").tobytes()
        stored = (slots << _STORED_SHIFT).astype("<u4").tobytes()
        return [self._all_cases, self._all_relevance, stored, counts]

    @classmethod
    def restored(cls, state: Any) -> WordMeans:
        """Return the object whose :meth:`state` is given."""
        means = cls()
        means._all_cases, means._all_relevance, slots, counts = state
        own = np.frombuffer(slots, "<u4") >> _STORED_SHIFT
        np.add.at(means._counts, own, np.frombuffer(counts, "<c8"))
        return means


def _slots_of(hashes: WordHashes) -> NDArray[np.intp]:
    return (hashes >> _SHIFT).astype(np.intp)
