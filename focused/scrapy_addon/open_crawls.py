"""The crawls of a session while they are open."""

from __future__ import annotations

from scrapy import Request

from focused.crawl import Crawl
from focused.crawl.crawl_group import CrawlGroup
from focused.scrapy_addon.request_state import state_of


class OpenCrawls:
    """The crawl of a session, or the partitions of a worker; only the session opens and closes."""

    def __init__(self) -> None:
        self._group: CrawlGroup | None = None
        self._was_opened = False

    def opened(self, group: CrawlGroup) -> None:
        """Make the crawls available."""
        self._group, self._was_opened = group, True

    def closed(self) -> CrawlGroup | None:
        """Make the crawls unavailable; return them, None if they were not open."""
        group, self._group = self._group, None
        return group

    @property
    def is_open(self) -> bool:
        """Whether the crawls are open."""
        return self._group is not None

    @property
    def was_opened(self) -> bool:
        """Whether the crawls are or were open."""
        return self._was_opened

    @property
    def group(self) -> CrawlGroup:
        """The open crawls. Raises RuntimeError before and after they are open."""
        if self._group is None:
            raise RuntimeError("the crawl is not open: the scheduler opens it with the spider")
        return self._group

    def of_url(self, url: str) -> Crawl:
        """Return the crawl for requests to a normalised URL outside the frontier."""
        return self.group.of_url(url)

    def of_lease(self, lease: int) -> Crawl | None:
        """Return the crawl of an open lease; None if it was settled or the crawls are closed."""
        return None if self._group is None else self._group.of_lease(lease)

    def is_leased(self, lease: int) -> bool:
        """Whether the crawls are open and the lease not settled."""
        return self._group is not None and self._group.of_lease(lease) is not None

    def has_leased(self, request: Request) -> bool:
        """Whether the scheduler returned this request and it is not settled."""
        state = state_of(request)
        return (
            state.lease is not None
            and self.is_leased(state.lease)
            and state.leased_url == request.url
        )
