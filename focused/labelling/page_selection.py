"""Select the page whose label helps most, by active learning.

Until a few good pages are known, the most relevant pages come first: nothing can be learned without
good ones. After that three turns in four go to ``uncertain`` pages, with a relevance near the
threshold (Lewis, Gale 1994, "A sequential algorithm for training text classifiers"), one to
``doubtful`` ones: called on topic but unlike all good pages, or off topic but like one. Always
taking the most relevant pages makes worse models than random ones: ``python benchmarks/labelling.py
--choices random,high,ours``.

Each utility is multiplied by the distance to the nearest labelled page, by how typical the page is
of the pool (Settles, Craven 2008, "information density"), and by how few pages of its host are
labelled. Near-duplicates of labelled pages are skipped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.preprocessing import normalize

from focused.labels.label_file import Reason, Verdict
from focused.text.documents import page_words
from focused.web.page import Page

_FEATURES = 1 << 18
_MAX_TEXT_WORDS = 3_000


def page_vectors(pages: Iterable[Page]) -> sp.csr_matrix:
    """Word vectors of pages as unit rows, shape (n, 2**18); a page without words is zero.

    Words weigh log(1 + count) times their inverse document frequency among ``pages``, so that menus
    and licences make no pages similar.
    """
    hashing = _hashing_vectorizer()
    # Add an empty page, because the hasher rejects an empty iterable.
    counts = hashing.transform(chain((Page(""),), pages))[1:]
    known = np.bincount(counts.indices, minlength=_FEATURES)
    rarity = np.log((1.0 + counts.shape[0]) / np.maximum(known, 1))
    counts.data = np.log1p(counts.data) * rarity[counts.indices]
    return normalize(counts) if counts.shape[0] else counts


def rows_with_words(vectors: sp.csr_matrix, words: Sequence[str]) -> NDArray[np.bool_]:
    """Which rows of :func:`page_vectors` have all ``words``, shape (n,).

    Words are matched by hash; one in thousands collides.
    """
    columns = _hashing_vectorizer().transform([Page("", text=" ".join(words))]).indices
    found = (vectors[:, columns] > 0).sum(axis=1)
    return np.asarray(found == len(columns)).ravel() & bool(len(columns))


def cosine_to(vectors: sp.csr_matrix, place: int) -> NDArray[np.float64]:
    """Cosine of every row of ``vectors`` with the row at ``place``, in [0, 1], shape (n,)."""
    return np.asarray((vectors @ vectors[place].T).todense(), dtype=float).ravel().clip(0.0, 1.0)


def mean_cosine(vectors: sp.csr_matrix) -> NDArray[np.float64]:
    """The mean cosine of each row with all rows, in [0, 1], shape (n,)."""
    if not vectors.shape[0]:
        return np.zeros(0)
    centre = np.asarray(vectors.mean(axis=0)).ravel()
    return np.asarray(vectors @ centre, dtype=float)


def _hashing_vectorizer() -> HashingVectorizer:
    return HashingVectorizer(
        analyzer=_page_tokens, n_features=_FEATURES, alternate_sign=False, norm=None
    )


def _page_tokens(page: Page) -> list[str]:
    text, head = page_words(page)
    return text[:_MAX_TEXT_WORDS] + head


DUPLICATE_SIMILARITY = 0.9
"""Of pages that are this similar one is shown."""

MIN_GOOD_PAGES = 5
"""The most relevant pages are shown until this many good ones are known."""

_REASON_CYCLE: tuple[Reason, ...] = ("uncertain", "uncertain", "uncertain", "doubtful")
_DENSITY_POWER = 0.5
_HOST_POWER = 0.25

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class PagePool:
    """The n pages to select from; ``vectors`` has unit rows, shape (n, d)."""

    hosts: tuple[str, ...]
    vectors: sp.csr_matrix


class PageSelector:
    """Selects pages of a pool, and tracks which are labelled.

    ``relevance``, shape (n,) in [0, 1], and ``threshold`` are the model's; update both with the
    model.
    """

    def __init__(
        self, pool: PagePool, relevance: FloatArray, threshold: float, good: int = 0
    ) -> None:
        """``good`` counts good pages known outside the pool."""
        self.relevance = relevance
        self.threshold = threshold
        self._pool = pool
        self._good = good
        self._turn = 0
        self._typical = mean_cosine(pool.vectors) ** _DENSITY_POWER
        self._near = np.zeros(len(pool.hosts))
        self._near_good = np.zeros(len(pool.hosts))
        self._labelled = np.zeros(len(pool.hosts), dtype=bool)
        self._of_host: Counter[str] = Counter()

    @property
    def good_pages_needed(self) -> int:
        """How many good pages are missing before other pages are selected."""
        return max(MIN_GOOD_PAGES - self._good, 0)

    def add_label(self, place: int, verdict: Verdict) -> None:
        """Record the label of the page at ``place``, selected here or not."""
        alike = cosine_to(self._pool.vectors, place)
        self._near = np.maximum(self._near, alike)
        if verdict == "yes":
            self._near_good = np.maximum(self._near_good, alike)
            self._good += 1
        self._labelled[place] = True
        self._of_host[self._pool.hosts[place]] += 1

    def next(self) -> tuple[int, Reason] | None:
        """The page to show next, and why; None when none is left."""
        unlabelled = ~self._labelled
        if not unlabelled.any():
            return None
        fresh = unlabelled & (self._near < DUPLICATE_SIMILARITY)
        reason: Reason = (
            "high" if self.good_pages_needed else _REASON_CYCLE[self._turn % len(_REASON_CYCLE)]
        )
        self._turn += 1
        utility = _UTILITY[reason](self) * self._diversity()
        utility[~(fresh if fresh.any() else unlabelled)] = -1.0
        return int(np.argmax(utility)), reason

    def _diversity(self) -> FloatArray:
        crowd = np.array([1.0 + self._of_host[host] for host in self._pool.hosts])
        value: FloatArray = (1.0 - self._near) * self._typical / crowd**_HOST_POWER
        return value

    def _centred_relevance(self) -> FloatArray:
        """Relevance shifted so that the threshold is a half."""
        odds, at = _odds(self.relevance), _odds(np.array([self.threshold]))
        share: FloatArray = odds / (odds + at)
        return share

    def uncertain(self) -> FloatArray:
        """1 at the threshold, falling to 0 at certainty."""
        leaning = self._centred_relevance()
        return 4.0 * leaning * (1.0 - leaning)

    def doubtful(self) -> FloatArray:
        """High where the classification contradicts the similarity to good pages."""
        leaning = self._centred_relevance()
        return np.where(
            leaning >= 0.5, leaning * (1.0 - self._near_good), (1.0 - leaning) * self._near_good
        )

    def high(self) -> FloatArray:
        """The relevance."""
        return self.relevance


_UTILITY: dict[Reason, Callable[[PageSelector], FloatArray]] = {
    "uncertain": PageSelector.uncertain,
    "doubtful": PageSelector.doubtful,
    "high": PageSelector.high,
}


def _odds(probability: FloatArray) -> FloatArray:
    held = np.clip(probability, 1e-3, 1.0 - 1e-3)
    odds: FloatArray = held / (1.0 - held)
    return odds
