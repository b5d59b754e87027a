"""Which pages are like which: vectors of the words of pages, without any model.

Words weigh log(1 + count) times their inverse document frequency among the pages at
hand, so that what all of them share (menus, licences) makes none alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.preprocessing import normalize

from focused.learning.documents import page_words
from focused.web.page import Page

_FEATURES = 1 << 18
_MAX_TEXT_WORDS = 3_000


def page_vectors(pages: Iterable[Page]) -> sp.csr_matrix:
    """One row a page, of length one (or zero, of a page without words), shape (n, 2**18)."""
    hashing = _hashing()
    # One page more, without words: the hasher takes no empty iterable.
    counts = hashing.transform(chain((Page(""),), pages))[1:]
    known = np.bincount(counts.indices, minlength=_FEATURES)
    rarity = np.log((1.0 + counts.shape[0]) / np.maximum(known, 1))
    counts.data = np.log1p(counts.data) * rarity[counts.indices]
    return normalize(counts) if counts.shape[0] else counts


def rows_with_words(vectors: sp.csr_matrix, words: Sequence[str]) -> NDArray[np.bool_]:
    """Which rows of :func:`page_vectors` are of pages that have all ``words``, shape (n,).

    Words are known by their hash; one in thousands is taken for another.
    """
    wanted = _hashing().transform([Page("", text=" ".join(words))]).indices
    found = (vectors[:, wanted] > 0).sum(axis=1)
    return np.asarray(found == len(wanted)).ravel() & bool(len(wanted))


def likeness_to(vectors: sp.csr_matrix, place: int) -> NDArray[np.float64]:
    """Cosine of every row of ``vectors`` with the row at ``place``, in [0, 1], shape (n,)."""
    return np.asarray((vectors @ vectors[place].T).todense(), dtype=float).ravel().clip(0.0, 1.0)


def density(vectors: sp.csr_matrix) -> NDArray[np.float64]:
    """The mean cosine of each row with all rows, in [0, 1], shape (n,)."""
    if not vectors.shape[0]:
        return np.zeros(0)
    centre = np.asarray(vectors.mean(axis=0)).ravel()
    return np.asarray(vectors @ centre, dtype=float)


def _hashing() -> HashingVectorizer:
    return HashingVectorizer(analyzer=_words, n_features=_FEATURES, alternate_sign=False, norm=None)


def _words(page: Page) -> list[str]:
    text, head = page_words(page)
    return text[:_MAX_TEXT_WORDS] + head
