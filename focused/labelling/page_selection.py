"""Which pages are like which: vectors of the words of pages, without any model.

Words weigh log(1 + count) times their inverse document frequency among the pages at
hand, so that what all of them share (menus, licences) makes none alike.
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

from focused.labels.label import Reason, Verdict
from focused.text.documents import page_words
from focused.web.page import Page

_FEATURES = 1 << 18
_MAX_TEXT_WORDS = 3_000


def page_vectors(pages: Iterable[Page]) -> sp.csr_matrix:
    """One row a page, of length one (or zero, of a page without words), shape (n, 2**18)."""
    hashing = _hashing_vectorizer()
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
    wanted = _hashing_vectorizer().transform([Page("", text=" ".join(words))]).indices
    found = (vectors[:, wanted] > 0).sum(axis=1)
    return np.asarray(found == len(wanted)).ravel() & bool(len(wanted))


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
"""Pages this much alike tell the same: one of them is shown."""

MIN_GOOD_PAGES = 5
"""Until so many good pages are known, the most relevant ones are shown."""

_REASON_CYCLE: tuple[Reason, ...] = ("uncertain", "uncertain", "uncertain", "doubtful")
_DENSITY_POWER = 0.5
_HOST_POWER = 0.25

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class PagePool:
    """Pages to choose from, n of them. ``vectors`` has rows of length one, shape (n, d)."""

    hosts: tuple[str, ...]
    vectors: sp.csr_matrix


class PageSelector:
    """Chooses among the pages of a pool, and learns which were labelled.

    ``relevance`` (shape (n,), in [0, 1]) and ``threshold`` are the model's; both may be
    changed when the model is.
    """

    def __init__(
        self, pool: PagePool, relevance: FloatArray, threshold: float, good: int = 0
    ) -> None:
        """``good`` is how many good pages are known beside those of the pool."""
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
        """How many more good pages are to be known before anything but them is looked for."""
        return max(MIN_GOOD_PAGES - self._good, 0)

    def add_label(self, place: int, verdict: Verdict) -> None:
        """Take in what was said of the page at ``place``; also of one not chosen here."""
        alike = cosine_to(self._pool.vectors, place)
        self._near = np.maximum(self._near, alike)
        if verdict == "yes":
            self._near_good = np.maximum(self._near_good, alike)
            self._good += 1
        self._labelled[place] = True
        self._of_host[self._pool.hosts[place]] += 1

    def next(self) -> tuple[int, Reason] | None:
        """The page to show next, and why; None when none is left."""
        open_to = ~self._labelled
        if not open_to.any():
            return None
        fresh = open_to & (self._near < DUPLICATE_SIMILARITY)
        reason: Reason = (
            "high" if self.good_pages_needed else _REASON_CYCLE[self._turn % len(_REASON_CYCLE)]
        )
        self._turn += 1
        worth = _UTILITY[reason](self) * self._variety()
        worth[~(fresh if fresh.any() else open_to)] = -1.0
        return int(np.argmax(worth)), reason

    def _variety(self) -> FloatArray:
        crowd = np.array([1.0 + self._of_host[host] for host in self._pool.hosts])
        value: FloatArray = (1.0 - self._near) * self._typical / crowd**_HOST_POWER
        return value

    def _shifted(self) -> FloatArray:
        """Relevance with the threshold moved to a half: which way the verdict leans."""
        odds, at = _odds(self.relevance), _odds(np.array([self.threshold]))
        share: FloatArray = odds / (odds + at)
        return share

    def uncertain(self) -> FloatArray:
        """One at the threshold, falling to nought at certainty."""
        leaning = self._shifted()
        return 4.0 * leaning * (1.0 - leaning)

    def doubtful(self) -> FloatArray:
        """High where the verdict and the likeness to good pages speak against each other."""
        leaning = self._shifted()
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
