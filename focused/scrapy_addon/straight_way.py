"""The straight way of a page: from its lease over an idle connection to its settling.

For fetches of the frontier, where neither a middleware nor a signal handler, setting or spider
of somebody's own has a say. All that the middlewares of the add-on see to is seen to here: the
crawl checked robots.txt and turn as it leased, a turn of the reactor before; the address
is looked at, and nothing else is connected to; heads, bodies and times are bounded. What would
have to wait or is unusual goes the long way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from ipaddress import ip_address
from typing import TYPE_CHECKING

from scrapy import Request, signals
from scrapy.downloadermiddlewares.defaultheaders import DefaultHeadersMiddleware
from scrapy.exceptions import DownloadTimeoutError
from scrapy.http import Headers, Response
from scrapy.responsetypes import responsetypes

from focused.crawl import Purpose
from focused.scrapy_addon.connections import ConnectionsMiddleware
from focused.scrapy_addon.deadlines import Deadlines
from focused.scrapy_addon.downloading import DecodingMiddleware
from focused.scrapy_addon.outcomes import (
    CHECKED_ADDRESS,
    EXCHANGE,
    LOOKED_UP,
    SENT_AT,
    TurnMissed,
    joined_headers,
    outcome_of_response,
    with_exchange,
)
from focused.scrapy_addon.plain_answers import OddAnswer, PlainAnswer, PlainLine
from focused.scrapy_addon.robots_request import robots_request
from focused.scrapy_addon.scheduler import HANDLED, LEASE, PURPOSE, STRAIGHT, is_leased
from focused.scrapy_addon.session import session_of
from focused.scrapy_addon.settling import LEFT_OUT, SETTLED
from focused.scrapy_addon.who_has_a_say import Handlers, handlers_alone, hear_of_pages
from focused.web.page import Exchange, Outcome
from focused.web.response import outcome_of
from focused.web.robots_file import MAX_ROBOTS_BYTES

if TYPE_CHECKING:
    from scrapy.core.downloader import Downloader

    from focused.crawl import Settled


def straight_way_for(downloader: Downloader) -> StraightWay | None:
    """The way for the running crawl; None where somebody has a say."""
    handlers = handlers_alone(downloader)
    return None if handlers is None else StraightWay(downloader, handlers)


class StraightWay:
    """Fetches and settles pages for one running crawl."""

    def __init__(self, downloader: Downloader, handlers: Handlers) -> None:
        self._crawler = downloader.crawler
        self._session = session_of(self._crawler)
        self._handlers = handlers
        of_type = {type(each): each for each in downloader.middleware.middlewares}
        self._connections: ConnectionsMiddleware = of_type[ConnectionsMiddleware]
        self._decoding: DecodingMiddleware = of_type[DecodingMiddleware]
        settings = self._crawler.settings
        self._most_bytes = settings.getint("DOWNLOAD_MAXSIZE")
        self._timeout_s = settings.getfloat("DOWNLOAD_TIMEOUT")
        self._keeps_exchanges = self._session.topic.output.warc != "off"
        self._deadlines = Deadlines()
        self._loop = asyncio.get_running_loop()
        setters = (of_type.get(DefaultHeadersMiddleware), self._decoding)
        self._setters = [each for each in setters if each is not None]
        self._headers = self._headers_of(Request("http://example.org/"))
        self._robots_headers = self._headers_of(robots_request("http://example.org/robots.txt", {}))
        self._are_heard = hear_of_pages(self._crawler)
        self._wants: Callable[[Settled], bool] = vars(type(self._crawler.spider))["wants"]

    def _headers_of(self, request: Request) -> bytes:
        """The end of each such request: what the middlewares put into it."""
        for middleware in self._setters:
            middleware.process_request(request)
        request.headers["User-Agent"] = self._session.topic.politeness.user_agent
        lines = [
            name + b": " + b" ".join(value.split()) + b"\r\n"
            for name, values in request.headers.items()
            for value in values
        ]
        return b"".join([*lines, b"\r\n"])

    def takes(self, request: Request) -> bool:
        """Whether the request may go this way; it is to be fetched at once then.

        Raises what is wrong with its host.
        """
        url, meta = request.url, request.meta
        if STRAIGHT not in meta or not url.isascii() or "[" in url or "@" in url:
            return False
        if not is_leased(request, self._session.crawl):
            return False
        host = url.split("/", 3)[2].partition(":")[0]
        meta[CHECKED_ADDRESS] = address = self._connections.known_address(host)
        return address is not None

    async def fetch(self, request: Request) -> Response | Request:
        """The response, where the spider wants it; else the request, which is settled by then."""
        try:
            came = await self._ask(request)
        except Exception as error:
            await self._connections.process_exception(request, error)
            raise
        if isinstance(came, PlainAnswer) and b"content-encoding" in came.headers:
            came = self._decoding.unpacked(request, _response(request, came))
        settled = await self._session.take_in(request.meta[LEASE], self._outcome(request, came))
        if settled is None or settled.page is None or settled.duplicate_of is not None:
            request.meta[HANDLED] = True
            return request
        return self._passed_on(request, settled, came)

    def _passed_on(
        self, request: Request, settled: Settled, came: PlainAnswer | Response
    ) -> Response | Request:
        """A page for the spider, or for those who only count pages."""
        meta, wanted = request.meta, self._wants(settled)
        if not wanted and not self._are_heard:
            self._crawler.stats.inc_value("response_received_count")
            meta[HANDLED] = True
            return request
        meta[SETTLED], meta[LEFT_OUT] = settled, settled.left_out
        response = _response(request, came) if isinstance(came, PlainAnswer) else came
        if wanted:
            return response
        response.request = request
        self._crawler.signals.send_catch_log(
            signals.response_received,
            response=response,
            request=request,
            spider=self._crawler.spider,
        )
        meta[HANDLED] = True
        return request

    def _outcome(self, request: Request, came: PlainAnswer | Response) -> Outcome:
        now, meta = self._session.now(), request.meta
        if not isinstance(came, PlainAnswer):
            return outcome_of_response(request, came, now)
        elapsed_s = max(0.0, now - meta[SENT_AT])
        headers = joined_headers(came.headers)
        outcome = outcome_of(came.status, headers, request.url, came.body, elapsed_s, now)
        return replace(with_exchange(request, outcome), address=meta[CHECKED_ADDRESS])

    async def _ask(self, request: Request) -> PlainAnswer | Response:
        """What the host answers; raises what Twisted or Scrapy raise where it does not."""
        session, url, meta = self._session, request.url, request.meta
        address, lease = meta[CHECKED_ADDRESS], meta[LEASE]
        if not session.crawl.may_leave(lease, url, address, session.now()):
            raise TurnMissed(f"{address} is not to be asked yet")
        meta[LOOKED_UP] = True
        meta[SENT_AT] = session.now()
        late_at = self._loop.time() + self._timeout_s
        scheme, _, netloc, rest = url.split("/", 3)
        handler = self._handlers[scheme[:-1]]
        line = handler.idle_line(scheme[:-1], netloc, address)
        if line is None:
            line = await handler.new_line(scheme[:-1], netloc, address, self._timeout_s)
        is_robots = meta[PURPOSE] is Purpose.ROBOTS
        head = f"GET /{rest} HTTP/1.1\r\nHost: {netloc}\r\n".encode("ascii")
        asked = head + (self._robots_headers if is_robots else self._headers)
        most_bytes = MAX_ROBOTS_BYTES if is_robots else self._most_bytes
        came = await self._answer(line, asked, most_bytes, url, late_at)
        if isinstance(came, PlainAnswer):
            if self._keeps_exchanges:
                meta[EXCHANGE] = Exchange(asked, came.head, came.body)
            return came
        meta["download_timeout"] = max(0.001, late_at - self._loop.time())
        response = await handler.read_on(came, request)
        return self._decoding.unpacked(request, response)

    async def _answer(
        self, line: PlainLine, asked: bytes, most_bytes: int, url: str, late_at: float
    ) -> PlainAnswer | OddAnswer:
        answered: asyncio.Future[PlainAnswer | OddAnswer] = self._loop.create_future()

        def told(came: PlainAnswer | OddAnswer) -> None:
            self._deadlines.came(answered)
            if not answered.done():
                answered.set_result(came)

        def late() -> None:
            line.give_up()
            seconds = self._timeout_s
            if not answered.done():
                answered.set_exception(
                    DownloadTimeoutError(f"Getting {url} took longer than {seconds} seconds.")
                )

        self._deadlines.add(answered, late_at, late)
        line.ask(asked, most_bytes, told)
        return await answered


def _response(request: Request, answer: PlainAnswer) -> Response:
    """The answer as Scrapy's own handler would have made it."""
    headers = Headers(answer.headers)
    made = responsetypes.from_args(headers=headers, url=request.url, body=answer.body)
    return made(
        url=request.url,
        status=answer.status,
        headers=headers,
        body=answer.body,
        ip_address=ip_address(request.meta[CHECKED_ADDRESS]),
        protocol="HTTP/1.1",
    )
