"""Refuses requests that robots.txt disallows.

The crawl fetches robots.txt before it leases a host's first page. This middleware checks every
request again when it is sent, and fetches robots.txt for requests that bypass the frontier.
"""

from __future__ import annotations

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.utils.asyncio import sleep

from focused.crawl import FetchPurpose
from focused.crawl.hosts.robots_cache import MAX_REDIRECTS
from focused.crawl.leases import POLL_INTERVAL_S
from focused.scrapy_addon.crawl_session import CrawlSession, session_of
from focused.scrapy_addon.name_resolver import PrivateAddressError
from focused.scrapy_addon.outcomes import (
    FetchPostponed,
    RobotsDeniedError,
    outcome_from_exception,
    outcome_from_scrapy_response,
)
from focused.scrapy_addon.request_state import RequestState, state_of
from focused.scrapy_addon.robots_request import limit_robots_downloads, robots_request
from focused.scrapy_addon.scheduler import is_leased
from focused.web.page import Failed, FailureKind, Outcome, Redirected
from focused.web.urls import host_of, normalize_url, robots_url


class RobotsMiddleware:
    """Raises :class:`RobotsDeniedError` for URLs that robots.txt disallows (RFC 9309)."""

    def __init__(self, crawler: Crawler, session: CrawlSession) -> None:
        self._crawler = crawler
        self._session = session
        self._asked: set[str] = set()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> RobotsMiddleware:
        """Create with the crawler's session."""
        limit_robots_downloads(crawler)
        return cls(crawler, session_of(crawler))

    async def process_request(self, request: Request) -> None:
        """Check the request; raises an exception to refuse it."""
        url = normalize_url(request.url)
        if state_of(request).purpose is FetchPurpose.ROBOTS or url is None:
            return
        if is_leased(request, self._session.crawl):
            allowed = self._session.crawl.robots.may_fetch(url, self._session.now())
            if allowed is None:
                raise FetchPostponed(f"the rules of {url} have just run out")
        else:
            allowed = await self._allowed(url, request.url)
        if not allowed:
            raise RobotsDeniedError(f"robots.txt of {url} disallows it or cannot be reached")

    async def _allowed(self, url: str, sent: str) -> bool:
        """Whether the rules allow the URL as ``sent``; fetches them if they are unknown."""
        crawl, site = self._session.crawl, robots_url(url)
        allowed = crawl.robots.may_fetch(url, self._session.now(), sent)
        shared = False
        while allowed is None and (site in self._asked or crawl.robots.is_fetching(site)):
            shared = True
            await sleep(POLL_INTERVAL_S)
            allowed = crawl.robots.may_fetch(url, self._session.now(), sent)
        if allowed is None and not shared:
            self._asked.add(site)
            try:
                outcome = await self._fetch_rules(site)
            finally:
                self._asked.discard(site)
            crawl.record_robots(url, outcome, self._session.now())
            self._session.wake()
            allowed = crawl.robots.may_fetch(url, self._session.now(), sent)
        return bool(allowed)

    async def _fetch_rules(self, url: str) -> Outcome:
        state = RequestState(purpose=FetchPurpose.ROBOTS, rules_of=host_of(url))
        for _ in range(MAX_REDIRECTS + 1):
            request = robots_request(url, state)
            try:
                response = await self._crawler.engine.download_async(request)
            except Exception as error:  # the outcome tells what failed
                if isinstance(error, IgnoreRequest) and not isinstance(error, PrivateAddressError):
                    raise  # not sent: nothing is known about the host
                return await outcome_from_exception(request, error)
            outcome = outcome_from_scrapy_response(
                request, response, self._session.now(), self._session.now.real_s
            )
            if not isinstance(outcome, Redirected):
                return outcome
            self._session.crawl.robots.record(outcome, self._session.now())
            url = outcome.target
        return Failed(url, FailureKind.BAD_REDIRECT, detail="too many redirects")
