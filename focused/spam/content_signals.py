"""Content signals of web spam, measured on the beginning of a page's text without its links.

Most are those of Ntoulas, Najork, Manasse and Fetterly (WWW 2006, "Detecting spam web pages
through content analysis"): compressibility, repetition, the shares of popular words, title
stuffing, and the likelihood of word pairs. Two more tell text that a program put together: written
pages repeat their rarer words close by, and keep to them from the first half to the second.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

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
_EARLY_WORDS = 400
_NEAR = 15  # words between two uses of a word that count as near
_MAX_RARE_USES = 6
_PAIR_FACTORS = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)
_PRESENT_WORDS = 50
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

    def signals(self, words: WordHashes) -> Sequence[float]:
        """Return the five signals of popular words for a text, at least two words."""
        other = len(self.words)
        places = self._index.find(words)
        known = places >= 0
        places = np.where(known, places, other)
        both = known[:-1] & known[1:]
        likelihood = self.pair_scores[places[:-1], places[1:]]
        shares = np.bincount(places, minlength=other + 1)[:other] / len(words)
        first = shares[:_PRESENT_WORDS]
        shift = np.sqrt(first) - np.sqrt(self.frequencies[:_PRESENT_WORDS])
        return (
            float(known.mean()),
            float(both.mean()),
            float(likelihood.mean()),
            float((first > 0).mean()) if len(first) else 0.0,
            float(np.sqrt((shift * shift).sum())),
        )


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
    n_words = int(hashed.lengths[0])
    if n_words < MIN_WORDS:
        return None
    words, title = hashed.hashes[:n_words], hashed.hashes[n_words:]
    chars_per_word = len(text) / n_words
    words = words[:MAX_WORDS]
    n_words = len(words)
    raw = text.encode("utf-8", "surrogatepass")
    _, owners, counts = np.unique(words, return_inverse=True, return_counts=True)
    descending = np.sort(counts)[::-1]
    pairs = _pair_hashes(words[:-1].astype(np.uint64), words[1:])
    fours = _pair_hashes(pairs[:-2], pairs[2:])
    return np.array(
        (
            len(zlib.compress(raw, 1)) / len(raw),
            _count_distinct(words[:_EARLY_WORDS]) / min(n_words, _EARLY_WORDS),
            float((counts == 1).sum()) / n_words,
            descending[0] / n_words,
            descending[:5].sum() / n_words,
            _share_repeated(pairs),
            _share_repeated(fours),
            chars_per_word,
            sum(map(text.count, ".,;:(")) * chars_per_word / len(text),
            _similarity_of_halves(owners, counts),
            *_repeats(owners, counts),
            min(_MAX_TITLE_WORDS, len(title)),
            float((words[:, None] == title[None, :_MAX_TITLE_WORDS]).any(axis=1).mean()),
            *popular.signals(words),
        )
    )


def _pair_hashes(
    one: NDArray[np.uint64], other: NDArray[np.uint64] | WordHashes
) -> NDArray[np.uint64]:
    return (one * _PAIR_FACTORS[0]) ^ (other.astype(np.uint64) * _PAIR_FACTORS[1])


def _share_repeated(hashes: NDArray[np.uint64]) -> float:
    return 1.0 - _count_distinct(hashes) / max(1, len(hashes))


def _count_distinct(hashes: NDArray[np.uint64] | WordHashes) -> int:
    # np.unique takes five times as long.
    ordered = np.sort(hashes)
    return int(np.count_nonzero(ordered[1:] != ordered[:-1])) + 1 if len(hashes) else 0


def _similarity_of_halves(owners: NDArray[np.intp], counts: NDArray[np.intp]) -> float:
    """Return the cosine of both halves' rarer words, with the roots of their counts, in [0, 1]."""
    middle = len(owners) // 2
    rare = counts <= max(3, len(owners) // 100)
    first = np.sqrt(np.bincount(owners[:middle], minlength=len(counts)) * rare)
    second = np.sqrt(np.bincount(owners[middle:], minlength=len(counts)) * rare)
    length = float(np.sqrt((first @ first) * (second @ second)))
    return float(first @ second) / length if length else 0.0


def _repeats(owners: NDArray[np.intp], counts: NDArray[np.intp]) -> tuple[float, float]:
    """Return how near rarer words repeat: the share within 15 words, and the mean log gap.

    Gaps are relative to those of words in random order.
    """
    order = np.argsort(owners, kind="stable")
    of = owners[order]
    repeats = (of[1:] == of[:-1]) & (counts[of[1:]] <= _MAX_RARE_USES)
    gaps = (order[1:] - order[:-1])[repeats]
    if not len(gaps):
        return 0.0, -0.5
    uses = counts[of[1:][repeats]]
    relative = np.log(gaps * (uses + 1) / len(owners))
    return float((gaps <= _NEAR).mean()), float(relative.mean())
