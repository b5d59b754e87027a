"""Scores short texts by their meaning: a linear model over a static word embedding.

Naive Bayes knows the words of the samples; an anchor of one other word says nothing to it. The
embedding (:mod:`focused.text.static_embedding`) gives words of similar meaning similar vectors, so
that a logistic regression on the samples' titles and descriptions has a weight for every word
piece of the language. Its scores are calibrated on left-out titles: where the embedding does not
separate the samples, in a language it doesn't know, scores are near 0.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from focused.classifier.calibration import FloatArray
from focused.text.static_embedding import StaticEmbedding, split_word
from focused.text.word_hashes import LazyHashedTexts, WordHashes

MAX_LEAD_WORDS = 40
MAX_SEMANTIC_SCORE = 6.0


class SemanticScorer:
    """Scores of one topic: log-odds of short texts, 0 for a text without known words.

    ``direction``, shape (d,), and ``bias`` are the linear model; ``slope`` (>= 0) scales its scores
    to log-odds. ``embedding_name`` identifies the table that ``direction`` belongs to.
    """

    def __init__(
        self, embedding: StaticEmbedding, direction: FloatArray, bias: float, slope: float
    ) -> None:
        self.embedding_name = embedding.name
        self.direction = direction
        self.bias = bias
        self.slope = slope
        self._pieces = embedding.index
        scores, squares = embedding.project(direction), embedding.squared_norms
        self._piece_scores = scores.tolist()
        self._piece_squares = squares.tolist()
        words, pieces = embedding.whole_words
        self._words = _WordTable()
        self._words.store(words.hashes, np.column_stack((scores[pieces], squares[pieces])))

    def score_texts(self, texts: Sequence[str]) -> FloatArray:
        """Return log-odds of short texts, shape (n,), within ±:data:`MAX_SEMANTIC_SCORE`."""
        nats = self.slope * self.raw_scores(texts)
        return np.clip(nats, -MAX_SEMANTIC_SCORE, MAX_SEMANTIC_SCORE)

    def raw_scores(self, texts: Sequence[str]) -> FloatArray:
        """Return the linear model's scores, shape (n,); 0 for a text without known words."""
        hashed = texts if isinstance(texts, LazyHashedTexts) else LazyHashedTexts(texts)
        owners, values = hashed.words.owners, self._word_values(hashed)
        score, square = (
            np.bincount(owners, values[:, column], minlength=len(texts)) for column in (0, 1)
        )
        known = square > 0
        return np.where(known, score / np.sqrt(np.where(known, square, 1.0)) + self.bias, 0.0)

    def _word_values(self, texts: LazyHashedTexts) -> FloatArray:
        """Return score and squared length of each word of the texts, shape (n, 2)."""
        hashes = texts.words.hashes
        values, missing = self._words.find(hashes)
        if len(missing):
            new: dict[int, tuple[float, float]] = {}
            for place, word in zip(missing.tolist(), hashes[missing].tolist(), strict=True):
                if word not in new:
                    new[word] = self._value_of(texts.word(place))
                values[place] = new[word]
            self._words.store(hashes[missing], values[missing])
        return values

    def _value_of(self, word: str) -> tuple[float, float]:
        pieces = split_word(word, self._pieces)
        return (
            sum(map(self._piece_scores.__getitem__, pieces)),
            sum(map(self._piece_squares.__getitem__, pieces)),
        )


_SLOT_BITS = 18


class _WordTable:
    """Two numbers per word, by the word's hash: a cache of 2**18 words in 5 MB.

    A word takes the place of another one whose hash begins with the same bits.
    """

    def __init__(self) -> None:
        # A hash of 0 belongs to the first slot alone, so that it marks the other slots as empty.
        self._hashes = np.zeros(1 << _SLOT_BITS, np.uint32)
        self._hashes[0] = np.iinfo(np.uint32).max
        self._values = np.zeros((1 << _SLOT_BITS, 2))

    def find(self, hashes: WordHashes) -> tuple[FloatArray, NDArray[np.intp]]:
        """Return the values of n words, shape (n, 2), and the indices of words without values."""
        slots = _slots_of(hashes)
        return self._values[slots], np.flatnonzero(self._hashes[slots] != hashes)

    def store(self, hashes: WordHashes, values: FloatArray) -> None:
        """Store values of n words, shape (n, 2)."""
        slots = _slots_of(hashes)
        self._hashes[slots] = hashes
        self._values[slots] = values


def _slots_of(hashes: WordHashes) -> NDArray[np.intp]:
    return (hashes >> np.uint32(32 - _SLOT_BITS)).astype(np.intp)
