"""Sends a crawl's requests to a replayed web; nothing else in Scrapy notices.

With ``FOCUSED_REPLAY = "127.0.0.1:PORT"`` the stock HTTP/1.1 handler works as
ever (requests, responses, signals, errors and slots keep their own URLs and
hosts); only what its connection pool hands out changes: every connection
goes, as plain HTTP, to that one port. https travels in a header. A host that
the recorded web lacks gives the DNS error that the live Web would give.
Responses have no IP address: all hosts have one here, which is none of theirs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from scrapy.exceptions import NotConfigured
from scrapy.settings import BaseSettings
from twisted.internet.defer import Deferred
from twisted.internet.endpoints import TCP4ClientEndpoint
from twisted.internet.interfaces import IStreamClientEndpoint
from twisted.web.client import HTTPConnectionPool
from twisted.web.iweb import IClientRequest, IResponse

from focused.errors import ConfigurationError
from focused.recorded.replay_headers import FAULT_HEADER, SCHEME_HEADER, UNKNOWN_HOST
from focused.scrapy_addon.downloading import BoundedDownloadHandler
from focused.scrapy_addon.names import NoSuchHostError

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.http import Request, Response

REPLAY_SETTING = "FOCUSED_REPLAY"
_HANDLER = "focused.scrapy_addon.replay.ReplayDownloadHandler"


def replay_settings(address: str) -> dict[str, Any]:
    """Return the settings that send a crawl to the replay server at ``HOST:PORT``.

    Raises ConfigurationError when the address has another form.
    """
    _parse_address(address)
    return {
        REPLAY_SETTING: address,
        "DOWNLOAD_HANDLERS": {"http": _HANDLER, "https": _HANDLER},
    }


def install_replay(settings: BaseSettings) -> bool:
    """Turn the replay on when ``FOCUSED_REPLAY`` is set, for add-ons; tell whether it was.

    Handlers of other schemes stay; those of http and https are replaced,
    whoever set them: a replayed crawl must not touch the live Web.
    """
    address = settings.get(REPLAY_SETTING)
    if not address:
        return False
    ours = replay_settings(address)["DOWNLOAD_HANDLERS"]
    handlers = {**settings.getdict("DOWNLOAD_HANDLERS"), **ours}
    settings.set("DOWNLOAD_HANDLERS", handlers, priority="cmdline")
    return True


class ReplayDownloadHandler(BoundedDownloadHandler):
    """The stock handler on a pool that knows one address only."""

    def __init__(self, crawler: Crawler) -> None:
        address = crawler.settings.get(REPLAY_SETTING)
        if not address:
            raise NotConfigured(f"{REPLAY_SETTING} is not set")
        super().__init__(crawler)
        from twisted.internet import reactor  # installs one when imported too early

        host, port = _parse_address(address)
        endpoint = cast(IStreamClientEndpoint, TCP4ClientEndpoint(cast(Any, reactor), host, port))
        # All hosts share the one port's connections: a limit per host would
        # throw most of them away after one use.
        self._idle.most_alike = crawler.settings.getint("CONCURRENT_REQUESTS") or 100
        self._pool = cast(HTTPConnectionPool, _OneAddressPool(self._pool, endpoint))

    async def download_request(self, request: Request) -> Response:
        """The response, without the address of the replay server."""
        response = await super().download_request(request)
        response.ip_address = None
        return response


class _OneAddressPool:
    """A connection pool, as agents use it, whose connections all lead to one address."""

    def __init__(self, pool: HTTPConnectionPool, endpoint: IStreamClientEndpoint) -> None:
        self._pool = pool
        self._endpoint = endpoint

    @property
    def persistent(self) -> bool:
        return bool(self._pool.persistent)

    def getConnection(self, key: object, endpoint: object) -> Deferred[_ReplayConnection]:
        """Return a connection to the address, whichever ``endpoint`` was meant."""
        connected = cast(Deferred[Any], self._pool.getConnection("replay", self._endpoint))
        return connected.addCallback(_ReplayConnection)

    def closeCachedConnections(self) -> Deferred[None]:
        """Close the idle connections."""
        closed = self._pool.closeCachedConnections()  # type: ignore[no-untyped-call]  # Twisted's
        return cast(Deferred[None], closed)


class _ReplayConnection:
    """A connection for one request, which tells the server the scheme that was meant."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def request(self, request: IClientRequest) -> Deferred[IResponse]:
        """Send the request; fail with NoSuchHostError when its host was not recorded."""
        scheme = cast(bytes, request.absoluteURI).partition(b":")[0]
        request.headers.setRawHeaders(SCHEME_HEADER, [scheme])
        answered = cast(Deferred[IResponse], self._connection.request(request))
        return answered.addCallback(_raise_for_unknown_host)


def _raise_for_unknown_host(response: IResponse) -> IResponse:
    faults = response.headers.getRawHeaders(FAULT_HEADER)
    if faults != [UNKNOWN_HOST]:
        return response
    # The server sends no body with it, so the connection stays of use.
    host = response.request.headers.getRawHeaders("Host", [""])[0]
    raise NoSuchHostError(f"no such host in the replayed web: {host}")


def _parse_address(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ConfigurationError(
            f"{REPLAY_SETTING} is {address!r}; expected HOST:PORT, such as 127.0.0.1:8080"
        )
    return host, int(port)
