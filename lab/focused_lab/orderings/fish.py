"""Fish-search: follow links while pages are relevant, and abandon paths that are not.

De Bra, Post: Information Retrieval in the World-Wide Web: Making Client-Based Searching Feasible,
WWW 1994 (also in Hersovici et al. 1998, figure 1). The waiting links are a list:

- the first 1.5 * width links of a relevant page go to the beginning, with the full ``depth`` left;
- the first ``width`` links of an irrelevant page go to the middle, with one less depth left than
  the page;
- all others go to the end: the rest of a page's links, and all links of an irrelevant page without
  depth left. They are fetched when there are no others.

Beginning and middle are stacks of pages: the links of the latest page come first, in page order.
Relevant means on topic by the classifier.

Width and depth are the user's in the paper; ours are 10 and 3, also for seeds. Fetched links don't
count for the width, because today's menus are longer and the same on every page. Slow servers lose
no depth: politeness slows all of them.

The depth left is stored with the link as a feature, over redirects and restarts; a link met again
keeps the larger. Scores are in [0.9, 0.95) at the beginning, [0.5, 0.55) in the middle and 0 at the
end, close enough that no link of a part is waited for. The depth of each followed link is kept in
memory and starts again when a crawl is resumed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from focused.crawl.policy import Policy
from focused.crawl.steps import SettledFetch
from focused.link_scoring.protocols import PageContext, ScoredLinks
from focused.orderings import PolicyInputs
from focused.web.page import Link

WIDTH = 10
DEPTH = 3
_RELEVANT_WIDTH_FACTOR = 1.5
_BEGINNING, _MIDDLE, _END = 0.9, 0.5, 0.0
# Range of the bonus of later pages, below what a crawl waits for.
_RECENCY_RANGE = 0.05
_PAGES_FOR_HALF_RANGE = 1000.0


def make_policy(inputs: PolicyInputs) -> Policy:
    """Create the policy."""
    school = FishSearch()
    return Policy("fish", school, reprioritiser=school)


class FishSearch:
    """Scores links by their part of the list; a
    :class:`focused.link_scoring.protocols.LinkScorer`.
    """

    feature_names = ("depth_left",)

    def __init__(self, width: int = WIDTH, depth: int = DEPTH) -> None:
        self._width = width
        self._depth = depth
        self._depth_left: dict[str, int] = {}
        self._fetched: set[str] = set()
        self._pages = 0

    def score(self, page_context: PageContext, links: Sequence[Link]) -> ScoredLinks:
        """Score the links of one classified page."""
        part, room, depth_left = self._brood(page_context)
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
        """Record which links are followed, and their depth left; no link has to be moved."""
        self._fetched.add(settled.link.url)
        self._depth_left.pop(settled.link.url, None)
        for url, found in settled.scored.items():
            if found.score > _END:
                self._depth_left[url] = int(found.features[0])
        self._pages += settled.page is not None
        return {}

    def _brood(self, page_context: PageContext) -> tuple[float, int, int]:
        """The part of the list for a page's links, how many of them, and their depth left."""
        if page_context.classification.on_topic:
            return _BEGINNING, int(_RELEVANT_WIDTH_FACTOR * self._width), self._depth
        own = int(page_context.features[0]) if len(page_context.features) else self._depth
        if own == 0:
            return _END, 0, 0
        return _MIDDLE, self._width, own - 1
