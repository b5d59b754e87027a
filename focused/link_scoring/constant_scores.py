"""A classifier and a scorer that know nothing: for fetching samples before a model exists."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from focused.link_scoring.protocols import PageContext, ScoredLinks
from focused.web.page import Classification, Link, Page


class ConstantClassifier:
    """Finds every page as likely on topic as not, and none known."""

    threshold = 0.5

    def classify(self, page: Page) -> Classification:
        """Answer 0.5."""
        return Classification(0.5, on_topic=False, known=False)

    def score_texts(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Answer no features."""
        return np.zeros(len(texts))


class ConstantLinkScorer:
    """Finds every link as promising as any other."""

    feature_names: tuple[str, ...] = ()

    def score(self, visit: PageContext, links: Sequence[Link]) -> ScoredLinks:
        """Answer 0.5 for each link, from no features."""
        return ScoredLinks(np.full(len(links), 0.5), np.zeros((len(links), 0)))
