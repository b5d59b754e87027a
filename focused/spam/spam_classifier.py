"""The spam classifier: evidence that a page's text is spam, from its content signals.

An additive model: each signal contributes a piecewise linear function of its value. It is fitted on
a topic's own samples beside spam made of their words (:mod:`focused.spam.spam_training`), so it
knows how good pages of this subject and language read.
"""

from __future__ import annotations

import zlib
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from focused.kernels.word_signals import popular_signals, repetition_signals
from focused.text.tokens import tokenize
from focused.text.word_hashes import HashIndex, WordHashes, hash_texts
from focused.web.page import Page

MIN_WORDS = 30
"""Shorter texts show no signal."""
MAX_WORDS = 1_000
READ_CHARS = 8_000
"""Characters of a page's text that are read, of which :data:`MAX_CHARS` are measured."""
MAX_CHARS = 6_000
POPULAR_WORDS = 200

SIGNALS = (
    "compression",
    "distinct",
    "once",
    "top-word",
    "top-five",
    "repeated-pairs",
    "repeated-fours",
    "word-length",
    "punctuation",
    "halves",
    "near-repeats",
    "repeat-gap",
    "title-words",
    "title-in-text",
    "popular",
    "popular-pairs",
    "pair-likelihood",
    "popular-present",
    "popular-shift",
)
"""The names of the signals, in the order of :func:`content_signals`."""

_MAX_ANCHORS = 100
_MAX_TITLE_WORDS = 30
_MIN_ANCHOR_CHARS = 8
_SMOOTHING = 1.0


@dataclass(frozen=True)
class PopularWords:
    """The most frequent words of a topic's samples, and how often one follows another.

    ``frequencies``, shape (k,), are shares of all words, descending. ``pair_scores``, shape
    (k + 1, k + 1), is the logarithm of the pair's count over its count in random order; index k
    stands for all other words.
    """

    words: tuple[str, ...]
    frequencies: NDArray[np.float32]
    pair_scores: NDArray[np.float32]

    @classmethod
    def count(cls, texts: Iterable[str]) -> PopularWords:
        """Count the words of ``texts``."""
        documents = [tokenize(text[:MAX_CHARS]) for text in texts]
        counted = Counter(word for words in documents for word in words)
        total = max(1, counted.total())
        # Ties in alphabetical order: the same samples give the same model.
        best = sorted(counted.items(), key=lambda each: (-each[1], each[0]))[:POPULAR_WORDS]
        words = tuple(word for word, _ in best)
        index = {word: place for place, word in enumerate(words)}
        other = len(words)
        pairs = np.zeros((other + 1, other + 1))
        for document in documents:
            places = np.array([index.get(word, other) for word in document], dtype=np.intp)
            np.add.at(pairs, (places[:-1], places[1:]), 1.0)
        expected = pairs.sum(axis=1, keepdims=True) * pairs.sum(axis=0) / max(1.0, pairs.sum())
        scores = np.log((pairs + _SMOOTHING) / (expected + _SMOOTHING))
        frequencies = np.array([count / total for _, count in best], dtype=np.float32)
        return cls(words, frequencies, scores.astype(np.float32))

    @cached_property
    def _index(self) -> HashIndex:
        return HashIndex(hash_texts(self.words).hashes)

    @cached_property
    def _frequency_roots(self) -> bytes:
        return np.sqrt(self.frequencies).astype(np.float64).tobytes()

    @cached_property
    def _flat_scores(self) -> bytes:
        return self.pair_scores.astype(np.float64).tobytes()

    def signals(self, words: WordHashes) -> Sequence[float]:
        """Return the five signals of popular words for the hashes of a text, at least two."""
        places = self._index.find(words).tobytes()
        return popular_signals(places, self._frequency_roots, self._flat_scores)


def body_text(page: Page) -> str:
    """Return the beginning of a page's text without the anchors of its links.

    Menus and lists of links read alike on good and on spam pages. Anchors of one short word may
    be anywhere in a sentence: they stay.
    """
    text = page.text[:READ_CHARS]
    anchors = {link.anchor for link in page.links[:_MAX_ANCHORS]}
    for anchor in sorted(anchors, key=len, reverse=True):
        if len(anchor) >= _MIN_ANCHOR_CHARS:
            text = text.replace(anchor, " ")
    return text[:MAX_CHARS]


def content_signals(page: Page, popular: PopularWords) -> NDArray[np.float64] | None:
    """Return the values of :data:`SIGNALS`, shape (19,); None for a text that is too short."""
    text = body_text(page)
    hashed = hash_texts((text, page.title))
    count = hashed.lengths[0]
    if count < MIN_WORDS:
        return None
    words, title = hashed.hashes[: min(count, MAX_WORDS)], hashed.hashes[count:]
    chars_per_word = len(text) / count
    title_words = HashIndex(title[:_MAX_TITLE_WORDS])
    raw = text.encode("utf-8", "surrogatepass")
    *repetition, halves, near, gap = repetition_signals(words.tobytes())
    return np.array(
        (
            len(zlib.compress(raw, 1)) / len(raw),
            *repetition,
            chars_per_word,
            sum(map(text.count, ".,;:(")) * chars_per_word / len(text),
            halves,
            near,
            gap,
            min(_MAX_TITLE_WORDS, len(title)),
            np.count_nonzero(title_words.find(words) >= 0) / len(words),
            *popular.signals(words),
        )
    )


MAX_EVIDENCE = 4.0


@dataclass(frozen=True)
class SpamClassifier:
    """Rates texts by their content signals.

    ``knots`` and ``values``, shape (19, k), are the points of each signal's function; knots ascend
    strictly. ``good_mean`` and ``spam_mean`` are the mean evidence of held-out good pages and of
    held-out spam. ``spam_sites`` are registered domains of which a person labelled a page spam.
    """

    popular: PopularWords
    knots: NDArray[np.float32]
    values: NDArray[np.float32]
    bias: float
    good_mean: float
    spam_mean: float
    spam_sites: tuple[str, ...] = ()

    def evidence(self, page: Page) -> float | None:
        """Return log-odds of spam against good, both equally likely, within ±4.

        None if the text is too short to tell.
        """
        signals = content_signals(page, self.popular)
        return None if signals is None else self.evidence_of(signals)

    def evidence_of(self, signals: NDArray[np.float64]) -> float:
        """Return the evidence for signals of shape (19,), within ±4."""
        total = self.bias
        for signal, (knots, values) in zip(signals.tolist(), self._functions, strict=True):
            total += _interpolate(signal, knots, values)
        return min(max(total, -MAX_EVIDENCE), MAX_EVIDENCE)

    @cached_property
    def _functions(self) -> Sequence[tuple[list[float], list[float]]]:
        return list(zip(self.knots.tolist(), self.values.tolist(), strict=True))


def _interpolate(at: float, knots: list[float], values: list[float]) -> float:
    """Return ``np.interp`` of one number, without arrays."""
    place = bisect_right(knots, at)
    if not 0 < place < len(knots):
        return values[max(place - 1, 0)]
    low, high = knots[place - 1 : place + 1]
    least, most = values[place - 1 : place + 1]
    return (most - least) / (high - low) * (at - low) + least
