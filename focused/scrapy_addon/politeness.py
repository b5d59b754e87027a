"""Requests that bypass the frontier wait their turn at their host all the same.

What the scheduler hands out is due already. A request from elsewhere (a
pipeline, an extension, another middleware) is held until its host may be
asked, and starts the host's delay anew, so that no path is impolite. To a host
that is set aside it is not sent at all.
"""

from __future__ import annotations

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.utils.asyncio import sleep

from focused.scrapy_addon.outcomes import SENT_AT
from focused.scrapy_addon.scheduler import LEASE
from focused.scrapy_addon.session import Session, session_of
from focused.web.url import host_of, normalise


class PolitenessMiddleware:
    """Delays what did not come through the frontier."""

    def __init__(self, session: Session) -> None:
        self._session = session

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> PolitenessMiddleware:
        """Build on the crawler's session."""
        return cls(session_of(crawler))

    async def process_request(self, request: Request) -> None:
        """Hold the request until its host is due; note when it leaves."""
        url = normalise(request.url)
        if LEASE not in request.meta and url is not None:
            crawl = self._session.crawl
            while (wait_s := crawl.due_at(url) - self._session.now()) > 0:
                host = crawl.frontier.hosts.get(host_of(url))
                if host.pace.is_aside:
                    # Held for hours it would hold one of the engine's few places.
                    raise IgnoreRequest(f"{host.name} only fails: not asked for {wait_s:.0f} s")
                await sleep(wait_s)
            crawl.touch_host(url, self._session.now())
        request.meta[SENT_AT] = self._session.now()
