"""The HTTP client of a crawl: an ``aiohttp.ClientSession`` that connects only to checked addresses.

It connects only to the given address, whatever name servers answer meanwhile (DNS rebinding), never
retries by itself, limits the size of response heads, and limits idle connections as
``docs/explanation/politeness.md`` describes. Errors are raised as Scrapy's exceptions.
"""

from __future__ import annotations

import asyncio
import resource
import select
import socket
import ssl
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.client_proto import ResponseHandler
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.streams import StreamReader
from scrapy.exceptions import (
    CannotResolveHostError,
    DownloadConnectionRefusedError,
    DownloadFailedError,
    DownloadTimeoutError,
    ResponseDataLossError,
    UnsupportedURLSchemeError,
)
from yarl import URL

from focused.scrapy_addon.outcomes import ResponseTooLargeError

if TYPE_CHECKING:
    from aiohttp.connector import Connection

MAX_HEAD_BYTES = 262_144
"""Status line and headers of one response, with interim responses; as in Chrome."""

MAX_LINE_BYTES = 16_384
"""A status line or one header."""

MAX_IDLE = 1_000
"""Idle connections of a crawl, if the process may open enough files."""

MAX_IDLE_S = 60.0
"""Most servers close idle connections earlier."""

_TRANSFER_CODINGS = frozenset({"chunked", "identity"})
_END_OF_HEAD = b"\r\n\r\n"
_OTHER_FILES = 128  # of the rest of the process
_AUTO_HEADERS = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")

_address: ContextVar[str | None] = ContextVar("focused_address", default=None)


class TrackedResponse(aiohttp.ClientResponse):
    """A response that keeps its transport, which aiohttp releases after the last byte."""

    transport: asyncio.Transport | None = None
    peer: str | None = None
    """The address that sent it."""
    ssl_object: ssl.SSLObject | None = None

    async def start(self, connection: Connection) -> aiohttp.ClientResponse:
        """See aiohttp."""
        self.transport = connection.transport
        if self.transport is not None:
            self.peer = self.transport.get_extra_info("peername")[0]
            self.ssl_object = self.transport.get_extra_info("ssl_object")
        return await super().start(connection)


class HttpClient:
    """Sends the requests of one crawl, in a running asyncio loop."""

    def __init__(
        self,
        ssl_context: ssl.SSLContext,
        *,
        one_per_address: bool,
        max_concurrent: int,
        local_address: tuple[str, int] | None = None,
    ) -> None:
        """``one_per_address`` closes idle connections to other hosts at an address."""
        self._ssl = ssl_context
        self._verifying_ssl = cache(ssl.create_default_context)
        may_open, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._idle = IdleConnections(
            max_idle(max_concurrent, may_open), one_per_address=one_per_address
        )
        self._session = aiohttp.ClientSession(
            connector=_Connector(
                resolver=_PinnedResolver(),
                use_dns_cache=False,
                happy_eyeballs_delay=None,
                keepalive_timeout=MAX_IDLE_S,
                limit=0,  # the crawl limits concurrency
                local_addr=local_address,
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            max_line_size=MAX_LINE_BYTES,
            max_field_size=MAX_LINE_BYTES,
            max_headers=MAX_HEAD_BYTES // 4,  # the bytes are limited instead
            response_class=TrackedResponse,
            skip_auto_headers=_AUTO_HEADERS,
        )
        # aiohttp retries a GET if a reused connection breaks, without the host's delay. A private
        # name of aiohttp.
        self._session._retry_connection = False

    @asynccontextmanager
    async def open(
        self,
        method: str,
        url: str,
        headers: Any,
        *,
        address: str | None,
        timeout_s: float,
        body: bytes | None = None,
        proxy: str | None = None,
        verify: bool = False,
    ) -> AsyncIterator[TrackedResponse]:
        """Send a request to ``address``; yield the response after its head.

        Without an address the URL's host must be an address, or ``proxy`` must be given.
        ``timeout_s`` includes the body. ``verify`` checks the host's certificate by the system's
        authorities, whatever the client's ``ssl_context`` accepts. Raises Scrapy's exceptions for
        failed downloads, and ResponseTooLargeError.
        """
        target = URL(url, encoded=True)
        host = target.raw_host or ""
        tracks = address is not None and proxy is None
        if tracks and self._idle.prepare(host, str(address)):
            await asyncio.sleep(0)  # let closed connections close first
        token = _address.set(address)
        try:
            with _scrapy_errors(url, timeout_s):
                async with self._session.request(
                    method,
                    target,
                    data=body,
                    headers=headers,
                    timeout=aiohttp.ClientTimeout(total=timeout_s or None),
                    ssl=self._verifying_ssl() if verify else self._ssl,
                    allow_redirects=False,
                    proxy=proxy,
                ) as response:
                    assert isinstance(response, TrackedResponse)
                    coding = response.headers.get("Transfer-Encoding", "chunked").strip().lower()
                    if coding not in _TRANSFER_CODINGS:  # aiohttp would treat it as the body
                        raise DownloadFailedError(f"{url} has the transfer coding {coding[:50]!r}")
                    yield response
        finally:
            _address.reset(token)
        if tracks and response.transport is not None:
            self._idle.add(host, str(address), response.transport)

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()


def head_of(response: TrackedResponse) -> bytes:
    """Return status line and headers of a response as they came."""
    version = "1.1" if response.version is None else "{}.{}".format(*response.version)
    lines = [f"HTTP/{version} {response.status} {response.reason}".encode("latin-1", "replace")]
    lines += [name + b": " + value for name, value in response.raw_headers]
    return b"\r\n".join([*lines, b"", b""])


@contextmanager
def _scrapy_errors(url: str, timeout_s: float) -> Iterator[None]:
    """Convert aiohttp's exceptions to those of Scrapy's download handlers."""
    try:
        yield
    except TimeoutError as error:
        raise DownloadTimeoutError(
            f"Getting {url} took longer than {timeout_s} seconds."
        ) from error
    except (aiohttp.ClientError, HttpProcessingError) as error:
        raise _scrapy_error_type(error)(str(error) or repr(error)) from error


def _scrapy_error_type(error: Exception) -> type[Exception]:
    if isinstance(error, aiohttp.InvalidURL):
        return UnsupportedURLSchemeError
    if isinstance(error, aiohttp.ClientPayloadError):
        return ResponseDataLossError
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return CannotResolveHostError
    if isinstance(error, aiohttp.ClientConnectorError) and not _was_connected(error):
        return DownloadConnectionRefusedError
    return DownloadFailedError


def _was_connected(error: aiohttp.ClientConnectorError) -> bool:
    """Whether the connection failed during its TLS handshake."""
    return isinstance(error.os_error, ConnectionResetError | ConnectionAbortedError)


class _PinnedResolver(AbstractResolver):
    """Resolves every host to the address of the current request, a proxy by the system."""

    def __init__(self) -> None:
        self._system = aiohttp.ThreadedResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """See aiohttp."""
        address = _address.get()
        if address is None:
            return await self._system.resolve(host, port, family)
        kind = socket.AF_INET6 if ":" in address else socket.AF_INET
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=kind,
                proto=0,
                flags=socket.AI_NUMERICHOST,
            )
        ]

    async def close(self) -> None:
        """See aiohttp."""
        await self._system.close()


class _BoundedHeadProtocol(ResponseHandler):
    """aiohttp's protocol with a limit on response heads.

    Data beyond the announced length is dropped and the connection closed. aiohttp would lose the
    response, or use the data for the next one.
    """

    _head_bytes = 0
    _in_head = False
    _body_left: int | None = None
    _body: StreamReader | None = None

    def set_response_params(self, **params: Any) -> None:
        """See aiohttp: called before a request is sent."""
        self._head_bytes, self._in_head, self._body_left, self._body = 0, True, None, None
        super().set_response_params(**params)

    def feed_data(self, data: Any, size: int = 0) -> None:
        """See aiohttp: called when a head was parsed."""
        message = data[0]
        if message.code >= 200:
            self._in_head, self._body = False, data[1]
            length = message.headers.get("Content-Length", "")
            if length.isdecimal() and not message.chunked:
                self._body_left = int(length)
        super().feed_data(data, size)

    def set_exception(self, exc: BaseException, *cause: BaseException) -> None:
        """See aiohttp, which does not fail the body's reader if its framing is broken."""
        super().set_exception(exc, *cause)
        if self._body is not None and not self._body.is_eof():
            self._body.set_exception(aiohttp.ClientPayloadError(str(exc) or repr(exc)))

    def connection_lost(self, exc: BaseException | None) -> None:
        """See aiohttp, which tells the body's reader of the missing bytes, not why they miss."""
        body = self._body
        if exc is None or body is None or body.is_eof():
            super().connection_lost(exc)
            return
        error = aiohttp.ClientPayloadError(str(exc) or repr(exc))
        error.__cause__ = exc
        body.set_exception(error)  # wakes a waiting reader
        super().connection_lost(exc)
        body.set_exception(error)  # in place of aiohttp's

    def data_received(self, data: bytes) -> None:
        """See aiohttp."""
        while self._in_head:
            end = data.find(_END_OF_HEAD) + len(_END_OF_HEAD)
            head, data = (data, b"") if end < len(_END_OF_HEAD) else (data[:end], data[end:])
            super().data_received(head)
            self._head_bytes += len(head)
            if self._in_head and self._head_bytes > MAX_HEAD_BYTES:
                self._in_head = False
                self.set_exception(
                    ResponseTooLargeError(f"more than {MAX_HEAD_BYTES} bytes of headers")
                )
                if self.transport is not None:
                    self.transport.abort()
            if not data:
                return
        if self._body_left is not None:
            if len(data) > self._body_left:
                data = data[: self._body_left]
                self.force_close()
            self._body_left -= len(data)
        if data:
            super().data_received(data)


class _Connector(aiohttp.TCPConnector):
    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        # A private name of aiohttp: nothing public sets the protocol.
        self._factory = partial(_BoundedHeadProtocol, loop=self._loop)  # type: ignore[assignment]  # narrower


@dataclass(slots=True)
class _IdleConnection:
    host: str
    address: str


@dataclass(slots=True)
class IdleConnections:
    """Idle connections by host and address; the longest idle first."""

    max_idle: int
    one_per_address: bool = False
    _idle: dict[asyncio.Transport, _IdleConnection] = field(default_factory=dict)
    _by_host: dict[str, set[asyncio.Transport]] = field(default_factory=lambda: defaultdict(set))
    _by_address: dict[str, set[asyncio.Transport]] = field(default_factory=lambda: defaultdict(set))

    def __len__(self) -> int:
        return len(self._idle)

    def prepare(self, host: str, address: str) -> bool:
        """Prepare for a request to ``host`` at ``address``; return whether any connection was
        closed.

        Closes the host's connections to other addresses, other hosts' connections to the address
        (``one_per_address``), and those that the server has closed.
        """
        closed = False
        for transport in list(self._by_host.get(host, ())):
            elsewhere = self._idle[transport].address != address
            self._remove(transport)
            if elsewhere or _has_ended(transport):
                transport.close()
                closed = True
        if self.one_per_address:
            for transport in list(self._by_address.get(address, ())):
                self._remove(transport)
                transport.close()
                closed = True
        return closed

    def add(self, host: str, address: str, transport: asyncio.Transport) -> None:
        """Record that a response has ended and its connection is idle."""
        if transport.is_closing():
            return
        if transport in self._idle:
            self._remove(transport)
        self._idle[transport] = _IdleConnection(host, address)
        self._by_host[host].add(transport)
        self._by_address[address].add(transport)
        while len(self._idle) > self.max_idle:
            oldest = next(iter(self._idle))
            self._remove(oldest)
            oldest.close()

    def _remove(self, transport: asyncio.Transport) -> None:
        idle = self._idle.pop(transport)
        for index, key in ((self._by_host, idle.host), (self._by_address, idle.address)):
            index[key].discard(transport)
            if not index[key]:
                del index[key]


def max_idle(concurrent: int, may_open: int) -> int:
    """Return the number of idle connections: half of the file descriptors left of ``may_open``."""
    if may_open == resource.RLIM_INFINITY:
        return MAX_IDLE
    return max(0, min(MAX_IDLE, (may_open - concurrent - _OTHER_FILES) // 2))


def _has_ended(transport: asyncio.Transport) -> bool:
    """Whether the server has closed the connection or sent unexpected data.

    Unknown over TLS, where a session ticket may have come.
    """
    if transport.is_closing() or transport.get_extra_info("ssl_object") is not None:
        return transport.is_closing()
    sock = transport.get_extra_info("socket")
    if sock is None or sock.fileno() < 0:
        return True
    poll = select.poll()
    poll.register(sock.fileno(), select.POLLIN)
    return bool(poll.poll(0))
