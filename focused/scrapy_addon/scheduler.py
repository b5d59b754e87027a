"""The scheduler: the most promising link whose host may be asked now, as a request.

Requests are made at the last moment; until then a link is a row on disk. When
no host may be asked yet, the engine is woken at the moment the next one may.
"""

from __future__ import annotations

import gc
import logging
import time
from collections import deque
from collections.abc import Iterable
from typing import Any

from scrapy import Request, Spider
from scrapy.core.scheduler import BaseScheduler
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.settings import overridden_settings
from scrapy.utils.asyncio import CallLaterResult, call_later
from scrapy.utils.defer import deferred_from_coro

from focused.crawl import Crawl, Done, Fetch, FetchPurpose, RefusedRequest, Wait
from focused.scrapy_addon.crawl_session import CrawlSession, session_of
from focused.scrapy_addon.outcomes import exception_for_failure
from focused.scrapy_addon.request_state import state_of, update_state
from focused.scrapy_addon.robots_request import robots_request
from focused.scrapy_addon.spider_requests import SpiderRequests
from focused.scrapy_addon.value_serialization import UnstorableValueError
from focused.web.page import Failed, FailureKind

logger = logging.getLogger(__name__)

_MAINTENANCE_INTERVAL_S = 1.0
_MAX_S_PER_TURN = 0.01
"""Of handing out; the reactor has other things to do, too."""

# Measured in benchmarks/long_crawl.py: 0.16 ms a page, where Python's own 700, 10, 10 take 0.3.
_GC_THRESHOLDS = (20_000, 20, 20)


class FocusedScheduler(BaseScheduler):
    """Scrapy's scheduler seam over a :class:`focused.crawl.Crawl`."""

    def __init__(self, crawler: Crawler, session: CrawlSession) -> None:
        self._crawler = crawler
        self._session = session
        self._own = SpiderRequests(session)
        self._refused: deque[Request] = deque()
        self._wake: CallLaterResult | None = None
        self._wake_at = float("inf")
        self._maintained_at = 0.0
        self._hands_out_since: float | None = None
        self._was_cut = False

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> FocusedScheduler:
        """Build on the crawler's session."""
        return cls(crawler, session_of(crawler))

    def open(self, spider: Spider) -> None:
        """Open the crawl; queue the topic's seeds when links are followed for the spider."""
        self._own.spider = spider
        self._session.on_failure(self._close_spider)
        self._session.wake = self._wake_engine
        settings = self._crawler.settings
        crawl = self._session.open(
            {
                "web": settings["FOCUSED_RECORDED_WEB"],
                "replay": settings["FOCUSED_REPLAY"],
                "scrapy": _to_plain_data(overridden_settings(settings)),
            },
            self._crawler.stats,
        )
        if self._session.follow_links:
            crawl.seed(self._session.topic.seeds.urls, self._session.now())
        if settings.getbool("FOCUSED_OWNS_PROCESS"):
            # Each full collection would go through all objects of the start: a tenth of a second
            # in which nothing else happens. Reference counts free what a page leaves.
            gc.freeze()
            gc.set_threshold(*_GC_THRESHOLDS)

    def close(self, reason: str) -> None:
        """Keep everything; the same command goes on from here."""
        self._cancel_wake()
        session = self._session
        if not session.error_message:
            session.end_reason = self._why_ended(reason)
        session.close()

    def _why_ended(self, reason: str) -> str:
        """Scrapy's reason; where that is that nothing was left to do, the crawl knows why."""
        session = self._session
        if reason != "finished" or not session.is_open:
            return reason
        try:
            step = session.crawl.next(session.now())
        except Exception:  # an error of the state: closing it tells
            return reason
        return step.reason if isinstance(step, Done) else reason

    def has_pending_requests(self) -> bool:
        """Whether the crawl has work left, be it not due yet."""
        return bool(self._refused) or not self._session.crawl.is_finished(self._session.now())

    def enqueue_request(self, request: Request) -> bool:
        """Take in a request of the spider or a middleware.

        False when it is a duplicate, or is refused and nobody waits to hear of it.
        """
        if state_of(request).is_handled:
            return True
        try:
            return self._own.enqueue(request)
        except IgnoreRequest as error:
            return self._refuse(request, error)
        except UnstorableValueError as error:
            logger.error(
                "%s cannot be stored, and is not asked for: %s. meta and cb_kwargs take plain "
                "data: text, numbers, collections, dates, items, dataclasses",
                request,
                error,
            )
            return self._refuse(request, error)

    def _refuse(self, request: Request, error: Exception) -> bool:
        """End the request with the error, in its errback; False where it has none."""
        if request.errback is None:
            return False
        ended = request.replace(meta=dict(request.meta))
        update_state(ended, refused=error)
        self._refused.append(ended)
        return True

    def next_request(self) -> Request | None:
        """Return the request for the best link whose host may be asked now."""
        if self._session.error_message:  # the crawl is stopping: no answer could be kept
            return None
        if self._takes_long():
            return None
        try:
            return self._next_request(self._session.now())
        except Exception as error:  # the engine would log it and ask again for ever
            self._session.fail(error)
            return None

    def _next_request(self, now: float) -> Request | None:
        if now - self._maintained_at >= _MAINTENANCE_INTERVAL_S:
            self._maintained_at = now
            self._session.maintain(now)
        crawl = self._session.crawl
        if self._own.has_spider_requests or not self._session.follow_links:
            for refused in crawl.refuse_suspended(self._own.has_errback, now):
                self._tell(refused)
        while not self._refused:
            step = crawl.next(now)
            self._session.waiting.note(step)
            if isinstance(step, RefusedRequest):
                self._tell(step)
            elif isinstance(step, Fetch):
                request = self._request(step)
                if request is not None:
                    return request
            else:
                if isinstance(step, Wait) and step.until is not None:
                    self._wake_engine_at(step.until, now)
                return None
        return self._refused.popleft()

    def _tell(self, refused: RefusedRequest) -> None:
        """Whoever made the request hears in its errback that it was refused."""
        request = self._own.restore(refused.link)
        if request is not None:
            self._refuse(request, exception_for_failure(refused.link.url, refused.failure))

    def _request(self, fetch: Fetch) -> Request | None:
        """The request for a fetch; None where the spider's own is lost, and is settled."""
        if fetch.purpose is FetchPurpose.ROBOTS:
            request, is_plain = robots_request(fetch.url), True
        elif fetch.link.payload is None:
            request, is_plain = Request(fetch.url, dont_filter=True), True
        else:
            restored = self._own.restore(fetch.link)
            if restored is None:
                logger.warning(
                    "%s is not asked for: its callback, no method of the spider, was lost when the "
                    "crawl was stopped",
                    fetch.url,
                )
                lost = Failed(fetch.url, FailureKind.DROPPED, detail="its callback is lost")
                self._session.settle(fetch.lease, lost)
                return None
            request, is_plain = restored, False
        update_state(
            request,
            lease=fetch.lease,
            leased_url=request.url,  # as Scrapy writes it
            purpose=fetch.purpose,
            is_plain=is_plain,
        )
        return request

    def _takes_long(self) -> bool:
        """Whether requests were handed out for long in this turn of the reactor: the next goes on.

        The engine asks as long as it is given any.
        """
        began_at, now = self._hands_out_since, time.perf_counter()
        if began_at is None:
            self._hands_out_since = now
            call_later(0, self._turn_ended)
            return False
        if now - began_at < _MAX_S_PER_TURN:
            return False
        self._was_cut = True
        return True

    def _turn_ended(self) -> None:
        self._hands_out_since = None
        if self._was_cut:
            self._was_cut = False
            self._wake_engine()

    def _close_spider(self) -> None:
        deferred_from_coro(self._crawler.engine.close_spider_async(reason="error"))

    def _wake_engine_at(self, until: float, now: float) -> None:
        if self._wake is not None and self._wake_at <= until and self._wake_at > now:
            return
        self._cancel_wake()
        self._wake_at = until
        self._wake = call_later(max(0.0, until - now), self._wake_engine)

    def _wake_engine(self) -> None:
        self._cancel_wake()
        # A private name of Scrapy's: nothing public asks the engine to look again
        # (its heartbeat comes every 5 s). Kept in this one line and tested.
        slot = self._crawler.engine._slot
        if slot is not None:
            slot.nextcall.schedule()

    def _cancel_wake(self) -> None:
        if self._wake is not None:
            self._wake.cancel()
            self._wake = None


def is_leased(request: Request, crawl: Crawl) -> bool:
    """Whether the scheduler handed this request out, and it is not settled yet."""
    state = state_of(request)
    return (
        state.lease is not None and crawl.is_open(state.lease) and state.leased_url == request.url
    )


def _to_plain_data(settings: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Settings as JSON-able data; objects by their names."""
    return {
        name: value if isinstance(value, str | int | float | bool | None) else str(value)
        for name, value in settings
    }
