"""The label page: one labelling session in the browser, served on this machine.

Access needs a token. It stands behind ``#`` in the address that the terminal shows, so that no
server, log or referrer sees it; the page keeps it for its window and sends it as a header. There
are no cookies, so another site cannot use the browser's session. Requests by another host name (DNS
rebinding) or marked as coming from another site are refused. Response headers allow only the page's
own script.

A crawled page is shown in a frame at an opaque address: sanitised
(:mod:`focused.labelling.page_renderer`), and under a policy that forbids it to run scripts, load,
send and navigate.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import hmac
import ipaddress
import json
import secrets
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from aiohttp import web

from focused.archive.warc_files import warc_files
from focused.durations import HOUR_S
from focused.errors import FocusedError, LabelError
from focused.labelling.labelling_task import FetchedPages, read_fetched_pages
from focused.labelling.page_renderer import (
    ORIGINAL_STYLE,
    PageRenderer,
    RenderedPage,
    original_document,
)
from focused.labelling.session import (
    LabellingSession,
    ShownPage,
    label_view,
    page_view,
    progress_view,
    search_view,
    session_view,
)
from focused.labelling.training_pool import TrainingPool, build_training_pool

TOKEN_HEADER = "X-Focused-Token"  # noqa: S105 -- the header's name, no secret
TOKEN_IDLE_S = 12 * HOUR_S
"""A token expires when unused for this long."""

_MAX_REQUEST_BYTES = 16_384
_FILES = {
    "/": ("label.html", "text/html"),
    "/label.js": ("label.js", "text/javascript"),
    "/label.css": ("label.css", "text/css"),
}
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
_STYLE_HASH = base64.b64encode(hashlib.sha256(ORIGINAL_STYLE.encode()).digest()).decode()
_ORIGINAL_POLICY = (
    f"sandbox; default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'self'; webrtc 'block'"
)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Clock = Callable[[], float]


class LabelServer:
    """The web application of one :class:`LabellingSession`; ``token`` authorises requests.

    ``clock`` returns seconds since the epoch, ``host`` is the address it is served at. The caller
    closes ``reader``.
    """

    def __init__(
        self, session: LabellingSession, reader: PageRenderer, clock: Clock, host: str = "127.0.0.1"
    ) -> None:
        self.token = secrets.token_urlsafe(32)
        self._session = session
        self._reader = reader
        self._clock = clock
        self._host = host
        self._used_at = clock()
        self._key = secrets.token_bytes(32)

    def application(self) -> web.Application:
        """Create the aiohttp application."""
        app = web.Application(middlewares=[self._guard], client_max_size=_MAX_REQUEST_BYTES)
        for path in _FILES:
            app.router.add_get(path, _send_file)
        app.router.add_get("/api/state", self._state)
        app.router.add_post("/api/label", self._label)
        app.router.add_post("/api/undo", self._undo)
        app.router.add_post("/api/search", self._search)
        app.router.add_post("/api/show", self._show)
        app.router.add_get("/original/{key}", self._original)
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
        for name, value in _HEADERS.items():
            response.headers[name] = value
        response.headers.setdefault("Content-Security-Policy", _PAGE_POLICY)
        return response

    def _check(self, request: web.Request) -> None:
        """Refuse other host names, other sites, and API requests without the token."""
        if not self._is_our_name(request.host):
            raise web.HTTPForbidden(text=f"{request.host} is not a valid host name for this page")
        if request.path not in _FILES and _is_from_another_site(request):
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

    def _is_our_name(self, host: str) -> bool:
        """Accept names that cannot be rebound: addresses and localhost."""
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
        name = name.strip("[]").lower()
        if name in ("localhost", self._host):
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True

    async def _state(self, request: web.Request) -> web.Response:
        return web.json_response(await self._view())

    async def _label(self, request: web.Request) -> web.Response:
        body = await _read_json(request)
        url, verdict, category = (body.get(name, "") for name in ("url", "verdict", "category"))
        if verdict not in ("yes", "no", "skip") or not isinstance(url, str):
            raise web.HTTPBadRequest(text="A label needs a url and a verdict: yes, no or skip.")
        if not isinstance(category, str):
            raise web.HTTPBadRequest(text="The category must be a string.")
        try:
            self._session.answer(url, verdict, category, self._clock())
        except LabelError as error:
            raise web.HTTPConflict(text=str(error)) from error
        return web.json_response(await self._view())

    async def _undo(self, request: web.Request) -> web.Response:
        try:
            self._session.undo(self._clock())
        except LabelError as error:
            raise web.HTTPConflict(text=str(error)) from error
        return web.json_response(await self._view())

    async def _search(self, request: web.Request) -> web.Response:
        query = (await _read_json(request)).get("query", "")
        if not isinstance(query, str):
            raise web.HTTPBadRequest(text="The query must be a string.")
        return web.json_response(search_view(self._session.search(query)))

    async def _show(self, request: web.Request) -> web.Response:
        url = (await _read_json(request)).get("url", "")
        if not isinstance(url, str):
            raise web.HTTPBadRequest(text="The url must be a string.")
        try:
            self._session.show(url)
        except LabelError as error:
            raise web.HTTPConflict(text=str(error)) from error
        return web.json_response(await self._view())

    async def _original(self, request: web.Request) -> web.Response:
        """Serve the crawled page of a key; the key is valid for this page only."""
        shown = self._session.current()
        if shown is None or not hmac.compare_digest(
            request.match_info["key"].encode("utf-8", "replace"), self._key_of(shown).encode()
        ):
            raise web.HTTPNotFound(text="This page is not shown now.")
        crawled = self._session.crawled
        found = await asyncio.to_thread(self._reader.original, crawled, shown.page)
        return web.Response(
            body=original_document(found.content, found.problem),
            content_type="text/html",
            charset="utf-8",
            headers={"Content-Security-Policy": _ORIGINAL_POLICY},
        )

    def _key_of(self, shown: ShownPage) -> str:
        return hmac.new(self._key, shown.page.url.encode(), hashlib.sha256).hexdigest()

    async def _view(self) -> Mapping[str, Any]:
        shown, last = self._session.current(), self._session.last
        view: dict[str, Any] = session_view(self._session.task)
        view["page"] = None
        view["last"] = label_view(last) if last else None
        view["progress"] = progress_view(self._session.progress())
        if shown is not None:
            crawled = self._session.crawled
            text: RenderedPage = await asyncio.to_thread(self._reader.text, crawled, shown.page)
            view["page"] = page_view(shown, text, original=f"/original/{self._key_of(shown)}")
        return view


def _is_from_another_site(request: web.Request) -> bool:
    """Whether the browser marks the request as cross-site; other clients need the token."""
    origin = request.headers.get("Origin")
    if origin is not None and origin.partition("://")[2] != request.host:
        return True
    return request.headers.get("Sec-Fetch-Site", "none") not in ("same-origin", "none")


async def _send_file(request: web.Request) -> web.Response:
    name, content_type = _FILES[request.path]
    body = (files("focused.labelling") / "page" / name).read_bytes()
    return web.Response(body=body, content_type=content_type, charset="utf-8")


async def _read_json(request: web.Request) -> dict[str, Any]:
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


REFRESH_INTERVAL_S = 60.0
"""Interval at which a running crawl is read again."""

_MIN_GROWTH = 1.1


def serve_session(
    session: LabellingSession,
    *,
    clock: Clock,
    ready: Callable[[str], None],
    host: str = "127.0.0.1",
    port: int = 0,
) -> None:
    """Serve ``session`` at ``host`` until SIGINT or SIGTERM.

    ``ready`` receives the address with the token once it is served. Port 0 takes a free one. Raises
    :class:`LabelError` when the port is taken.
    """
    with PageRenderer() as reader:
        server = LabelServer(session, reader, clock, host)
        asyncio.run(_serve_until_stopped(server, session, ready, host, port))


async def _serve_until_stopped(
    server: LabelServer,
    session: LabellingSession,
    ready: Callable[[str], None],
    host: str,
    port: int,
) -> None:
    app = server.application()
    app.cleanup_ctx.append(_refresh_context(session))
    runner = web.AppRunner(app, access_log=None, handle_signals=False)
    await runner.setup()
    try:
        site = web.TCPSite(runner, host, port)
        try:
            await site.start()
        except OSError as error:
            raise LabelError(f"{host}:{port}: cannot serve there: {error.strerror}") from error
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            with contextlib.suppress(ValueError, RuntimeError):  # not in the main thread
                loop.add_signal_handler(number, stop.set)
        bound = runner.addresses[0][1]
        name = f"[{host}]" if ":" in host else host
        ready(f"http://{name}:{bound}/#{server.token}")
        await stop.wait()
    finally:
        await runner.cleanup()


def _refresh_context(session: LabellingSession) -> Callable[[web.Application], AsyncIterator[None]]:
    """Read new pages of a running crawl while the server runs."""

    async def context(_: web.Application) -> AsyncIterator[None]:
        task = asyncio.create_task(_refresh_periodically(session))
        yield
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    return context


async def _refresh_periodically(session: LabellingSession) -> None:
    folder = session.crawled.folder
    size = _warc_bytes(folder)
    while True:
        await asyncio.sleep(REFRESH_INTERVAL_S)
        # A folder that is unreadable now may be readable next time.
        with contextlib.suppress(FocusedError, OSError):
            # Don't open a crawl that does not grow: it may be about to be resumed.
            if _warc_bytes(folder) == size:
                continue
            found = await asyncio.to_thread(_read_grown_crawl, session)
            if found is not None:
                size = _warc_bytes(folder)
                session.refresh(*found)


def _warc_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in warc_files(folder))


def _read_grown_crawl(session: LabellingSession) -> tuple[FetchedPages, TrainingPool] | None:
    """The crawl's pages when there are at least a tenth more than in the session."""
    now = read_fetched_pages(session.crawled.folder)
    if len(now.pages) < _MIN_GROWTH * len(session.crawled.pages) + 1:
        return None
    return now, build_training_pool(now, session.task.classifier)
