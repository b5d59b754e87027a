"""The apprentice: how relevant will a link's target be?

This first one does not learn yet: it adds up its features with fixed weights
and turns the sum into a probability. Its evidence is that of Shark-search
(Hersovici and others 1998: anchor, context, the parent's relevance) in
log-odds; the weights are less than one because the pieces of evidence repeat
each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from focused.learning.calibration import expit
from focused.learning.features import FEATURE_NAMES, link_features
from focused.learning.protocols import ScoredLinks, TopicJudge, Visit
from focused.web.page import Link

BIAS = -1.8
"""Most links of a page lead elsewhere: menus, indexes, the neighbours of the topic."""

# Near a logistic regression on the links of FOLDOC, fourteen topics (docs/classifier.md). Two
# depart from it: parent is higher and context not zero, for FOLDOC's pages are tiny (the context
# is the page) and harder to judge than the pages of most webs.
WEIGHTS: Mapping[str, float] = MappingProxyType(
    {
        "parent": 0.4,
        "anchor": 0.3,
        "context": 0.15,
        "url": 0.4,
        "other_host": -0.3,  # by reason: a site's own pages are more often of one topic
        "nofollow": -0.5,  # by reason: the author does not vouch for it
    }
)


class FixedApprentice:
    """Scores links by fixed weights; a :class:`focused.learning.protocols.LinkScorer`."""

    def __init__(self, judge: TopicJudge, without: str | None = None) -> None:
        """``without`` names a feature that is given no weight, to see what it is worth."""
        self._judge = judge
        self._weights = np.array([WEIGHTS[name] * (name != without) for name in FEATURE_NAMES])

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the feature columns, as :mod:`focused.learning.features` explains them."""
        return FEATURE_NAMES

    def score(self, visit: Visit, links: Sequence[Link]) -> ScoredLinks:
        """Score links of one judged page in one batch."""
        features = link_features(self._judge, visit.page, visit.judgement, links)
        return ScoredLinks(scores=expit(BIAS + features @ self._weights), features=features)
