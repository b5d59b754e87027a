"""Fish-search: fish that find food multiply; those that do not die out.

De Bra, Post: Information Retrieval in the World-Wide Web: Making Client-Based
Searching Feasible, WWW 1994 (the algorithm also in Hersovici et al. 1998,
figure 1). Waiting links are a list with a beginning, a middle and an end:

- the first 1.5 * width links of a relevant page go to the beginning and may go
  ``depth`` further;
- the first ``width`` links of a page that is not relevant go to the middle and
  may go one less far than the page itself;
- all others go to the end: the rest of a page's links, and all links of an
  irrelevant page that may go no further. These fish have died; their links are
  fetched when there are no others.

Beginning and middle are stacks of pages: the links of the latest page come
first, in the order of the page. Relevant is what the classifier finds on topic.

Width and depth are the user's in the paper; ours are 10 and 3, seeds begin with
depth 3. Links that have been fetched do not count for the width: menus of
today's sites are longer than that, and the same on every page. Slow servers
lose no depth here: politeness keeps all of them slow.

How far a link may go travels with it as a feature, over redirects and
restarts, too; a link met again keeps the better. Scores lie in [0.9, 0.95) for
the beginning, in [0.5, 0.55) for the middle, and are 0 at the end; they are the
priorities, so that within a part no link is waited for. Memory: a number a link
that is followed, in this process: a crawl that is taken up again counts anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from focused.crawl.policy import Policy
from focused.crawl.steps import SettledFetch
from focused.link_scoring.protocols import PageContext, ScoredLinks
from focused.orderings.base import PolicyInputs
from focused.web.page import Link

WIDTH = 10
DEPTH = 3
_RELEVANT_WIDTH_FACTOR = 1.5
_BEGINNING, _MIDDLE, _END = 0.9, 0.5, 0.0
# How much later pages come first by: less than is waited for.
_RECENCY_RANGE = 0.05
_PAGES_FOR_HALF_RANGE = 1000.0


def policy(inputs: PolicyInputs) -> Policy:
    """Make the policy; relevance comes with each page's classification."""
    school = FishSearch()
    return Policy("fish", school, reprioritiser=school)


class FishSearch:
    """Scores links by where they go in the list; a LinkScorer that knows its fish."""

    feature_names = ("depth_left",)

    def __init__(self, width: int = WIDTH, depth: int = DEPTH) -> None:
        self._width = width
        self._depth = depth
        self._depth_left: dict[str, int] = {}
        self._fetched: set[str] = set()
        self._pages = 0

    def score(self, visit: PageContext, links: Sequence[Link]) -> ScoredLinks:
        """Score links of one judged page in one batch."""
        part, room, depth_left = self._brood(visit)
        recent = self._pages / (self._pages + _PAGES_FOR_HALF_RANGE)
        scores = np.zeros(len(links))
        depths = np.zeros((len(links), 1))
        for i, link in enumerate(links):
            if room == 0 or link.url in self._fetched:
                continue
            room -= 1
            scores[i] = part + _RECENCY_RANGE * recent
            depths[i, 0] = max(depth_left, self._depth_left.get(link.url, 0))
        return ScoredLinks(scores, depths)

    def after(self, settled: SettledFetch) -> Mapping[str, float]:
        """Remember which links are followed, and how far; none has to be moved."""
        self._fetched.add(settled.link.url)
        self._depth_left.pop(settled.link.url, None)
        for url, found in settled.scored.items():
            if found.score > _END:
                self._depth_left[url] = int(found.features[0])
        self._pages += settled.page is not None
        return {}

    def _brood(self, visit: PageContext) -> tuple[float, int, int]:
        """Where a page's links go, how many of them, and how far those may go."""
        if visit.classification.on_topic:
            return _BEGINNING, int(_RELEVANT_WIDTH_FACTOR * self._width), self._depth
        own = int(visit.features[0]) if len(visit.features) else self._depth
        if own == 0:
            return _END, 0, 0
        return _MIDDLE, self._width, own - 1
