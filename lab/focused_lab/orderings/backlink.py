"""Backlink count: prefer the link that most crawled pages have.

Cho, Garcia-Molina, Page: Efficient Crawling through URL Ordering, WWW 1998: the metric IB'(p) of
section 3 counts the links to p on the pages crawled so far. A page counts once; duplicates and
nofollow links don't count. Ties go to the earliest found (the paper breaks none).

The priority is the logarithm of the count (:mod:`.link_values`). Counts only grow,
and enqueueing a link again raises its priority, so no link has to be moved. The counts, a number
per known link, are kept in memory and start again when a crawl is resumed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from numpy.typing import ArrayLike

from focused.crawl.policy import Policy
from focused.crawl.steps import SettledFetch
from focused.link_scoring.protocols import PageContext
from focused.orderings import FunctionScorer, PolicyInputs
from focused.web.page import Link
from focused_lab.orderings.link_values import order_by_log_value, value_to_score


def make_policy(inputs: PolicyInputs) -> Policy:
    """Create the policy."""
    backlinks = BacklinkCounts()
    scorer = FunctionScorer(backlinks.scores)
    return Policy("backlink", scorer, ordering=order_by_log_value, reprioritiser=backlinks)


class BacklinkCounts:
    """Counts how many of the crawled pages have each link."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def scores(self, page_context: PageContext, links: Sequence[Link]) -> ArrayLike:
        """Score by the counts including this page's links."""
        return value_to_score([self.counts[link.url] + 1 for link in links])

    def after(self, settled: SettledFetch) -> Mapping[str, float]:
        """Count the links of a page; no link has to be moved."""
        self.counts.update(settled.scored.keys())
        return {}
