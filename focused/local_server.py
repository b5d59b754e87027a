"""HTTP servers beside a crawl, and web applications for one user, served on this machine.

A :class:`LocalServer` shares the file descriptors of its process with the crawl. It therefore
closes connections that send no complete header in time, takes few at once, and none when
descriptors run short.

Access to a :class:`LocalApp` needs a token. It stands behind ``#`` in the address that the terminal
shows, so that no server, log or referrer sees it; the page keeps it for its window and sends it as
a header. There are no cookies, so another site cannot use the browser's session. Requests by
another host name (DNS rebinding) or marked as coming from another site are refused. Response
headers allow only the application's own scripts.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import ipaddress
import resource
import secrets
import signal
import socket
from collections.abc import Awaitable, Callable, Iterable, Mapping
from importlib.resources import files
from typing import TypeVar, cast

import msgspec
from aiohttp import web

from focused.durations import HOUR_S
from focused.errors import ConfigurationError, FocusedError

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
        self._listening: asyncio.Server | None = None

    @property
    def addresses(self) -> list[tuple[str, int]]:
        """Host and port of each socket that it listens on."""
        sockets = () if self._listening is None else self._listening.sockets
        return [each.getsockname()[:2] for each in sockets]

    async def start(self, listener: socket.socket) -> None:
        """Serve the connections of ``listener``, which belongs to the server from now on."""
        await self._runner.setup()
        self._listening = await asyncio.get_running_loop().create_server(
            lambda: _Gate(self), sock=listener, backlog=_BACKLOG
        )

    async def close(self) -> None:
        """Close all connections and stop to listen."""
        if self._listening is not None:
            self._listening.close()
        await self._runner.cleanup()

    def connect(self, transport: asyncio.Transport) -> None:
        """Pass a connection on to aiohttp, or close it at once if there are too many."""
        server = self._runner.server
        assert server is not None  # set up before it listens
        descriptor = transport.get_extra_info("socket").fileno()
        if len(server.connections) >= self._max_connections or descriptor >= self._max_descriptor:
            transport.abort()
            return
        handler = server()
        transport.set_protocol(handler)
        handler.connection_made(transport)


class _Gate(asyncio.Protocol):
    """The protocol of a connection until the server has decided on it."""

    def __init__(self, server: LocalServer) -> None:
        self._server = server

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._server.connect(cast(asyncio.Transport, transport))


TOKEN_HEADER = "X-Focused-Token"  # noqa: S105 -- the header's name, no secret
TOKEN_IDLE_S = 12 * HOUR_S
"""A token expires when unused for this long."""

_MAX_REQUEST_BYTES = 16_384
_HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "SAMEORIGIN",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-DNS-Prefetch-Control": "off",
}
_PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Clock = Callable[[], float]
_Body = TypeVar("_Body")


class LocalApp:
    """Guards an aiohttp application; ``token`` authorises requests to ``/api/``.

    ``clock`` returns seconds since the epoch, ``host`` is the address it is served at. ``static``
    maps paths to a file of the package ``package`` and its content type; ``routes`` are the others.
    """

    def __init__(
        self,
        clock: Clock,
        host: str,
        package: str,
        static: Mapping[str, tuple[str, str]],
        routes: Iterable[web.RouteDef],
    ) -> None:
        self.token = secrets.token_urlsafe(32)
        self.application = web.Application(
            middlewares=[self._guard], client_max_size=_MAX_REQUEST_BYTES
        )
        self.application.add_routes([web.get(path, self._send_file) for path in static])
        self.application.add_routes(routes)
        self._clock = clock
        self._host = host
        self._package = package
        self._static = static
        self._used_at = clock()

    def serve(self, *, port: int, ready: Callable[[str], None]) -> None:
        """Serve until SIGINT or SIGTERM.

        ``ready`` receives the address with the token once it is served; port 0 takes a free one.
        Raises ConfigurationError when the port is taken.
        """
        try:
            asyncio.run(self._serve(port, ready))
        except OSError as error:
            raise ConfigurationError(
                f"{self._host}:{port}: cannot serve there: {error.strerror}"
            ) from error

    async def _serve(self, port: int, ready: Callable[[str], None]) -> None:
        host = self._host
        listener = open_listener(host, port)
        server = LocalServer(self.application)
        try:
            await server.start(listener)
            stop = asyncio.Event()
            loop = asyncio.get_running_loop()
            for number in (signal.SIGINT, signal.SIGTERM):
                with contextlib.suppress(ValueError, RuntimeError):  # not in the main thread
                    loop.add_signal_handler(number, stop.set)
            name = f"[{host}]" if ":" in host else host
            ready(f"http://{name}:{listener.getsockname()[1]}/#{self.token}")
            await stop.wait()
        finally:
            await server.close()

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            self._check(request)
            response = await handler(request)
        except web.HTTPException as error:
            response = web.json_response({"error": error.text}, status=error.status)
        except (FocusedError, OSError) as error:
            response = web.json_response({"error": str(error)}, status=500)
        if not response.prepared:
            add_security_headers(response)
        return response

    def _check(self, request: web.Request) -> None:
        """Refuse other host names, other sites, and API requests without the token."""
        if not is_own_name(request.host, self._host):
            raise web.HTTPForbidden(text=f"{request.host} is not a valid host name for this page")
        if request.path not in self._static and _is_from_another_site(request):
            raise web.HTTPForbidden(text="Cross-site requests are refused.")
        if not request.path.startswith("/api/"):
            return
        given = request.headers.get(TOKEN_HEADER, "").encode("utf-8", "replace")
        now = self._clock()
        if not hmac.compare_digest(given, self.token.encode()):
            raise web.HTTPForbidden(text="The token is missing, invalid or expired.")
        if now - self._used_at > TOKEN_IDLE_S:
            raise web.HTTPForbidden(text="The token has expired.")
        self._used_at = now

    async def _send_file(self, request: web.Request) -> web.Response:
        name, content_type = self._static[request.path]
        body = (files(self._package) / "page" / name).read_bytes()
        return web.Response(body=body, content_type=content_type, charset="utf-8")


def add_security_headers(response: web.StreamResponse) -> None:
    """Add the headers that forbid foreign scripts; call it before a streamed response starts."""
    for name, value in _HEADERS.items():
        response.headers[name] = value
    response.headers.setdefault("Content-Security-Policy", _PAGE_POLICY)


def _is_from_another_site(request: web.Request) -> bool:
    """Whether the browser marks the request as cross-site; other clients need the token."""
    origin = request.headers.get("Origin")
    if origin is not None and origin.partition("://")[2] != request.host:
        return True
    return request.headers.get("Sec-Fetch-Site", "none") not in ("same-origin", "none")


async def read_json_body(request: web.Request, kind: type[_Body]) -> _Body:
    """Return the JSON of a request as ``kind``; raises an HTTP error for anything else."""
    if request.content_type != "application/json":
        raise web.HTTPUnsupportedMediaType(text="Send JSON.")
    try:
        return msgspec.json.decode(await request.text(), type=kind)
    except msgspec.ValidationError as error:
        raise web.HTTPBadRequest(text=f"The body is wrong: {error}.") from error
    except (ValueError, LookupError, RecursionError) as error:
        raise web.HTTPBadRequest(text="The body is not valid JSON.") from error
