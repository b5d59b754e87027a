"""OPIC: by the cash that a link was paid by the pages fetched.

Abiteboul, Preda, Cobena: Adaptive On-Line Page Importance Computation,
WWW 2003. Every page has cash; a page that is fetched pays all of its cash, in
equal shares, to the pages it links to; the page with most cash is fetched next
(the greedy strategy). A virtual page, to which every page links and which
links to every page, keeps the cash moving.

Where we depart from it, since no page is fetched twice and no end is known:

- cash comes from the seeds, 1 each, not from all pages alike;
- what is paid to pages already fetched, by pages without links and by links
  that failed, goes to the virtual page: there it waits no more than the
  paper's does at a page to be visited again;
- the virtual page pays when a step is due
  (:func:`focused.orderings.link_values.next_update`), not when it has most, and only
  to links that wait;
- a redirect hands all it has to where it leads. When that was known already,
  nobody comes for it.

So the cash of the waiting links, of the virtual page and of what redirects
hand on is the number of seeds fetched, at all times. The history of the paper, of
use when pages are fetched again, is left out.

The priority is the logarithm of the cash (:mod:`focused.orderings.link_values`).
Memory: a ledger line a known link, in this process: a crawl that is taken up
again pays by the scores that its links were queued with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from numpy.typing import ArrayLike

from focused.crawl.policy import Policy
from focused.crawl.steps import SettledFetch
from focused.link_scoring.protocols import PageContext
from focused.orderings.base import FunctionScorer, PolicyInputs
from focused.orderings.link_values import (
    LinkValues,
    next_update,
    order_by_log_value,
    score_to_value,
    value_to_score,
)
from focused.web.page import Link, Page

SEED_CASH = 1.0


def policy(inputs: PolicyInputs) -> Policy:
    """Make the policy; needs no aid."""
    bank = OpicCash()
    return Policy(
        "opic", FunctionScorer(bank.scores), ordering=order_by_log_value, reprioritiser=bank
    )


class OpicCash:
    """Who has how much cash."""

    def __init__(self) -> None:
        self._ledger = LinkValues()
        self._virtual_page = 0.0
        self._handed_on: dict[str, float] = {}
        self._pages = 0
        self._step_at = next_update(0)

    @property
    def cash(self) -> float:
        """All there is."""
        waiting = sum(self._ledger.amounts[number] for number in self._ledger.waiting())
        return float(waiting) + self._virtual_page + sum(self._handed_on.values())

    def scores(self, visit: PageContext, links: Sequence[Link]) -> ArrayLike:
        """Score by the cash as it will be when this page has paid."""
        purse = self._expected(visit.page.url, visit.score)
        share = purse / _count_payees(visit.page, len(links))
        return value_to_score([self._cash_of(link.url) + share for link in links])

    def after(self, settled: SettledFetch) -> Mapping[str, float]:
        """Pay out what the link had; return links that got something else than was expected."""
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
        """What a page will pay, as far as its score and the ledger tell."""
        number = self._ledger.numbers.get(url)
        return (
            min(SEED_CASH, score_to_value(score))
            if number is None
            else self._ledger.amounts[number]
        )

    def _step(self) -> Mapping[str, float]:
        """The virtual page pays."""
        self._step_at = next_update(self._pages)
        waiting = self._ledger.waiting()
        if waiting.size:
            share = self._virtual_page / waiting.size
            for number in waiting:
                self._ledger.amounts[number] += share
            self._virtual_page = 0.0
        return self._ledger.moves()


def _count_payees(page: Page, links: int) -> int:
    """To how many a page pays: its links, where it refreshes to, and the virtual page."""
    return links + (page.refresh is not None) + 1
