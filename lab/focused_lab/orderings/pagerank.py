"""PageRank on the graph crawled so far, recomputed at growing intervals.

Cho, Garcia-Molina, Page: Efficient Crawling through URL Ordering, WWW 1998, sections 2 and 3:
``IR(p) = (1 - d) + d * sum(IR(t) / c(t))`` over the pages ``t`` with ``c(t)`` links that link to
``p``, ``d`` = 0.9. The mean rank of all known pages is 1. A page without known links, as any
waiting one, counts as linking to every page.

Ranks are recomputed every hundred pages, later after every further quarter
(:func:`.link_values.next_update`), so that the cost stays near-linear; links whose
rank has changed by a tenth are then moved. In between a new link gets its share of its parents'
ranks, as in the partial PageRank of Baeza-Yates, Castillo, Marin, Rodriguez: Crawling a Country,
WWW 2005. A redirect counts as a link.

The priority is the logarithm of the rank (:mod:`.link_values`). The graph, 8 bytes
per link, is kept in memory; a resumed crawl starts a new one.
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
from focused.orderings import FunctionScorer, PolicyInputs
from focused.web.page import Link
from focused_lab.orderings.link_values import (
    LinkValues,
    next_update,
    order_by_log_value,
    value_to_score,
)

DAMPING = 0.9
_TOLERANCE = 1e-5
_MAX_ITERATIONS = 200


def make_policy(inputs: PolicyInputs) -> Policy:
    """Create the policy."""
    ranks = CrawlPageRank()
    return Policy(
        "pagerank", FunctionScorer(ranks.scores), ordering=order_by_log_value, reprioritiser=ranks
    )


class CrawlPageRank:
    """The link graph of the crawl with the rank of every page."""

    def __init__(self) -> None:
        self._ledger = LinkValues()
        self._sources = array("i")
        self._targets = array("i")
        self._pages = 0
        self._step_at = next_update(0)

    def scores(self, page_context: PageContext, links: Sequence[Link]) -> ArrayLike:
        """Score by the ranks including this page's links."""
        share = self._share(page_context.page.url, len(links))
        return value_to_score([self._with(share, link.url) for link in links])

    def after(self, settled: SettledFetch) -> Mapping[str, float]:
        """Add a page's links to the graph; move links when an update is due."""
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

    Link ``i`` leads from page ``sources[i]`` to page ``targets[i]``. Ends when an iteration changes
    the ranks by less than 0.00001 on average.
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
