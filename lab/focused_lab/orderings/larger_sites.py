"""Larger sites first: the site with most waiting pages.

Baeza-Yates, Castillo, Marin, Rodriguez: Crawling a Country: Better Strategies than Breadth-First
for Web Page Ordering, WWW 2005: sites are ordered by their number of known unfetched pages, so that
the crawl does not end with a few large sites. A site is a host; within one the earliest found comes
first.

The priority is the logarithm of that number (:mod:`.link_values`), given to one
link of each site (:mod:`.link_values`). Redirect targets get their site's value at
the time the link was found. An entry per known link is kept in memory; a resumed crawl starts
again, and may keep an already fetched page as its site's next one.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from numpy.typing import ArrayLike

from focused.crawl.policy import Policy
from focused.crawl.steps import SettledFetch
from focused.link_scoring.protocols import PageContext
from focused.orderings import FunctionScorer, PolicyInputs
from focused.web.page import Link
from focused.web.urls import host_of
from focused_lab.orderings.link_values import (
    MAX_PRIORITY,
    GroupHeads,
    order_by_log_value,
    value_to_score,
)


def make_policy(inputs: PolicyInputs) -> Policy:
    """Create the policy."""
    sites = SiteSizes()
    return Policy(
        "larger-sites",
        FunctionScorer(sites.scores),
        ordering=order_by_log_value,
        reprioritiser=sites,
    )


class SiteSizes:
    """Counts the waiting links of each site, and tracks the next one."""

    def __init__(self) -> None:
        self._heads: GroupHeads[str] = GroupHeads(rest=-MAX_PRIORITY)

    def scores(self, page_context: PageContext, links: Sequence[Link]) -> ArrayLike:
        """Score new links by the size of their site, known ones by 0: they keep their place."""
        new = [None if self._heads.knows(link.url) else host_of(link.url) for link in links]
        more = Counter(new)
        return value_to_score(
            [0 if host is None else self._heads.waiting(host) + more[host] for host in new]
        )

    def after(self, settled: SettledFetch) -> Mapping[str, float]:
        """Update the counts; move the head of each site that changed."""
        self._heads.gone(settled.link.url)
        for url in settled.scored:
            self._heads.add(host_of(url), url)
        return self._heads.moves(lambda host: math.log(self._heads.waiting(host)))
