"""The downloader: fetches directly if possible, else through Scrapy's middlewares.

Middlewares cost more than the rest of a small page. Links of the frontier are fetched without them
if no other middleware, signal handler, setting or spider takes part in downloads. The guarantees of
the add-on's middlewares apply: the crawl checked robots.txt and the host's delay when it leased the
link, the client connects only to the checked address, and sizes and times are bounded. Requests
that would have to wait go through the middlewares.

Scrapy does not call ``process_exception`` for errors in another middleware's ``process_response``.
This downloader does so for the settling middleware; otherwise the link would stay leased.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from ipaddress import ip_address
from time import monotonic
from typing import TYPE_CHECKING, Any

from pydispatch.dispatcher import (  # type: ignore[import-untyped]  # used by Scrapy's signals
    getAllReceivers,
    liveReceivers,
)
from scrapy import Request, signals
from scrapy.core.downloader import Downloader
from scrapy.downloadermiddlewares.defaultheaders import DefaultHeadersMiddleware
from scrapy.downloadermiddlewares.downloadtimeout import DownloadTimeoutMiddleware
from scrapy.downloadermiddlewares.httpauth import HttpAuthMiddleware
from scrapy.downloadermiddlewares.httpproxy import HttpProxyMiddleware
from scrapy.extensions.corestats import CoreStats
from scrapy.http import Headers, Response
from scrapy.responsetypes import responsetypes
from twisted.internet.defer import Deferred

from focused.crawl import ROBOTS
from focused.crawl.page_parser import is_refused_type
from focused.scrapy_addon.crawl_session import session_of
from focused.scrapy_addon.download_handlers import (
    FocusedDownloadHandler,
    http_client_of,
)
from focused.scrapy_addon.http_client import RawResponse
from focused.scrapy_addon.middlewares.access_middlewares import (
    AddressMiddleware,
    PolitenessMiddleware,
    RobotsMiddleware,
)
from focused.scrapy_addon.middlewares.login_middleware import LoginMiddleware
from focused.scrapy_addon.middlewares.relevance_middleware import (
    CallbackPages,
    PageRelevance,
    current_callback_pages,
)
from focused.scrapy_addon.middlewares.response_middlewares import (
    DecodingMiddleware,
    SettlingMiddleware,
)
from focused.scrapy_addon.outcomes import (
    FetchPostponed,
    conditional_headers_of,
    join_headers,
    outcome_from_scrapy_response,
    shown_response,
    with_exchange,
)
from focused.scrapy_addon.progress import QuietLogFormatter
from focused.scrapy_addon.request_state import state_of, update_state
from focused.scrapy_addon.robots_request import count_robots_bytes, robots_request
from focused.scrapy_addon.scheduler import is_leased
from focused.web.decoding import media_type_of
from focused.web.http_response import outcome_from_response
from focused.web.page import HttpExchange, Outcome
from focused.web.robots.robots_file import MAX_ROBOTS_BYTES
from focused.web.warc_writer import format_http_head

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.core.downloader import Downloader
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from focused.crawl import SettledFetch

_OWN_MIDDLEWARES = frozenset(
    (
        AddressMiddleware,
        DecodingMiddleware,
        PolitenessMiddleware,
        RobotsMiddleware,
        SettlingMiddleware,
    )
)
_INERT_MIDDLEWARES = frozenset(
    (
        DefaultHeadersMiddleware,
        DownloadTimeoutMiddleware,
        HttpAuthMiddleware,
        HttpProxyMiddleware,
        LoginMiddleware,  # requests to its hosts are not fetched directly
    )
)
_DOWNLOAD_SIGNALS = (
    signals.request_reached_downloader,
    signals.request_left_downloader,
    signals.response_downloaded,
    signals.headers_received,
    signals.bytes_received,
)
_DOWNLOAD_SETTINGS = (
    "DOWNLOADER_CLIENT_TLS_VERBOSE_LOGGING",
    "DOWNLOAD_BIND_ADDRESS",
    "DOWNLOAD_SLOTS",
    "DOWNLOAD_WARNSIZE",
    "HTTPAUTH_PASS",
    "HTTPAUTH_USER",
)
_SPIDER_ATTRIBUTES = ("download_maxsize", "download_timeout", "http_user", "http_pass")


def can_fetch_directly(downloader: Downloader) -> bool:
    """Whether only the add-on takes part in the running crawl's downloads.

    Call it after the spider has been opened, when all signal handlers are connected. The spider's
    class must define ``wants_page``.
    """
    crawler, spider = downloader.crawler, downloader.crawler.spider
    session, settings = session_of(crawler), crawler.settings
    middlewares = downloader.middleware.middlewares
    # A private name of Scrapy.
    handlers = [downloader.handlers._get_handler(scheme) for scheme in ("http", "https")]
    return bool(
        session.follow_links
        and not session.replayed
        and "wants_page" in vars(type(spider))
        and isinstance(crawler.logformatter, QuietLogFormatter)
        and all(type(handler) is FocusedDownloadHandler for handler in handlers)
        and {type(each) for each in middlewares} - _INERT_MIDDLEWARES == _OWN_MIDDLEWARES
        and not any(_has_proxies(each) for each in middlewares)
        and not any(map(settings.get, _DOWNLOAD_SETTINGS))
        and settings.getbool("DOWNLOAD_FAIL_ON_DATALOSS")
        and not any(hasattr(spider, name) for name in _SPIDER_ATTRIBUTES)
        and not any(_listeners(crawler, signal) for signal in _DOWNLOAD_SIGNALS)
    )


class DirectFetcher:
    """Fetches and settles the pages of one crawl."""

    def __init__(self, downloader: Downloader) -> None:
        self._crawler = downloader.crawler
        self._session = session_of(self._crawler)
        self._client = http_client_of(self._crawler)
        of_type = {type(each): each for each in downloader.middleware.middlewares}
        self._connections: AddressMiddleware = of_type[AddressMiddleware]
        self._decoding: DecodingMiddleware = of_type[DecodingMiddleware]
        settings = self._crawler.settings
        self._keeps_exchanges = self._session.topic.output.warc != "off"
        self._max_bytes = settings.getint("DOWNLOAD_MAXSIZE")
        self._timeout_s = settings.getfloat("DOWNLOAD_TIMEOUT")
        setters = (of_type.get(DefaultHeadersMiddleware), self._decoding)
        self._setters = [each for each in setters if each is not None]
        self._headers = self._headers_of(Request("http://example.org/"))
        self._robots_headers = self._headers_of(robots_request("http://example.org/robots.txt"))
        self._has_listeners = bool(_listeners(self._crawler, signals.response_received))
        self._wants: Callable[[SettledFetch], bool] = vars(type(self._crawler.spider))["wants_page"]

    def _headers_of(self, request: Request) -> list[tuple[str, str]]:
        """Return the headers that the middlewares set on each such request."""
        for middleware in self._setters:
            middleware.process_request(request)
        request.headers["User-Agent"] = self._session.topic.politeness.user_agent
        return list(request.headers.to_tuple_list())

    def accepts(self, request: Request) -> bool:
        """Whether the request may be fetched directly, at once.

        Raises an error of its host's address.
        """
        url = request.url
        if not state_of(request).is_plain or not url.isascii() or "[" in url or "@" in url:
            return False
        if not is_leased(request, self._session):
            return False
        logins = self._session.logins
        if logins is not None and logins.of_url(url) is not None:
            return False
        host = url.split("/", 3)[2].partition(":")[0]
        address = self._connections.known_address(host)
        update_state(request, checked_address=address)
        return address is not None

    async def fetch(self, request: Request) -> Response | Request:
        """Return the response if the spider wants it, else the settled request."""
        try:
            received = await self._send(request)
        except Exception as error:
            await self._connections.process_exception(request, error)
            raise
        outcome, response = self._outcome(request, received)
        lease = state_of(request).lease
        assert lease is not None  # accepts() checked it
        settled = await self._session.parse_and_settle(lease, outcome)
        if settled is None or settled.page is None or settled.duplicate_of is not None:
            update_state(request, is_handled=True)
            return request
        if not self._has_listeners and not self._wants(settled):
            self._crawler.stats.inc_value("response_received_count")
            update_state(request, is_handled=True)
            return request
        response = shown_response(response or _response(request, received), settled)
        return self._pass_on(request, settled, response)

    async def _send(self, request: Request) -> RawResponse:
        """Send the request; raises the exceptions of Scrapy's download handlers."""
        session, state, url = self._session, state_of(request), request.url
        address = str(state.checked_address)
        if not session.group.may_connect(state.lease, url, address, session.now()):
            raise FetchPostponed(f"{address} must not be requested yet")
        update_state(request, was_looked_up=True, sent_at=session.now())
        is_robots = state.purpose == ROBOTS
        headers = self._robots_headers if is_robots else self._headers
        headers = [*headers, *conditional_headers_of(request)]
        received = await self._client.fetch(
            url,
            headers,
            address=address,
            timeout_s=self._timeout_s,
            max_bytes=MAX_ROBOTS_BYTES if is_robots else self._max_bytes,
            cut=is_robots,
            refuses=None if is_robots else self._refuses,
        )
        if self._keeps_exchanges:
            _, _, netloc, path = url.split("/", 3)
            sent = format_http_head(f"GET /{path} HTTP/1.1", [("Host", netloc), *headers])
            truncated = ("length" if is_robots else "unspecified") if received.is_truncated else ""
            exchange = HttpExchange(sent, received.head, received.body, truncated)
            update_state(request, exchange=exchange)
        return received

    def _refuses(self, status: int, content_type: str) -> bool:
        media_type = media_type_of({"content-type": content_type})
        return status == 200 and is_refused_type(media_type, self._session.topic.scope)

    def _outcome(self, request: Request, received: RawResponse) -> tuple[Outcome, Response | None]:
        """Return the outcome, and the response if the body had to be decoded."""
        now, state = self._session.now(), state_of(request)
        if received.body and (received.is_truncated or b"content-encoding" in received.headers):
            response = self._decoding.decode(request, _response(request, received))
            return outcome_from_scrapy_response(
                request, response, now, self._session.now.real_s
            ), response
        elapsed_s = max(0.0, self._session.now.real_s(now - (state.sent_at or now)))
        headers = join_headers(received.headers)
        outcome = outcome_from_response(
            received.status,
            headers,
            request.url,
            received.body,
            elapsed_s,
            now,
            conditional=bool(conditional_headers_of(request)),
        )
        return replace(with_exchange(request, outcome), address=str(state.checked_address)), None

    def _pass_on(
        self, request: Request, settled: SettledFetch, response: Response
    ) -> Response | Request:
        """Pass a page to the spider, or to signal handlers."""
        update_state(request, settled=settled, left_out=settled.is_noindex)
        if self._wants(settled):
            return response
        response.request = request
        self._crawler.signals.send_catch_log(
            signals.response_received,
            response=response,
            request=request,
            spider=self._crawler.spider,
        )
        update_state(request, is_handled=True)
        return request


def _listeners(crawler: Crawler, signal: object) -> list[Any]:
    """Return the handlers of a signal except Scrapy's response count and the robots.txt limit."""
    count = CoreStats.response_received
    return [
        each
        for each in liveReceivers(getAllReceivers(crawler, signal))
        if each is not count_robots_bytes and getattr(each, "__func__", None) is not count
    ]


def _has_proxies(middleware: Any) -> bool:
    return isinstance(middleware, HttpProxyMiddleware) and bool(middleware.proxies)


def _response(request: Request, received: RawResponse) -> Response:
    """Return the response as Scrapy's own handler would."""
    headers = Headers(received.headers)
    made = responsetypes.from_args(headers=headers, url=request.url, body=received.body)
    return made(
        url=request.url,
        status=received.status,
        headers=headers,
        body=received.body,
        flags=["download_stopped"] if received.is_truncated else None,
        ip_address=ip_address(str(state_of(request).checked_address)),
        protocol="HTTP/1.1",
    )


class SettlingDownloader(Downloader):
    """Scrapy's downloader with direct fetches, which settles every failure."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._session = session_of(crawler)
        self._settling = SettlingMiddleware.from_crawler(crawler)
        self._is_direct_known = False
        self._direct: DirectFetcher | None = None

    def fetch(self, request: Request, spider: Spider | None = None) -> Deferred[Any]:
        """Download a request in one task, where Scrapy uses three."""
        # Now: the engine counts active requests before it asks for more.
        self.active.add(request)
        download: Coroutine[Any, Any, Response | Request] = self._download_or_settle(request)
        pages = current_callback_pages()
        if pages is not None and not is_leased(request, self._session):
            download = self._classify(request, download, pages)
        fetched: Deferred[Any] = Deferred.fromFuture(asyncio.ensure_future(download))
        return fetched.addBoth(self._ended, request)

    def _ended(self, result: Any, request: Request) -> Any:
        """Remove the request only when the engine continues: before, the crawl would look idle."""
        self.active.remove(request)
        return result

    async def _classify(
        self,
        request: Request,
        download: Coroutine[Any, Any, Response | Request],
        pages: CallbackPages,
    ) -> Response | Request:
        """Classify a page that a callback downloads itself, for its items."""
        update_state(request, settled=None, left_out=False, relevance=None)  # of a copied meta
        result = await download
        if isinstance(result, Request) or state_of(request).purpose == ROBOTS:
            return result
        now = self._session.now()
        read = await self._session.parse_and_classify(
            outcome_from_scrapy_response(request, result, now, self._session.now.real_s)
        )
        if read is not None:
            relevance, noindex = (
                read.classification.relevance,
                self._session.topic.politeness.noindex,
            )
            left_out = noindex == "leave-out" and read.page.is_noindex_at(now)
            update_state(request, relevance=relevance, left_out=left_out)
            pages.add((request.url, result.url), PageRelevance(relevance, left_out))
        return result

    async def _download_or_settle(self, request: Request) -> Response | Request:
        try:
            direct = self._direct_fetch()
            if direct is not None and direct.accepts(request):
                return await direct.fetch(request)
            result = await self.middleware.download_async(self._enqueue_request, request)
            if isinstance(result, Request):
                self._settling.replaced(request)
            return result
        except Exception as error:
            instead = await self._settling.process_exception(request, error)
            if instead is None:
                raise
            return instead

    def _direct_fetch(self) -> DirectFetcher | None:
        if not self._is_direct_known:  # after the spider was opened
            self._is_direct_known = True
            self._direct = DirectFetcher(self) if can_fetch_directly(self) else None
        return self._direct

    async def _enqueue_request(self, request: Request) -> Response:
        """Skip Scrapy's queue if the slot is idle and has no delay, the common case."""
        key, slot = self._get_slot(request)
        if slot.active or slot.queue or slot.latercall or slot.delay:
            return await super()._enqueue_request(request)
        request.meta[self.DOWNLOAD_SLOT] = key
        slot.active.add(request)
        self.signals.send_catch_log(
            signal=signals.request_reached_downloader, request=request, spider=self.crawler.spider
        )
        slot.lastseen = monotonic()
        try:
            return await self._download(slot, request)
        finally:
            slot.active.remove(request)
