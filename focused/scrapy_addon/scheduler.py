"""The scheduler: returns a request for the best link whose host is due.

Requests are created at the last moment; until then a link is a row on disk. If no host is due, the
engine is woken when the next one is.
"""

from __future__ import annotations

import gc
import logging
import time
from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from scrapy import Request, Spider
from scrapy.core.scheduler import BaseScheduler
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.settings import overridden_settings
from scrapy.utils.asyncio import CallLaterResult, call_later

from focused.crawl import ROBOTS, Done, Fetch, RefusedRequest, Wait
from focused.scrapy_addon.crawl_session import CrawlSession, session_of
from focused.scrapy_addon.outcomes import UnstorableValueError, exception_for_failure
from focused.scrapy_addon.request_state import state_of, update_state
from focused.scrapy_addon.robots_request import robots_request
from focused.web.page import Failed, FailureKind

if TYPE_CHECKING:
    from focused.scrapy_addon.spider_requests import SpiderRequests

logger = logging.getLogger(__name__)

_MAINTENANCE_INTERVAL_S = 1.0
_MAX_S_PER_TURN = 0.01
"""Time for returning requests in one turn of the reactor."""

# benchmarks/long_crawl.py: 0.16 ms a page, 0.3 with Python's default of 700, 10, 10.
_GC_THRESHOLDS = (20_000, 20, 20)


class FocusedScheduler(BaseScheduler):
    """Adapts the session's crawl to Scrapy's scheduler interface."""

    def __init__(self, crawler: Crawler, session: CrawlSession) -> None:
        self._crawler = crawler
        self._session = session
        self._slot = session.driver.slot
        self._clock = session.driver.clock
        self._status = session.driver.status
        self._engine = session.driver.engine
        self._spider: Spider | None = None
        self._refused: deque[Request] = deque()
        self._wake: CallLaterResult | None = None
        self._wake_at = float("inf")
        self._maintained_at = 0.0
        self._turn_began_at: float | None = None
        self._was_cut = False
        self._spider_requests: SpiderRequests | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> FocusedScheduler:
        """Create with the crawler's session."""
        return cls(crawler, session_of(crawler))

    def open(self, spider: Spider) -> None:
        """Open the crawl; queue the topic's seeds if the crawl follows links."""
        self._spider = spider
        settings = self._crawler.settings
        crawl = self._session.open(
            {
                "web": settings["FOCUSED_RECORDED_WEB"],
                "replay": settings["FOCUSED_REPLAY"],
                "scrapy": _to_plain_data(overridden_settings(settings)),
            }
        )
        if self._session.follow_links:
            crawl.seed(self._session.driver.topic.seeds.urls, self._clock())
        if settings.getbool("FOCUSED_OWNS_PROCESS"):
            # Exclude the objects created so far from garbage collections, which would take a tenth
            # of a second each. Reference counting frees the objects of pages.
            gc.freeze()
            gc.set_threshold(*_GC_THRESHOLDS)

    def close(self, reason: str) -> None:
        """Close the crawl; the same command resumes it."""
        self._cancel_wake()
        self._status.end(self._final_reason(reason))
        self._session.close()

    def _final_reason(self, reason: str) -> str:
        """Return Scrapy's reason, or the crawl's if Scrapy's is that no work is left."""
        if reason != "finished" or not self._slot.is_open or self._status.error_message:
            return reason
        try:
            step = self._slot.run.next(self._clock())
        except Exception:  # closing reports the error
            return reason
        return step.reason if isinstance(step, Done) else reason

    def has_pending_requests(self) -> bool:
        """Whether the crawl has work left, due or not."""
        return bool(self._refused) or not self._slot.run.is_finished(self._clock())

    def enqueue_request(self, request: Request) -> bool:
        """Queue a request of the spider or a middleware.

        Return False for a duplicate, a refused request without errback, and after the end.
        """
        if not self._slot.is_open:  # Scrapy closes the scheduler before it stops start()
            return False
        if state_of(request).is_handled:
            return True
        try:
            return self._requests_of_spider().enqueue(request)
        except IgnoreRequest as error:
            return self._refuse(request, error)
        except UnstorableValueError as error:
            logger.error(
                "%s cannot be stored and is dropped: %s. meta and cb_kwargs accept plain "
                "data: text, numbers, collections, dates, items, dataclasses",
                request,
                error,
            )
            return self._refuse(request, error)

    def _requests_of_spider(self) -> SpiderRequests:
        if self._spider_requests is None:
            from focused.scrapy_addon.spider_requests import SpiderRequests  # only if there are any

            self._spider_requests = SpiderRequests(self._slot, self._clock, self._spider)
        return self._spider_requests

    def _refuse(self, request: Request, error: Exception) -> bool:
        """End the request with the error in its errback; return False if it has none."""
        if request.errback is None:
            return False
        ended = request.replace(meta=dict(request.meta))
        update_state(ended, refused=error)
        self._refused.append(ended)
        return True

    def next_request(self) -> Request | None:
        """Return the request for the best link whose host is due."""
        if self._status.error_message:  # the crawl is stopping
            return None
        if self._turn_is_over():
            return None
        try:
            return self._next_request(self._clock())
        except Exception as error:  # the engine would log it and retry for ever
            self._status.fail(error)
            return None

    def _next_request(self, now: float) -> Request | None:
        if self._clock.real_s(now - self._maintained_at) >= _MAINTENANCE_INTERVAL_S:
            self._maintained_at = now
            self._session.maintain(now)
        if self._status.is_paused:
            return None
        if self._spider_requests is not None or not self._session.follow_links:
            own = self._requests_of_spider()
            own.commit(now)
            for refused in self._slot.crawl.refuse_suspended(own.has_errback, now):
                self._notify_refusal(refused)
        while not self._refused:
            step = self._slot.run.next(now)
            self._status.note(step)
            if isinstance(step, RefusedRequest):
                self._notify_refusal(step)
            elif isinstance(step, Fetch):
                request = self._request(step)
                if request is not None:
                    return request
            else:
                if isinstance(step, Wait) and step.until is not None:
                    self._wake_engine_at(step.until, now)
                return None
        return self._refused.popleft()

    def _notify_refusal(self, refused: RefusedRequest) -> None:
        """Call the errback of a refused request."""
        request = self._requests_of_spider().restore(refused.link)
        if request is not None:
            self._refuse(request, exception_for_failure(refused.link.url, refused.failure))

    def _request(self, fetch: Fetch) -> Request | None:
        """Return the request for a fetch; None if a spider's request is lost and was settled."""
        if fetch.purpose == ROBOTS:
            request, is_plain = robots_request(fetch.url), True
        elif fetch.link.payload is None:
            request, is_plain = (
                Request(fetch.url, headers=dict(fetch.headers) or None, dont_filter=True),
                True,
            )
        else:
            restored = self._requests_of_spider().restore(fetch.link)
            if restored is None:
                logger.warning(
                    "%s is dropped: its callback, which is not a method of the spider, was lost "
                    "when the crawl was stopped",
                    fetch.url,
                )
                lost = Failed(fetch.url, FailureKind.DROPPED, detail="its callback is lost")
                self._session.pages.settle(fetch.lease, lost)
                return None
            request, is_plain = restored, False
        update_state(
            request,
            lease=fetch.lease,
            leased_url=request.url,  # as Scrapy normalises it
            purpose=fetch.purpose,
            is_plain=is_plain,
        )
        return request

    def _turn_is_over(self) -> bool:
        """Whether this turn of the reactor has returned requests for long enough.

        The engine calls next_request until it returns None.
        """
        began_at, now = self._turn_began_at, time.perf_counter()
        if began_at is None:
            self._turn_began_at = now
            call_later(0, self._turn_ended)
            return False
        if now - began_at < _MAX_S_PER_TURN:
            return False
        self._was_cut = True
        return True

    def _turn_ended(self) -> None:
        self._turn_began_at = None
        if self._was_cut:
            self._was_cut = False
            self._wake_engine()

    def _wake_engine_at(self, until: float, now: float) -> None:
        if self._wake is not None and self._wake_at <= until and self._wake_at > now:
            return
        self._cancel_wake()
        self._wake_at = until
        wait_s = self._clock.real_s(until - now)
        self._wake = call_later(max(0.0, wait_s), self._wake_engine)

    def _wake_engine(self) -> None:
        self._cancel_wake()
        self._engine.wake()

    def _cancel_wake(self) -> None:
        if self._wake is not None:
            self._wake.cancel()
            self._wake = None


def _to_plain_data(settings: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return settings as JSON data; objects by their names."""
    return {
        name: value if isinstance(value, str | int | float | bool | None) else str(value)
        for name, value in settings
    }
