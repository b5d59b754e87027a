"""Middlewares for what comes back: decode bodies, settle leases.

:class:`SettlingMiddleware` is the first of the downloader middlewares: it receives decoded
responses, and the exceptions of handlers and other middlewares.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.httpcompression import HttpCompressionMiddleware
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response

from focused.scrapy_addon.crawl_session import CrawlSession, session_of
from focused.scrapy_addon.outcomes import (
    ContentDecodingError,
    FetchPostponed,
    ResponseTooLargeError,
    outcome_from_exception,
    outcome_from_scrapy_response,
    shown_response,
)
from focused.scrapy_addon.request_state import handled, state_of, update_state
from focused.scrapy_addon.robots_request import (
    ACCEPTED_CODINGS,
    decode_robots_response,
    is_robots_request,
)
from focused.web.page import Failed, FailureKind, Redirected

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.http import Request, Response

MAX_CODINGS = 3
"""Maximum number of content codings; each may unpack to ``scope.max_page_bytes``."""
MAX_COMPRESSED_PARTS = 1_000
"""Gzip members, or zstd frames, of one body; servers send one."""
_PART_STARTS = {
    b"gzip": (b"\x1f\x8b\x08",),
    b"x-gzip": (b"\x1f\x8b\x08",),
    # Frames, and the sixteen kinds of skippable ones, by the bytes that these share.
    b"zstd": (b"\x28\xb5\x2f\xfd", b"\x2a\x4d\x18"),
}


class SettlingMiddleware:
    """Settles each lease exactly once, with the response or failure of its request.

    Drops responses without a page for the topic spider.
    """

    def __init__(self, session: CrawlSession) -> None:
        self._session = session

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> SettlingMiddleware:
        """Create with the crawler's session."""
        return cls(session_of(crawler))

    async def process_request(self, request: Request) -> None:
        """End a refused request: other middlewares and the errback receive the exception."""
        refused = state_of(request).refused
        if refused is not None:
            update_state(request, refused=None)
            raise refused

    async def process_response(self, request: Request, response: Response) -> Response | Request:
        """Settle with the response; return what the spider should receive."""
        lease = state_of(request).lease
        if lease is None or not self._session.is_leased(lease):
            return response
        outcome = outcome_from_scrapy_response(
            request, response, self._session.now(), self._session.now.real_s
        )
        settled = await self._session.parse_and_settle(lease, outcome)
        if settled is None:
            raise IgnoreRequest("robots.txt is for the crawl, not for the spider")
        is_own = not state_of(request).is_plain
        if isinstance(outcome, Redirected) and is_own:
            if settled.redirect_refusal:
                raise IgnoreRequest(
                    f"may not follow to {outcome.target}: {settled.redirect_refusal}"
                )
            if settled.outcome != "redirected":
                raise IgnoreRequest(f"too many redirects, the last to {outcome.target}")
        if settled.will_retry or settled.outcome == "redirected":
            # The frontier queues it again. Returning a request ends this one without calling its
            # errback.
            return handled(request)
        if settled.duplicate_of is not None and not (is_own and request.dont_filter):
            raise IgnoreRequest(f"the same content as {settled.duplicate_of}")
        if self._session.follow_links and settled.page is None and not is_own:
            raise IgnoreRequest(f"no page: {settled.failure}")
        relevance = None if settled.classification is None else settled.classification.relevance
        update_state(request, settled=settled, left_out=settled.is_noindex, relevance=relevance)
        return shown_response(response, settled)

    async def process_exception(self, request: Request, exception: Exception) -> Request | None:
        """Settle a request without a response."""
        lease = state_of(request).lease
        if lease is None or not self._session.is_leased(lease):
            return None
        if isinstance(exception, FetchPostponed):
            # Not sent: the frontier queues it again.
            self._session.group.put_back(lease, self._session.now())
            return handled(request)
        outcome = await outcome_from_exception(request, exception)
        if not self._session.is_leased(lease):
            return None
        settled = self._session.settle(lease, outcome)
        if settled is not None and settled.will_retry:
            return handled(request)
        if isinstance(exception, IgnoreRequest):
            return None
        # Counted and archived; without an errback nobody else handles it.
        if request.errback is None:
            raise IgnoreRequest(str(exception)) from exception
        return None

    def replaced(self, request: Request) -> None:
        """Settle a request that a middleware replaced with another one."""
        lease = state_of(request).lease
        if lease is not None and self._session.is_leased(lease):
            dropped = Failed(request.url, FailureKind.DROPPED, detail="replaced by a middleware")
            self._session.settle(lease, dropped)


class DecodingMiddleware(HttpCompressionMiddleware):
    """Scrapy's middleware, with exceptions that say why a body cannot be decoded."""

    def process_request(self, request: Request, spider: Spider | None = None) -> None:
        """Set Accept-Encoding."""
        if is_robots_request(request):
            request.headers.setdefault("Accept-Encoding", ACCEPTED_CODINGS)
        super().process_request(request)

    def process_response(
        self, request: Request, response: Response, spider: Spider | None = None
    ) -> Request | Response:
        """Decode the body; raises ResponseTooLargeError or ContentDecodingError."""
        return self.decode(request, response)

    def decode(self, request: Request, response: Response) -> Response:
        """Decode the body; raises ResponseTooLargeError or ContentDecodingError."""
        codings = b",".join(response.headers.getlist("Content-Encoding")).count(b",") + 1
        if codings > MAX_CODINGS:
            raise ContentDecodingError(f"{codings} content codings")
        if is_robots_request(request):
            return decode_robots_response(response)
        try:
            return cast("Response", super().process_response(request, response))
        except IgnoreRequest as error:  # raised by Scrapy for a decoded body above DOWNLOAD_MAXSIZE
            raise ResponseTooLargeError(str(error)) from error
        except ContentDecodingError:
            raise
        except Exception as error:
            raise ContentDecodingError(f"{type(error).__name__}: {error}") from error

    @staticmethod
    def _decode(body: bytes, encoding: bytes, max_size: int) -> bytes:
        """Decode one coding. Raises ContentDecodingError for thousands of empty parts.

        They take a second a megabyte, without decoding to anything that ``max_size`` limits.
        """
        if any(
            body.count(start) > MAX_COMPRESSED_PARTS for start in _PART_STARTS.get(encoding, ())
        ):
            raise ContentDecodingError(f"more than {MAX_COMPRESSED_PARTS:,} compressed parts")
        return HttpCompressionMiddleware._decode(body, encoding, max_size)
