"""The crawls that one driver drives: a single one, or the partitions of a worker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from focused.crawl.crawl_stats import Counters
from focused.crawl.loop import Crawl
from focused.crawl.page_parser import EarlyResult, PageParser
from focused.crawl.steps import SettledFetch, Step
from focused.web.page import Outcome


class CrawlGroup(Protocol):
    """Crawls behind one scheduler; numbers of leases are unique among them."""

    @property
    def crawls(self) -> Sequence[Crawl]:
        """The open crawls."""

    @property
    def counters(self) -> Counters:
        """The totals of all crawls."""

    def of_url(self, url: str) -> Crawl:
        """Return the crawl for requests to a normalised URL outside the frontier."""

    def of_lease(self, lease: int) -> Crawl | None:
        """Return the crawl of a lease; None if it was settled or its crawl is gone."""

    def next(self, now: float) -> Step:
        """Return what to do now: fetch, wait or stop."""

    def settle(
        self, lease: int, outcome: Outcome, now: float, parsed: EarlyResult = None
    ) -> SettledFetch | None:
        """Process the outcome of a fetch; see :meth:`Crawl.settle`."""

    def put_back(self, lease: int, now: float) -> None:
        """Close a lease whose request was not sent; its link stays queued."""

    def may_connect(self, lease: int | None, url: str, address: str, now: float) -> bool:
        """Whether a request may be sent to the address; see :meth:`Crawl.may_connect`."""

    def page_parser(self) -> PageParser:
        """Return the page parser with the current classifier."""

    def is_finished(self, now: float) -> bool:
        """Whether no fetch is in flight and nothing is left to do."""

    def maintain(self, now: float) -> None:
        """Make what was committed durable; the driver calls it about once a second."""

    def close(self, now: float) -> None:
        """Put back open leases, write the results and close all crawls."""


class SingleCrawl:
    """The :class:`CrawlGroup` of one crawl."""

    def __init__(self, crawl: Crawl) -> None:
        self._crawl = crawl
        self.next = crawl.next
        self.settle = crawl.settle
        self.put_back = crawl.put_back
        self.may_connect = crawl.may_connect
        self.page_parser = crawl.page_parser
        self.is_finished = crawl.is_finished
        self.close = crawl.close

    @property
    def crawls(self) -> Sequence[Crawl]:
        """The crawl."""
        return (self._crawl,)

    @property
    def counters(self) -> Counters:
        """The crawl's counters."""
        return self._crawl.counters

    def of_url(self, url: str) -> Crawl:
        """Return the crawl."""
        return self._crawl

    def of_lease(self, lease: int) -> Crawl | None:
        """Return the crawl if the lease is open."""
        return self._crawl if self._crawl.is_open(lease) else None

    def maintain(self, now: float) -> None:
        """Flush commits to the disk."""
        self._crawl.sync()
