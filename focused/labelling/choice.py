"""Which page's label helps most.

While hardly a good page is known, the most relevant pages come first, for without good
ones nothing can be learned. After that three turns in four go to the first of these reasons:

uncertain
    Relevance near the threshold (Lewis, Gale 1994, "A sequential algorithm for training
    text classifiers").
doubtful
    Called on topic, but unlike all pages known to be good; or called off topic, but like one.

Going on with the most relevant pages makes worse models than drawing at random does:
``python benchmarks/labelling.py --choices random,high,ours``.

Each reason's worth is multiplied by what keeps a batch from repeating itself: the distance to
the nearest page that was labelled, how typical the page is of the pool (Settles, Craven
2008, "information density"), and how few pages of its host were labelled. Pages nearly
like one that was labelled are passed over.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from focused.labelling.likeness import density, likeness_to
from focused.labels.label import Reason, Verdict

SAME = 0.9
"""Pages this much alike tell the same: one of them is shown."""

FEW_GOOD = 5
"""Until so many good pages are known, the most relevant ones are shown."""

_TURNS: tuple[Reason, ...] = ("uncertain", "uncertain", "uncertain", "doubtful")
_DENSITY_POWER = 0.5
_HOST_POWER = 0.25

Values = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Pool:
    """Pages to choose from, n of them. ``vectors`` has rows of length one, shape (n, d)."""

    hosts: tuple[str, ...]
    vectors: sp.csr_matrix


class Choice:
    """Chooses among the pages of a pool, and learns which were labelled.

    ``relevance`` (shape (n,), in [0, 1]) and ``threshold`` are the model's; both may be
    changed when the model is.
    """

    def __init__(self, pool: Pool, relevance: Values, threshold: float, good: int = 0) -> None:
        """``good`` is how many good pages are known beside those of the pool."""
        self.relevance = relevance
        self.threshold = threshold
        self._pool = pool
        self._good = good
        self._turn = 0
        self._typical = density(pool.vectors) ** _DENSITY_POWER
        self._near = np.zeros(len(pool.hosts))
        self._near_good = np.zeros(len(pool.hosts))
        self._labelled = np.zeros(len(pool.hosts), dtype=bool)
        self._of_host: Counter[str] = Counter()

    @property
    def wanted(self) -> int:
        """How many more good pages are to be known before anything but them is looked for."""
        return max(FEW_GOOD - self._good, 0)

    def told(self, place: int, verdict: Verdict) -> None:
        """Take in what was said of the page at ``place``; also of one not chosen here."""
        alike = likeness_to(self._pool.vectors, place)
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
        fresh = open_to & (self._near < SAME)
        reason: Reason = "high" if self.wanted else _TURNS[self._turn % len(_TURNS)]
        self._turn += 1
        worth = _WORTH[reason](self) * self._variety()
        worth[~(fresh if fresh.any() else open_to)] = -1.0
        return int(np.argmax(worth)), reason

    def _variety(self) -> Values:
        crowd = np.array([1.0 + self._of_host[host] for host in self._pool.hosts])
        value: Values = (1.0 - self._near) * self._typical / crowd**_HOST_POWER
        return value

    def _shifted(self) -> Values:
        """Relevance with the threshold moved to a half: which way the verdict leans."""
        odds, at = _odds(self.relevance), _odds(np.array([self.threshold]))
        share: Values = odds / (odds + at)
        return share

    def uncertain(self) -> Values:
        """One at the threshold, falling to nought at certainty."""
        leaning = self._shifted()
        return 4.0 * leaning * (1.0 - leaning)

    def doubtful(self) -> Values:
        """High where the verdict and the likeness to good pages speak against each other."""
        leaning = self._shifted()
        return np.where(
            leaning >= 0.5, leaning * (1.0 - self._near_good), (1.0 - leaning) * self._near_good
        )

    def high(self) -> Values:
        """The relevance."""
        return self.relevance


_WORTH: dict[Reason, Callable[[Choice], Values]] = {
    "uncertain": Choice.uncertain,
    "doubtful": Choice.doubtful,
    "high": Choice.high,
}


def _odds(probability: Values) -> Values:
    held = np.clip(probability, 1e-3, 1.0 - 1e-3)
    odds: Values = held / (1.0 - held)
    return odds
