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

from focused.classifier.calibration import FloatArray
from focused.kernels.word_vectors import text_scores
from focused.text.static_embedding import StaticEmbedding, split_word
from focused.text.word_hashes import LazyHashedTexts

MAX_LEAD_WORDS = 40
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
        scores, squares = embedding.project(direction), embedding.squared_norms
        self._piece_scores = scores.tolist()
        self._piece_squares = squares.tolist()
        self._words, pieces = embedding.whole_words
        self._scores = scores[pieces].astype(np.float32).tobytes()
        self._squares = squares[pieces].astype(np.float32).tobytes()
        self._split_words: dict[int, tuple[float, float]] = {}

    def score_texts(self, texts: Sequence[str]) -> FloatArray:
        """Return log-odds of short texts, shape (n,), within ±:data:`MAX_SEMANTIC_SCORE`."""
        hashed = texts if isinstance(texts, LazyHashedTexts) else LazyHashedTexts(texts)
        hashes, lengths = hashed.words
        if len(self._split_words) > MAX_SPLIT_WORDS:
            self._split_words.clear()
        scores = text_scores(
            hashes.tobytes(),
            self._words.find(hashes).tobytes(),
            lengths.tolist(),
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
        return (
            sum(map(self._piece_scores.__getitem__, pieces)),
            sum(map(self._piece_squares.__getitem__, pieces)),
        )
