"""The apprentice: how relevant will a link's target be?

It adds up its features with fixed weights and turns the sum into a
probability. Its evidence is that of Shark-search (Hersovici and others 1998:
anchor, context, inherited relevance) in log-odds, and what the crawl itself
has taught: after each judged page the words of the link that led there are
worth more or less (in the spirit of Chakrabarti, Punera, Subramanyam, WWW
2002). What was scored before that is scored again when its turn comes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from focused.learning.calibration import expit
from focused.learning.features import FEATURE_NAMES, link_features
from focused.learning.link_words import LinkWords
from focused.learning.protocols import ScoredLinks, TopicJudge, Visit
from focused.learning.topic_classifier import sigmoid
from focused.web.page import Link

BIAS = -2.0
"""Most links of a page lead elsewhere: menus, indexes, the neighbours of the topic."""

# Between the fits on the links of two recorded webs (docs/classifier.md).
WEIGHTS: Mapping[str, float] = MappingProxyType(
    {
        "parent": 0.25,
        "inherited": 0.15,
        "anchor": 0.2,
        "context": 0.1,
        "url": 0.3,
        "words": 0.5,
        "other_host": -0.3,  # by reason: a site's own pages are more often of one topic
    }
)
_WORDS = FEATURE_NAMES.index("words")


class Apprentice:
    """A :class:`focused.learning.protocols.LearningScorer`; one crawl's own."""

    def __init__(self, judge: TopicJudge, without: str | None = None) -> None:
        """``without`` names a feature that is given no weight, to see what it is worth."""
        self._judge = judge
        self._words = LinkWords()
        self._weights = np.array([WEIGHTS[name] * (name != without) for name in FEATURE_NAMES])

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the feature columns, as :mod:`focused.learning.features` explains them."""
        return FEATURE_NAMES

    def score(self, visit: Visit, links: Sequence[Link]) -> ScoredLinks:
        """Score links of one judged page in one batch."""
        features = link_features(self._judge, self._words, visit, links)
        return ScoredLinks(scores=expit(BIAS + features @ self._weights), features=features)

    def learn(self, url: str, anchor: str, relevance: float) -> None:
        """Take in how relevant the target of a followed link was judged to be."""
        self._words.learn(url, anchor, relevance)

    def rescore(
        self, url: str, anchor: str, evidence: Sequence[float]
    ) -> tuple[float, tuple[float, ...]]:
        """Score a link anew by what was learned since; return score and evidence."""
        now = list(evidence)
        now[_WORDS] = self._words.evidence(url, anchor)
        return sigmoid(BIAS + float(self._weights @ np.array(now))), tuple(now)
