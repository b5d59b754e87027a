"""A link scorer made of one function, for policies that need no features."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from focused.learning.protocols import ScoredLinks, Visit
from focused.web.page import Link

Scores = Callable[[Visit, Sequence[Link]], ArrayLike]
"""``(page as visited, its links) -> scores in [0, 1], shape (n,) or one for all``."""


class PerLink:
    """Scores links by ``scores`` alone; a :class:`focused.learning.protocols.LinkScorer`."""

    feature_names: tuple[str, ...] = ()

    def __init__(self, scores: Scores) -> None:
        self._scores = scores

    def score(self, visit: Visit, links: Sequence[Link]) -> ScoredLinks:
        """Score links of one judged page in one batch."""
        scores = np.broadcast_to(
            np.asarray(self._scores(visit, links), dtype=np.float64), (len(links),)
        )
        return ScoredLinks(scores, np.empty((len(links), 0)))


def unscored() -> PerLink:
    """Every link is worth the same."""
    return PerLink(lambda visit, links: 0.0)
