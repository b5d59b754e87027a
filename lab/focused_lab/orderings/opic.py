"""OPIC: order by the cash that a link received from fetched pages.

Abiteboul, Preda, Cobena: Adaptive On-Line Page Importance Computation, WWW 2003. A fetched page
distributes its cash equally among the pages it links to; the page with most cash is fetched next
(the greedy strategy). A virtual page, linked with every page in both directions, keeps the cash
flowing.

Differences, because no page is fetched twice and the size of the web is unknown:

- cash comes from the seeds, 1 each, not from all pages;
- cash for fetched pages, and from pages without links and failed links, goes to the virtual page;
- the virtual page pays at intervals (:func:`.link_values.next_update`), not when
  it has most, and only waiting links;
- a redirect passes its cash to its target; if that was known already, the cash is lost.

The cash of waiting links, virtual page and redirects always adds up to the number of fetched seeds.
The paper's history, for pages fetched again, is left out.

The priority is the logarithm of the cash (:mod:`.link_values`). An entry per known
link is kept in memory; a resumed crawl pays by the scores of its queued links.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from numpy.typing import ArrayLike

from focused.crawl.policy import Policy
from focused.crawl.steps import SettledFetch
from focused.link_scoring.protocols import PageContext
from focused.orderings import FunctionScorer, PolicyInputs
from focused.web.page import Link, Page
from focused_lab.orderings.link_values import (
    LinkValues,
    next_update,
    order_by_log_value,
    score_to_value,
    value_to_score,
)

SEED_CASH = 1.0


def make_policy(inputs: PolicyInputs) -> Policy:
    """Create the policy."""
    bank = OpicCash()
    return Policy(
        "opic", FunctionScorer(bank.scores), ordering=order_by_log_value, reprioritiser=bank
    )


class OpicCash:
    """The cash of all links."""

    def __init__(self) -> None:
        self._ledger = LinkValues()
        self._virtual_page = 0.0
        self._handed_on: dict[str, float] = {}
        self._pages = 0
        self._step_at = next_update(0)

    @property
    def cash(self) -> float:
        """The total cash."""
        waiting = sum(self._ledger.amounts[number] for number in self._ledger.waiting())
        return float(waiting) + self._virtual_page + sum(self._handed_on.values())

    def scores(self, page_context: PageContext, links: Sequence[Link]) -> ArrayLike:
        """Score by the cash after this page has paid."""
        purse = self._expected(page_context.page.url, page_context.score)
        share = purse / _count_payees(page_context.page, len(links))
        return value_to_score([self._cash_of(link.url) + share for link in links])

    def after(self, settled: SettledFetch) -> Mapping[str, float]:
        """Distribute the link's cash; return links that got another amount than expected."""
        link = settled.link
        expected = self._expected(link.url, link.score)
        purse = self._cash_of(link.url)
        if link.parent is None:
            purse += SEED_CASH
        elif link.hops:
            purse += self._handed_on.pop(link.parent, 0.0)
        self._ledger.amounts[self._ledger.settle(link.url)] = 0.0
        if settled.outcome == "redirected":
            self._handed_on[link.url] = purse
            return {}
        if settled.page is None:
            self._virtual_page += purse
            return {}
        paid = self._pay(settled.page, list(settled.scored), purse)
        self._pages += 1
        moved = {} if purse == expected else dict(map(self._ledger.place, paid))
        return {**moved, **self._step()} if self._pages >= self._step_at else moved

    def _pay(self, page: Page, urls: Sequence[str], purse: float) -> list[int]:
        share = purse / _count_payees(page, len(urls))
        self._virtual_page += share
        if page.refresh is not None:
            self._handed_on[page.url] = share
        paid = []
        for url in urls:
            known = self._ledger.numbers.get(url)
            if known is None or self._ledger.waits(known):
                paid.append(self._ledger.queue(url, self._cash_of(url) + share))
            else:
                self._virtual_page += share
        return paid

    def _cash_of(self, url: str) -> float:
        number = self._ledger.numbers.get(url)
        return 0.0 if number is None else self._ledger.amounts[number]

    def _expected(self, url: str, score: float) -> float:
        """What a page will pay, by its score and the known amounts."""
        number = self._ledger.numbers.get(url)
        return (
            min(SEED_CASH, score_to_value(score))
            if number is None
            else self._ledger.amounts[number]
        )

    def _step(self) -> Mapping[str, float]:
        """Distribute the virtual page's cash."""
        self._step_at = next_update(self._pages)
        waiting = self._ledger.waiting()
        if waiting.size:
            share = self._virtual_page / waiting.size
            for number in waiting:
                self._ledger.amounts[number] += share
            self._virtual_page = 0.0
        return self._ledger.moves()


def _count_payees(page: Page, links: int) -> int:
    """Number of payees of a page: its links, its refresh target, and the virtual page."""
    return links + (page.refresh is not None) + 1
