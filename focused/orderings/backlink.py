"""By backlink count: the link that most of the crawled pages have.

Cho, Garcia-Molina, Page: Efficient Crawling through URL Ordering, WWW 1998,
section 2 (the metric IB) and section 3: the crawler cannot know IB(p) and
orders by IB'(p), the number of links to p on the pages crawled so far. A page
counts once, however often it links; copies of a page do not count, and
neither do links that ask not to be followed. The paper breaks no ties; here
the earlier found comes first.

The priority is the logarithm of the count (:mod:`focused.orderings.link_values`).
Counts only grow, and a link's push with its new count lifts it, so no link
has to be moved. Memory: a number a known link, in this process: a crawl that
is taken up again counts anew.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from numpy.typing import ArrayLike

from focused.crawl.policy import Policy
from focused.crawl.steps import SettledFetch
from focused.link_scoring.protocols import PageContext
from focused.orderings.base import FunctionScorer, PolicyInputs
from focused.orderings.link_values import order_by_log_value, value_to_score
from focused.web.page import Link


def policy(inputs: PolicyInputs) -> Policy:
    """Make the policy; needs no aid."""
    backlinks = BacklinkCounts()
    scorer = FunctionScorer(backlinks.scores)
    return Policy("backlink", scorer, ordering=order_by_log_value, reprioritiser=backlinks)


class BacklinkCounts:
    """Counts how many of the crawled pages have each link."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def scores(self, visit: PageContext, links: Sequence[Link]) -> ArrayLike:
        """Score by the counts as they are with this page's links."""
        return value_to_score([self.counts[link.url] + 1 for link in links])

    def after(self, settled: SettledFetch) -> Mapping[str, float]:
        """Count the links of a page; none has to be moved."""
        self.counts.update(settled.scored.keys())
        return {}
