"""Scores pages by the meaning of their first words: a linear model over a static word embedding.

The vocabulary of :class:`focused.text.documents.Vocabulary` has the words of the samples only. The
embedding (:mod:`focused.text.static_embedding`) gives related words similar vectors, so that words
that no sample has count, too. The first words of a page (title, description, headings, beginning
of the text) say what it is about; averaged over all words, the meaning is that of the site.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from focused.classifier.calibration import FloatArray
from focused.kernels.word_vectors import lead_score
from focused.text.documents import HashedPage
from focused.text.static_embedding import StaticEmbedding
from focused.text.word_hashes import WordHashes

MAX_LEAD_WORDS = 40
"""Words of a page that are scored: with 20 or 70 average precision was lower on most webs."""


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
        self._words, pieces = embedding.whole_words
        self._scores = embedding.project(direction)[pieces].tobytes()
        self._squares = embedding.squared_norms[pieces].tobytes()

    def raw_score(self, page: HashedPage) -> float:
        """Return the score of one page; 0 if its first words are unknown."""
        places = self._words.find_sorted(page.first(MAX_LEAD_WORDS))
        return lead_score(places, self._scores, self._squares, self.bias)


def embed_first_words(
    embedding: StaticEmbedding, pages: Sequence[WordHashes]
) -> NDArray[np.float32]:
    """Return the vectors that :class:`LeadScorer` scores, shape (n, d); zero without known words.

    ``pages`` are the hashes of the first words of n pages.
    """
    index, pieces = embedding.whole_words
    squares = embedding.squared_norms[pieces]
    rows = np.zeros((len(pages), embedding.dimensions), np.float32)
    for row, hashes in zip(rows, pages, strict=True):
        found = index.find(hashes[:MAX_LEAD_WORDS])
        words, counts = np.unique(found[found >= 0], return_counts=True)
        if len(words):
            frequencies = np.log1p(counts)
            scales = frequencies * embedding.scales[pieces[words]]
            row += scales @ embedding.vectors[pieces[words]]
            row /= math.sqrt(frequencies**2 @ squares[words])
    return rows
