"""A judge and a scorer that know nothing: for fetching samples before a model exists."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from focused.learning.protocols import ScoredLinks, Visit
from focused.web.page import Judgement, Link, Page


class UninformedJudge:
    """Finds every page as likely on topic as not, and none known."""

    threshold = 0.5

    def judge(self, page: Page) -> Judgement:
        """Answer 0.5."""
        return Judgement(0.5, on_topic=False, known=False)

    def verdicts(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Answer no evidence."""
        return np.zeros(len(texts))


class UninformedScorer:
    """Finds every link as promising as any other."""

    feature_names: tuple[str, ...] = ()

    def score(self, visit: Visit, links: Sequence[Link]) -> ScoredLinks:
        """Answer 0.5 for each link, from no features."""
        return ScoredLinks(np.full(len(links), 0.5), np.zeros((len(links), 0)))
