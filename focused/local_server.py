"""HTTP servers beside a crawl: how many connections they take, for how long, and for which names.

A server shares the file descriptors of its process with the crawl. It therefore closes connections
that send no complete header in time, takes few at once, and none when descriptors run short.
"""

from __future__ import annotations

import asyncio
import ipaddress
import resource
import socket
from typing import cast

from aiohttp import web

HEADER_TIMEOUT_S = 10.0
"""Time for a connection to send a complete header, its first or another one."""
MAX_CONNECTIONS = 64
RESERVED_DESCRIPTORS = 128
"""File descriptors below the process's limit that connections never take."""

_BACKLOG = 16
"""Also the number of connections that the event loop accepts at once, before they are counted."""
_PRIVATE_SUFFIXES = (".local", ".internal", ".localhost")


def open_listener(host: str, port: int) -> socket.socket:
    """Listen at an address; port 0 takes a free one. Raises OSError when the port is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=_BACKLOG)


def is_own_name(host: str, *names: str) -> bool:
    """Whether ``host``, the header of a request, cannot be a name that an attacker rebound.

    That are addresses, ``names``, this machine's name, and names that nobody can register: those
    without a dot and those below ``.local`` and ``.internal``.
    """
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
    name = name.strip("[]").lower().removesuffix(".")
    if name in names or name == socket.gethostname().lower():
        return True
    if name and ("." not in name or name.endswith(_PRIVATE_SUFFIXES)) and ":" not in name:
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


class LocalServer:
    """Serves an aiohttp application with bounded connections. Close it after use.

    ``max_descriptor`` is the first file descriptor that no connection may have; by default
    ``RESERVED_DESCRIPTORS`` below the process's limit.
    """

    def __init__(
        self,
        app: web.Application,
        *,
        header_timeout_s: float = HEADER_TIMEOUT_S,
        max_connections: int = MAX_CONNECTIONS,
        max_descriptor: int | None = None,
    ) -> None:
        self._runner = web.AppRunner(
            app,
            access_log=None,
            handle_signals=False,
            shutdown_timeout=1.0,
            # aiohttp starts this time with the connection, and again after each response.
            keepalive_timeout=header_timeout_s,
        )
        self._max_connections = max_connections
        if max_descriptor is None:
            max_descriptor = resource.getrlimit(resource.RLIMIT_NOFILE)[0] - RESERVED_DESCRIPTORS
        self._max_descriptor = max_descriptor

    @property
    def addresses(self) -> list[tuple[str, int]]:
        """Host and port of each socket that it listens on."""
        return [(address[0], address[1]) for address in self._runner.addresses]

    async def start(self, listener: socket.socket) -> None:
        """Serve the connections of ``listener``, which belongs to the server from now on."""
        await self._runner.setup()
        await _BoundedSite(
            self._runner, listener, self._max_connections, self._max_descriptor
        ).start()

    async def close(self) -> None:
        """Close all connections and stop to listen."""
        await self._runner.cleanup()


class _BoundedSite(web.BaseSite):
    """A listening socket whose connections are counted."""

    def __init__(
        self, runner: web.AppRunner, listener: socket.socket, most: int, max_descriptor: int
    ) -> None:
        super().__init__(runner, backlog=_BACKLOG)
        self._listener = listener
        self._most = most
        self._max_descriptor = max_descriptor
        self.open = 0

    @property
    def name(self) -> str:
        return str(self._listener.getsockname())

    async def start(self) -> None:
        await super().start()
        self._server = await asyncio.get_running_loop().create_server(
            self._connection, sock=self._listener, backlog=_BACKLOG
        )

    def takes(self, transport: asyncio.BaseTransport) -> bool:
        descriptor = transport.get_extra_info("socket").fileno()
        return self.open < self._most and descriptor < self._max_descriptor

    def _connection(self) -> asyncio.Protocol:
        server = self._runner.server
        assert server is not None  # set up before the site started
        return _CountedConnection(self, server())


class _CountedConnection(asyncio.Protocol):
    """Passes a connection on to aiohttp, or closes it at once if there are too many."""

    def __init__(self, site: _BoundedSite, handler: asyncio.Protocol) -> None:
        self._site = site
        self._handler = handler
        self._is_taken = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if not self._site.takes(transport):
            cast(asyncio.Transport, transport).abort()
            return
        self._is_taken = True
        self._site.open += 1
        self._handler.connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._is_taken:
            self._is_taken = False
            self._site.open -= 1
            self._handler.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._is_taken:
            self._handler.data_received(data)

    def eof_received(self) -> bool | None:
        return self._handler.eof_received() if self._is_taken else None

    def pause_writing(self) -> None:
        self._handler.pause_writing()

    def resume_writing(self) -> None:
        self._handler.resume_writing()
