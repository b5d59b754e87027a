"""Scores texts by their meaning: linear models over a static word embedding.

Naive Bayes knows the words of the samples; an anchor of one other word says nothing to it. The
embedding (:mod:`focused.text.static_embedding`) gives words of similar meaning similar vectors, so
that a logistic regression on the samples' titles and descriptions has a weight for every word
piece of the language. Its scores are calibrated on left-out titles: where the embedding does not
separate the samples, in a language it doesn't know, scores are near 0.

Pages are scored by their first words (title, description, headings, beginning of the text), which
say what they are about; averaged over all words, the meaning is that of the site.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from focused.classifier.calibration import FloatArray
from focused.kernels.word_vectors import lead_score, text_scores
from focused.text.documents import HashedPage
from focused.text.static_embedding import StaticEmbedding, split_word
from focused.text.word_hashes import LazyHashedTexts, WordHashes

MAX_LEAD_WORDS = 40
"""Words of a page that are scored: with 20 or 70 average precision was lower on most webs."""
MAX_SEMANTIC_SCORE = 6.0
MAX_SPLIT_WORDS = 40_000
"""About 200 bytes per word. The cache is cleared when it is full."""


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
        self._scores = embedding.project(direction).tobytes()
        self._squares = embedding.squared_norms.tobytes()
        self._split_words: dict[int, tuple[float, float]] = {}

    def score_texts(self, texts: Sequence[str]) -> FloatArray:
        """Return log-odds of short texts, shape (n,), within ±:data:`MAX_SEMANTIC_SCORE`."""
        hashed = texts if isinstance(texts, LazyHashedTexts) else LazyHashedTexts(texts)
        hashes, lengths = hashed.words
        if len(self._split_words) > MAX_SPLIT_WORDS:
            self._split_words.clear()
        scores = text_scores(
            hashes.tobytes(),
            self._pieces.find(hashes).tobytes(),
            lengths,
            self._scores,
            self._squares,
            self.bias,
            self.slope,
            MAX_SEMANTIC_SCORE,
            self._split_words,
            lambda place: self._value_of(hashed.word(place)),
        )
        return np.frombuffer(scores)

    def _value_of(self, word: str) -> tuple[float, float]:
        pieces = split_word(word, self._pieces)
        scores, squares = memoryview(self._scores).cast("f"), memoryview(self._squares).cast("f")
        return sum(scores[each] for each in pieces), sum(squares[each] for each in pieces)


class LeadScorer:
    """Raw scores of the first words of pages, to be added to those of the word vectors.

    ``direction``, shape (d,), and ``bias`` are the linear model; ``embedding_name`` identifies the
    table that ``direction`` belongs to. Only words that are one piece of the embedding count:
    pages are hashed, and a hash can't be split into pieces.
    """

    def __init__(self, embedding: StaticEmbedding, direction: FloatArray, bias: float) -> None:
        self.embedding_name = embedding.name
        self.direction = direction
        self.bias = bias
        self._pieces = embedding.index
        self._scores = embedding.project(direction).tobytes()
        self._squares = embedding.squared_norms.tobytes()

    def raw_score(self, page: HashedPage) -> float:
        """Return the score of one page; 0 if its first words are unknown."""
        places = self._pieces.find_sorted(page.first(MAX_LEAD_WORDS))
        return lead_score(places, self._scores, self._squares, self.bias)


def embed_first_words(
    embedding: StaticEmbedding, pages: Sequence[WordHashes]
) -> NDArray[np.float32]:
    """Return the vectors that :class:`LeadScorer` scores, shape (n, d); zero without known words.

    ``pages`` are the hashes of the first words of n pages.
    """
    squares = embedding.squared_norms
    rows = np.zeros((len(pages), embedding.dimensions), np.float32)
    for row, hashes in zip(rows, pages, strict=True):
        found = embedding.index.find(hashes[:MAX_LEAD_WORDS])
        words, counts = np.unique(found[found >= 0], return_counts=True)
        if len(words):
            frequencies = np.log1p(counts)
            scales = frequencies * embedding.scales[words]
            row += scales @ embedding.vectors[words]
            row /= math.sqrt(frequencies**2 @ squares[words])
    return rows
