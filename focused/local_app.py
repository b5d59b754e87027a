"""A web application for one user, served on this machine.

Access needs a token. It stands behind ``#`` in the address that the terminal shows, so that no
server, log or referrer sees it; the page keeps it for its window and sends it as a header. There
are no cookies, so another site cannot use the browser's session. Requests by another host name (DNS
rebinding) or marked as coming from another site are refused. Response headers allow only the
application's own scripts.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import json
import secrets
import signal
from collections.abc import Awaitable, Callable, Mapping
from importlib.resources import files
from typing import Any

from aiohttp import web

from focused.durations import HOUR_S
from focused.errors import FocusedError
from focused.local_server import LocalServer, is_own_name, open_listener

TOKEN_HEADER = "X-Focused-Token"  # noqa: S105 -- the header's name, no secret
TOKEN_IDLE_S = 12 * HOUR_S
"""A token expires when unused for this long."""

_MAX_REQUEST_BYTES = 16_384
_DISABLED_FEATURES = ", ".join(
    f"{name}=()"
    for name in (
        "accelerometer", "autoplay",
        "browsing-topics", "camera", "clipboard-read", "clipboard-write",
        "display-capture", "encrypted-media", "fullscreen", "gamepad", "geolocation", "gyroscope",
        "hid", "identity-credentials-get", "idle-detection",
        "keyboard-map", "local-fonts", "magnetometer", "microphone", "midi", "otp-credentials",
        "payment", "picture-in-picture", "private-state-token-issuance",
        "publickey-credentials-create", "publickey-credentials-get",
        "screen-wake-lock", "serial", "storage-access", "usb", "window-management",
        "xr-spatial-tracking",
    )
)  # fmt: skip
_HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "Permissions-Policy": _DISABLED_FEATURES,
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


class LocalApp:
    """Creates and guards an aiohttp application; ``token`` authorises requests to ``/api/``.

    ``clock`` returns seconds since the epoch, ``host`` is the address it is served at. ``static``
    maps paths to a file of the package ``package`` and its content type.
    """

    def __init__(
        self, clock: Clock, host: str, package: str, static: Mapping[str, tuple[str, str]]
    ) -> None:
        self.token = secrets.token_urlsafe(32)
        self._clock = clock
        self._host = host
        self._package = package
        self._static = static
        self._used_at = clock()

    def create(self) -> web.Application:
        """Create the application with its static files; the caller adds its other routes."""
        app = web.Application(middlewares=[self._guard], client_max_size=_MAX_REQUEST_BYTES)
        for path in self._static:
            app.router.add_get(path, self._send_file)
        return app

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


async def read_json_body(request: web.Request) -> dict[str, Any]:
    """Return the JSON object of a request; raises HTTPBadRequest for anything else."""
    if request.content_type != "application/json":
        raise web.HTTPUnsupportedMediaType(text="Send JSON.")
    try:
        value = await request.json()
        json.dumps(value, ensure_ascii=False).encode()  # refuses lone surrogates
    except (ValueError, LookupError, RecursionError) as error:
        raise web.HTTPBadRequest(text="The body is not valid JSON.") from error
    if not isinstance(value, dict):
        raise web.HTTPBadRequest(text="Send a JSON object.")
    return value


async def serve_until_stopped(
    app: web.Application, *, host: str, port: int, ready: Callable[[str], None]
) -> None:
    """Serve until SIGINT or SIGTERM; ``ready`` receives the address once it is served.

    Port 0 takes a free one. Raises OSError when the port is taken.
    """
    listener = open_listener(host, port)
    server = LocalServer(app)
    try:
        await server.start(listener)
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            with contextlib.suppress(ValueError, RuntimeError):  # not in the main thread
                loop.add_signal_handler(number, stop.set)
        name = f"[{host}]" if ":" in host else host
        ready(f"http://{name}:{server.addresses[0][1]}/")
        await stop.wait()
    finally:
        await server.close()
