"""The crawl of a session while it is open."""

from __future__ import annotations

from typing import Protocol

from scrapy import Request

from focused.crawl import Crawl
from focused.crawl.steps import Step
from focused.scrapy_addon.request_state import state_of


class CrawlRun(Protocol):
    """When an open crawl fetches: a :class:`Crawl` itself, or the rounds of a partition."""

    def next(self, now: float) -> Step:
        """Return what to do now: fetch, wait or stop."""

    def may_connect(self, lease_id: int | None, url: str, address: str, now: float) -> bool:
        """Whether a request may be sent to the address; see :meth:`Crawl.may_connect`."""

    def is_finished(self, now: float) -> bool:
        """Whether no fetch is in flight and nothing is left to do."""

    def sync(self) -> None:
        """Make what was committed durable; called about once a second."""

    def close(self, now: float) -> None:
        """Put back open leases, write the results and close the crawl."""


class CrawlSlot:
    """Holds the crawl of a session; only the session opens and closes it."""

    def __init__(self) -> None:
        self._open: tuple[Crawl, CrawlRun] | None = None
        self.was_opened = False
        """Whether the crawl is or was open."""

    def opened(self, crawl: Crawl, run: CrawlRun) -> None:
        """Make the crawl available."""
        self._open, self.was_opened = (crawl, run), True

    def closed(self) -> tuple[Crawl, CrawlRun] | None:
        """Make the crawl unavailable; return it and its run, None if it was not open."""
        closed, self._open = self._open, None
        return closed

    @property
    def is_open(self) -> bool:
        """Whether the crawl is open."""
        return self._open is not None

    @property
    def crawl(self) -> Crawl:
        """The open crawl. Raises RuntimeError before and after it is open."""
        return self._opened()[0]

    @property
    def run(self) -> CrawlRun:
        """The run of the open crawl. Raises RuntimeError before and after it is open."""
        return self._opened()[1]

    def _opened(self) -> tuple[Crawl, CrawlRun]:
        if self._open is None:
            raise RuntimeError("the crawl is not open: the scheduler opens it with the spider")
        return self._open

    def is_leased(self, lease: int) -> bool:
        """Whether the crawl is open and the lease not settled."""
        return self._open is not None and self._open[0].is_open(lease)

    def of_lease(self, lease: int) -> Crawl | None:
        """Return the crawl; None if it is closed or the lease was settled."""
        return self.crawl if self.is_leased(lease) else None

    def has_leased(self, request: Request) -> bool:
        """Whether the scheduler returned this request and it is not settled."""
        state = state_of(request)
        return (
            state.lease is not None
            and self.is_leased(state.lease)
            and state.leased_url == request.url
        )
