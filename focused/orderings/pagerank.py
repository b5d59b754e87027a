"""By PageRank on the graph that the crawl has seen, computed again in growing steps.

Cho, Garcia-Molina, Page: Efficient Crawling through URL Ordering, WWW 1998,
section 2 (the metric IR) and section 3:
``IR(p) = (1 - d) + d * sum(IR(t) / c(t))`` over the pages ``t`` that link to
``p``, ``c(t)`` links each, with ``d`` = 0.9. So the mean rank of all known
pages, fetched or not, is 1. A page without known links, as are all that wait,
is taken to link to every page alike.

The ranks are computed after every hundred pages, later after every quarter
more (:func:`focused.orderings.link_values.next_update`), so that a crawl's cost stays
near-linear; then all links whose rank has changed by a tenth are moved. Between
the steps a new link has what it would get from its parents as they are ranked,
as in the partial PageRank of Baeza-Yates, Castillo, Marin, Rodriguez: Crawling
a Country, WWW 2005. A redirect counts as a link.

The priority is the rank's logarithm (:mod:`focused.orderings.link_values`). Memory:
the graph, 8 bytes a link of it, in this process: a crawl that is taken up
again begins a new one.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from focused.crawl.policy import Policy
from focused.crawl.steps import SettledFetch
from focused.link_scoring.protocols import PageContext
from focused.orderings.base import FunctionScorer, PolicyInputs
from focused.orderings.link_values import (
    LinkValues,
    next_update,
    order_by_log_value,
    value_to_score,
)
from focused.web.page import Link

DAMPING = 0.9
_TOLERANCE = 1e-5
_MAX_ITERATIONS = 200


def policy(inputs: PolicyInputs) -> Policy:
    """Make the policy; needs no aid."""
    ranks = CrawlPageRank()
    return Policy(
        "pagerank", FunctionScorer(ranks.scores), ordering=order_by_log_value, reprioritiser=ranks
    )


class CrawlPageRank:
    """The graph of the crawl, and the rank of every page in it."""

    def __init__(self) -> None:
        self._ledger = LinkValues()
        self._sources = array("i")
        self._targets = array("i")
        self._pages = 0
        self._step_at = next_update(0)

    def scores(self, visit: PageContext, links: Sequence[Link]) -> ArrayLike:
        """Score by the ranks as they are with this page's links."""
        share = self._share(visit.page.url, len(links))
        return value_to_score([self._with(share, link.url) for link in links])

    def after(self, settled: SettledFetch) -> Mapping[str, float]:
        """Add a page's links to the graph; move links when a step is due."""
        link = settled.link
        share = self._share(link.url, len(settled.scored))
        page = self._ledger.settle(link.url)
        self._ledger.amounts[page] = self._ledger.amounts[page] or 1.0
        if link.hops and link.parent is not None:
            self._add(self._ledger.number(link.parent), page)
        for url in settled.scored:
            self._add(page, self._earn(share, url))
        if settled.page is None:
            return {}
        self._pages += 1
        return self._step() if self._pages >= self._step_at else {}

    def _share(self, url: str, links: int) -> float:
        """What each of a page's links gets; the page itself may be unknown, as seeds are."""
        number = self._ledger.numbers.get(url)
        rank = 1.0 if number is None else self._ledger.amounts[number]
        return DAMPING * rank / max(links, 1)

    def _with(self, share: float, url: str) -> float:
        number = self._ledger.numbers.get(url)
        before = 1.0 - DAMPING if number is None else self._ledger.amounts[number]
        return before + share

    def _earn(self, share: float, url: str) -> int:
        known = self._ledger.numbers.get(url)
        rank = self._with(share, url)
        if known is None or self._ledger.waits(known):
            return self._ledger.queue(url, rank)
        self._ledger.amounts[known] = rank
        return known

    def _add(self, source: int, target: int) -> None:
        self._sources.append(source)
        self._targets.append(target)

    def _step(self) -> Mapping[str, float]:
        self._step_at = next_update(self._pages)
        ranks = page_rank(
            np.array(self._sources), np.array(self._targets), np.array(self._ledger.amounts)
        )
        self._ledger.amounts = array("d", ranks.tobytes())
        return self._ledger.moves()


def page_rank(
    sources: NDArray[np.intc], targets: NDArray[np.intc], start: NDArray[np.float64]
) -> NDArray[np.float64]:
    """PageRank of each page, shape (n,), mean 1, by power iteration from ``start``, shape (n,).

    Link ``i`` leads from page ``sources[i]`` to page ``targets[i]``. Ends when
    a round changes the ranks by less than 0.00001 in the mean.
    """
    pages = start.size
    links = np.bincount(sources, minlength=pages)
    shares = csr_array((1.0 / links[sources], (targets, sources)), shape=(pages, pages))
    leads_nowhere = links == 0
    ranks = start * (pages / start.sum())
    for _ in range(_MAX_ITERATIONS):
        before = ranks
        to_all = float(before[leads_nowhere].sum()) / pages
        ranks = (1.0 - DAMPING) + DAMPING * (shares @ before + to_all)
        if float(np.abs(ranks - before).mean()) < _TOLERANCE:
            break
    return np.asarray(ranks, dtype=np.float64)
