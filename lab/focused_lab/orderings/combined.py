"""Combined importance: similarity, backlinks and location.

Cho, Garcia-Molina, Page: Efficient Crawling through URL Ordering, WWW 1998, section 2: ``IC(p) = k1
* IS(p, q) + k2 * IB(p) + k3 * IL(p)``. The paper leaves constants and scales open. Ours, each part
in [0, 1]:

- IS, the similarity to the topic, is unknown before the fetch. The estimate adds the parent's
  relevance and the classifier's score of the anchor in log-odds; the best of several parents counts
  (section 3 of the paper uses anchors, too).
- IB, the backlink count ``n`` among the crawled pages: ``n / (n + 10)``.
- IL, the location: ``1 / (1 + s)`` for a path of ``s`` segments, fewer slashes are better. The
  paper's other examples (``.com``, the word ``home``) are left out.

With k1 = 0.6, k2 = k3 = 0.2. The priority is the score. All parts only grow, and enqueueing a link
again raises its priority, so no link has to be moved. Two numbers per known link are kept in memory
and start again when a crawl is resumed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from focused.classifier.calibration import expit
from focused.classifier.topic_classifier import TopicClassifier
from focused.crawl.policy import Policy
from focused.crawl.steps import SettledFetch
from focused.link_scoring.link_features import parent_log_odds
from focused.link_scoring.protocols import PageContext, ScoredLinks
from focused.orderings import PolicyInputs
from focused.web.page import Link

SIMILARITY, BACKLINKS, LOCATION = 0.6, 0.2, 0.2
_BACKLINKS_FOR_HALF = 10


def make_policy(inputs: PolicyInputs) -> Policy:
    """Create the policy from the classifier."""
    importance = CombinedImportance(inputs.classifier)
    return Policy("combined", importance, reprioritiser=importance)


class CombinedImportance:
    """Scores links by combined importance; a :class:`focused.link_scoring.protocols.LinkScorer`."""

    feature_names = ("similarity", "backlinks", "location")

    def __init__(self, classifier: TopicClassifier) -> None:
        self._classifier = classifier
        self._known: dict[str, tuple[float, int]] = {}

    def score(self, page_context: PageContext, links: Sequence[Link]) -> ScoredLinks:
        """Score the links of one classified page; ``features`` are IS, the backlink count, IL."""
        anchor_log_odds = self._classifier.score_texts([link.anchor for link in links])
        similarity = expit(parent_log_odds(page_context.classification) + anchor_log_odds)
        known = np.array([self._known.get(link.url, (0.0, 0)) for link in links]).reshape(-1, 2)
        similarity = np.maximum(similarity, known[:, 0])
        count = known[:, 1] + 1
        where = np.array([location_importance(link.url) for link in links])
        backlinks = count / (count + _BACKLINKS_FOR_HALF)
        scores = SIMILARITY * similarity + BACKLINKS * backlinks + LOCATION * where
        return ScoredLinks(scores, np.column_stack([similarity, count, where]))

    def after(self, settled: SettledFetch) -> Mapping[str, float]:
        """Count a page's links; no link has to be moved."""
        for url, found in settled.scored.items():
            similarity, count, _ = found.features
            self._known[url] = similarity, int(count)
        return {}


def location_importance(url: str) -> float:
    """IL of a normalised URL, in (0, 1]: 1 for a site's root."""
    _, _, path = url.split("?", 1)[0].partition("://")
    segments = [part for part in path.split("/")[1:] if part]
    return 1.0 / (1.0 + len(segments))
