"""Whether anybody but the add-on has a say in how pages are fetched.

A project's or a spider's own middlewares, signal handlers, download handlers, proxies and
settings: where there is none, pages may go the straight way. Asked when the first request leaves;
by then all have been made, and the spider is open.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydispatch.dispatcher import (  # type: ignore[import-untyped]  # what Scrapy's signals are
    getAllReceivers,
    liveReceivers,
)
from scrapy import signals
from scrapy.downloadermiddlewares.defaultheaders import DefaultHeadersMiddleware
from scrapy.downloadermiddlewares.downloadtimeout import DownloadTimeoutMiddleware
from scrapy.downloadermiddlewares.httpauth import HttpAuthMiddleware
from scrapy.downloadermiddlewares.httpproxy import HttpProxyMiddleware
from scrapy.extensions.corestats import CoreStats
from scrapy.utils.asyncio import is_asyncio_available

from focused.scrapy_addon.connections import ConnectionsMiddleware
from focused.scrapy_addon.downloading import BoundedDownloadHandler, DecodingMiddleware
from focused.scrapy_addon.politeness import PolitenessMiddleware
from focused.scrapy_addon.quiet_log import QuietLogFormatter
from focused.scrapy_addon.robots import RobotsMiddleware
from focused.scrapy_addon.robots_request import counts_robots
from focused.scrapy_addon.session import session_of
from focused.scrapy_addon.settling import SettlingMiddleware

if TYPE_CHECKING:
    from scrapy.core.downloader import Downloader
    from scrapy.crawler import Crawler

_OURS = frozenset(
    (
        ConnectionsMiddleware,
        DecodingMiddleware,
        PolitenessMiddleware,
        RobotsMiddleware,
        SettlingMiddleware,
    )
)
_SEEN_TO = _OURS | {
    DefaultHeadersMiddleware,
    DownloadTimeoutMiddleware,
    HttpAuthMiddleware,
    HttpProxyMiddleware,
}
_HEARD_ON_THE_LONG_WAY = (
    signals.request_reached_downloader,
    signals.request_left_downloader,
    signals.response_downloaded,
    signals.headers_received,
    signals.bytes_received,
)
_SETTINGS = (
    "DOWNLOADER_CLIENT_TLS_VERBOSE_LOGGING",
    "DOWNLOAD_BIND_ADDRESS",
    "DOWNLOAD_SLOTS",
    "DOWNLOAD_WARNSIZE",
    "HTTPAUTH_PASS",
    "HTTPAUTH_USER",
)
_ATTRIBUTES = ("download_maxsize", "download_timeout", "http_user", "http_pass")

Handlers = dict[str, BoundedDownloadHandler]


def handlers_alone(downloader: Downloader) -> Handlers | None:
    """The add-on's download handlers by scheme; None where somebody else has a say.

    The spider's class must tell which pages it ``wants``.
    """
    crawler, spider = downloader.crawler, downloader.crawler.spider
    session, settings = session_of(crawler), crawler.settings
    middlewares = downloader.middleware.middlewares
    alone = (
        is_asyncio_available()
        and session.follow_links
        and not session.replayed
        and "wants" in vars(type(spider))
        and isinstance(crawler.logformatter, QuietLogFormatter)
        and {type(each) for each in middlewares} - _SEEN_TO == set()
        and {type(each) for each in middlewares} >= _OURS
        and not any(_proxies(each) for each in middlewares)
        and not any(map(settings.get, _SETTINGS))
        and settings.getfloat("DOWNLOAD_TIMEOUT") > 0
        and not any(hasattr(spider, name) for name in _ATTRIBUTES)
        and not any(_listeners(crawler, signal) for signal in _HEARD_ON_THE_LONG_WAY)
    )
    # A private name of Scrapy's, kept in this one line.
    found = {scheme: downloader.handlers._get_handler(scheme) for scheme in ("http", "https")}
    handlers = {
        scheme: handler
        for scheme, handler in found.items()
        if type(handler) is BoundedDownloadHandler
    }
    return handlers if alone and len(handlers) == len(found) else None


def hear_of_pages(crawler: Crawler) -> bool:
    """Whether anybody listens to ``response_received`` but Scrapy's count of them."""
    return bool(_listeners(crawler, signals.response_received))


def _listeners(crawler: Crawler, signal: object) -> list[Any]:
    count = CoreStats.response_received
    return [
        each
        for each in liveReceivers(getAllReceivers(crawler, signal))
        if each is not counts_robots and getattr(each, "__func__", None) is not count
    ]


def _proxies(middleware: Any) -> bool:
    return isinstance(middleware, HttpProxyMiddleware) and bool(middleware.proxies)
