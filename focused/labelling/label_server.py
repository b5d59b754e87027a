"""The label page: one labelling session in the browser, served on this machine.

:mod:`focused.local_server` guards it. A crawled page is shown in a frame at an opaque address:
sanitised (:mod:`focused.labelling.page_renderer`), and under a policy that forbids it to run
scripts, load, send and navigate.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import hmac
import secrets
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from aiohttp import web

from focused.archive.warc_files import warc_files
from focused.errors import FocusedError, LabelError
from focused.labelling.labelling_task import FetchedPages, read_fetched_pages
from focused.labelling.page_renderer import ORIGINAL_STYLE, PageRenderer, original_document
from focused.labelling.page_selection import TrainingPool, build_training_pool
from focused.labelling.session import LabellingSession, ShownPage, page_view, progress_view
from focused.labels.label_file import Verdict
from focused.local_server import Clock, LocalApp, read_json_body

_FILES = {
    "/": ("label.html", "text/html"),
    "/label.js": ("label.js", "text/javascript"),
    "/label.css": ("label.css", "text/css"),
}
_STYLE_HASH = base64.b64encode(hashlib.sha256(ORIGINAL_STYLE.encode()).digest()).decode()
_ORIGINAL_POLICY = (
    f"sandbox; default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'self'; webrtc 'block'"
)


class _Label(msgspec.Struct):
    url: str
    verdict: Verdict
    category: str = ""


class _Search(msgspec.Struct):
    query: str


class _Choice(msgspec.Struct):
    url: str


@contextlib.contextmanager
def _conflicts() -> Iterator[None]:
    """Answer what the session refuses with status 409."""
    try:
        yield
    except LabelError as error:
        raise web.HTTPConflict(text=str(error)) from error


class LabelServer:
    """The label page of one :class:`LabellingSession`.

    ``clock`` returns seconds since the epoch. The caller closes ``reader``.
    """

    def __init__(self, session: LabellingSession, reader: PageRenderer, clock: Clock) -> None:
        self._session = session
        self._reader = reader
        self._clock = clock
        self._key = secrets.token_bytes(32)

    def app(self, host: str = "127.0.0.1") -> LocalApp:
        """Return the web application, to be served at ``host``."""
        return LocalApp(
            self._clock,
            host,
            "focused.labelling",
            _FILES,
            [
                web.get("/api/state", self._state),
                web.post("/api/label", self._label),
                web.post("/api/undo", self._undo),
                web.post("/api/search", self._search),
                web.post("/api/show", self._show),
                web.get("/original/{key}", self._original),
            ],
        )

    async def _state(self, request: web.Request) -> web.Response:
        return web.json_response(await self._view())

    async def _label(self, request: web.Request) -> web.Response:
        label = await read_json_body(request, _Label)
        with _conflicts():
            self._session.answer(label.url, label.verdict, label.category, self._clock())
        return web.json_response(await self._view())

    async def _undo(self, request: web.Request) -> web.Response:
        with _conflicts():
            self._session.undo(self._clock())
        return web.json_response(await self._view())

    async def _search(self, request: web.Request) -> web.Response:
        search = await read_json_body(request, _Search)
        pages = self._session.search(search.query)
        found = [{"url": page.url, "title": page.title or page.url} for page in pages]
        return web.json_response({"found": found})

    async def _show(self, request: web.Request) -> web.Response:
        choice = await read_json_body(request, _Choice)
        with _conflicts():
            self._session.show(choice.url)
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
        session = self._session
        shown, page = session.current(), None
        if shown is not None:
            text = await asyncio.to_thread(self._reader.text, session.crawled, shown.page)
            page = page_view(shown, text, original=f"/original/{self._key_of(shown)}")
        return {
            "topic": session.task.name,
            "description": session.task.description,
            "categories": list(map(asdict, session.task.categories)),
            "page": page,
            "last": msgspec.to_builtins(session.last),
            "progress": progress_view(session.progress()),
        }


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

    The other arguments are those of :class:`focused.local_server.LocalApp`.
    """
    with PageRenderer() as reader:
        app = LabelServer(session, reader, clock).app(host)
        app.application.cleanup_ctx.append(partial(_refreshing, session))
        app.serve(port=port, ready=ready)


async def _refreshing(session: LabellingSession, _: web.Application) -> AsyncIterator[None]:
    """Read new pages of a running crawl while the server runs."""
    task = asyncio.create_task(_refresh_periodically(session))
    yield
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def _refresh_periodically(
    session: LabellingSession, interval_s: float = REFRESH_INTERVAL_S
) -> None:
    folder = session.crawled.folder
    size = _warc_bytes(folder)
    while True:
        await asyncio.sleep(interval_s)
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
