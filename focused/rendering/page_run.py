"""One page in a browser: answer its requests, wait until its scripts rest, read its HTML.

Every request of the page is intercepted. The page is read when its document is loaded, no request
is pending, none began or ended for :data:`QUIET_S`, and its process is idle.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from focused.rendering.subrequests import (
    EMPTY_KINDS,
    FetchSubrequest,
    RefusalReason,
    RenderFailure,
    RenderLimits,
    RenderResult,
    Subrequest,
    SubrequestRefusedError,
)
from focused.web.page import Fetched

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, Page, Playwright, Route

QUIET_S = 0.25
"""A page without requests for so long has come to rest."""

MAX_QUEUE_S = 300.0
"""Longest time that a page waits for its requests."""

MAX_SUBREQUESTS = 2_000
"""Requests of a page, refused ones included, after which it is read as it is."""

CLOSE_S = 5.0
START_S = 30.0
_TICK_S = 0.05
_PASSED_HEADERS = ("content-type", "content-security-policy", "cache-control")
_PASSED_PREFIX = "access-control-"

# Runs in a world of its own: the page's scripts cannot replace what it calls.
_READ_HTML = """(async limit => {
  const idle = {timeout: 1000};
  await new Promise(done => setTimeout(() => requestIdleCallback(done, idle), 0));
  const root = document.documentElement;
  if (!root) return '';
  const html = root.outerHTML;
  return (html.length > limit ? '!' : ' ') + html.slice(0, limit);
})(%d)"""


@dataclass(eq=False, slots=True)
class OpenBrowser:
    """A running browser; ``killed_for_memory`` holds page processes that the watchdog killed."""

    playwright: Playwright
    browser: Browser
    folder: Path
    pid: int
    driver_pid: int
    pages: int = 0
    in_use: int = 0
    killed_for_memory: bool = False
    is_over: bool = False
    watchdog: asyncio.Task[None] | None = None


class PageRun:
    """Renders one page."""

    def __init__(
        self,
        current: OpenBrowser,
        fetched: Fetched,
        fetch: FetchSubrequest,
        limits: RenderLimits,
        clock: Callable[[], float],
    ) -> None:
        self._current = current
        self._fetched = fetched
        self._fetch = fetch
        self._limits = limits
        self._clock = clock
        self.is_browser_lost = False
        self._page: Page | None = None
        self._is_served = False
        self._is_loaded = False
        self._has_crashed = False
        self._pending = 0
        self._seen = 0
        self._served_bytes = 0
        self._counted = RenderResult(refused=Counter())
        self._began_at = self._last_at = clock()
        self._own_s = 0.0
        self._active_at = self._began_at

    async def render(self, user_agent: str | None) -> RenderResult:
        """Load the page, wait until it rests, and read it."""
        context: BrowserContext | None = None
        try:
            context = await asyncio.wait_for(
                self._current.browser.new_context(
                    service_workers="block",
                    accept_downloads=False,
                    user_agent=user_agent,
                ),
                START_S,
            )
            return await self._render_in(context)
        except Exception as error:  # Playwright's, whatever page and browser did
            await asyncio.sleep(2 * _TICK_S)  # the end of a process is reported after its errors
            if not self._current.browser.is_connected() or self._has_crashed:
                return self._crashed()
            if context is None or isinstance(error, TimeoutError):
                self.is_browser_lost = True
                return self._result(failure=RenderFailure.TIMEOUT, detail=_first_line(error))
            return self._result(failure=RenderFailure.NOT_LOADED, detail=_first_line(error))
        finally:
            if context is not None:
                await self._close(context)

    async def _render_in(self, context: BrowserContext) -> RenderResult:
        async with asyncio.timeout(START_S):
            await context.route("**/*", self._handle)
            await context.route_web_socket("**/*", self._refuse_web_socket)
            page = self._page = await context.new_page()
        page.on("dialog", lambda dialog: _detach(dialog.dismiss()))
        page.on("crash", self._on_crash)
        page.on("domcontentloaded", self._on_loaded)
        page.on("download", lambda download: _detach(download.cancel()))
        context.on("page", self._on_popup)
        going = asyncio.ensure_future(
            page.goto(self._fetched.url, wait_until="domcontentloaded", timeout=0)
        )
        going.add_done_callback(_ignore_result)
        try:
            while True:
                if not await self._wait_for_rest(going):
                    return self._crashed()
                seen = self._seen
                result = await self._read(context, page)
                await asyncio.sleep(_TICK_S)  # a request that began meanwhile is reported later
                if self._is_over() or result.html is None or self._seen == seen:
                    return result
        finally:
            going.cancel()

    async def _wait_for_rest(self, going: asyncio.Future[Any]) -> bool:
        """Wait until the page rests, or its time is up; return False when it crashed."""
        while not self._has_come_to_rest(going):
            await asyncio.sleep(_TICK_S)
            self._count_time()
            if self._has_crashed or not self._current.browser.is_connected():
                return False
            if self._is_over():
                self._counted.is_cut = True
                break
        return True

    def _has_come_to_rest(self, going: asyncio.Future[Any]) -> bool:
        if going.done() and not self._is_served:
            going.result()  # raises why
        loaded = self._is_loaded or going.done()
        return loaded and not self._pending and self._clock() - self._active_at >= QUIET_S

    def _count_time(self) -> None:
        """Count the time since the last call, unless the page waits for its requests."""
        now = self._clock()
        if not self._pending:
            self._own_s += now - self._last_at
        self._last_at = now

    def _is_over(self) -> bool:
        total_s = self._clock() - self._began_at
        return (
            self._own_s >= self._limits.time_s
            or total_s >= self._limits.time_s + MAX_QUEUE_S
            or self._seen > MAX_SUBREQUESTS
        )

    async def _read(self, context: BrowserContext, page: Page) -> RenderResult:
        """Return the page's HTML; a page whose scripts do not yield fails."""
        reading = asyncio.ensure_future(self._read_html(context, page))
        reading.add_done_callback(_ignore_result)
        until = self._clock() + self._limits.time_s
        try:
            while not (await asyncio.wait({reading}, timeout=_TICK_S))[0]:
                if self._has_crashed or not self._current.browser.is_connected():
                    return self._crashed()
                if self._clock() >= until:
                    self.is_browser_lost = self._current.in_use == 1
                    detail = "its scripts did not yield to be read"
                    return self._result(failure=RenderFailure.TIMEOUT, detail=detail)
        finally:
            reading.cancel()
        html = reading.result()
        self._counted.is_cut = self._counted.is_cut or html.startswith("!")
        return self._result(html=html[1:].encode("utf-8", "replace"))

    async def _read_html(self, context: BrowserContext, page: Page) -> str:
        session = await context.new_cdp_session(page)
        tree = await session.send("Page.getFrameTree")
        world = await session.send(
            "Page.createIsolatedWorld", {"frameId": tree["frameTree"]["frame"]["id"]}
        )
        answer = await session.send(
            "Runtime.evaluate",
            {
                "expression": _READ_HTML % self._limits.html_bytes,
                "contextId": world["executionContextId"],
                "returnByValue": True,
                "awaitPromise": True,
            },
        )
        return str(answer["result"].get("value") or " ")

    async def _handle(self, route: Route) -> None:
        """Answer one request of the page; nothing else does."""
        self._active_at = self._clock()
        self._seen += 1
        with suppress(Exception):  # the page, or the browser, has ended meanwhile
            await self._answer(route)
        self._active_at = self._clock()

    async def _answer(self, route: Route) -> None:
        request = route.request
        is_navigation = request.is_navigation_request()
        if is_navigation and not self._is_served and request.resource_type == "document":
            self._is_served = True
            headers = _passed_headers(self._fetched.headers)
            await route.fulfill(
                status=self._fetched.status, headers=headers, body=self._fetched.body
            )
            return
        if request.resource_type in EMPTY_KINDS and request.method == "GET":
            self._counted.refused[RefusalReason.KIND] += 1
            await route.fulfill(status=200, content_type="text/css", body="")
            return
        sub = Subrequest(
            request.url, request.resource_type, request.method, request.headers, is_navigation
        )
        self._count_time()
        self._pending += 1
        try:
            if self._seen > MAX_SUBREQUESTS or self._is_budget_spent():
                raise SubrequestRefusedError(RefusalReason.LIMIT)
            response = await self._fetch(sub)
        except SubrequestRefusedError as refused:
            self._counted.refused[refused.reason] += 1
            # Any other error of a navigation would replace the page.
            await route.abort("aborted" if is_navigation else "blockedbyclient")
            return
        finally:
            self._count_time()
            self._pending -= 1
        self._served_bytes += len(response.body)
        if not response.is_cached:
            self._counted.requests += 1
            self._counted.request_bytes += len(response.body)
        await route.fulfill(
            status=response.status, headers=_passed_headers(response.headers), body=response.body
        )

    def _is_budget_spent(self) -> bool:
        spent = self._counted.requests + self._pending > self._limits.requests
        if spent or self._served_bytes >= self._limits.request_bytes:
            self._counted.is_cut = True
            return True
        return False

    async def _refuse_web_socket(self, socket: Any) -> None:
        self._counted.refused[RefusalReason.KIND] += 1
        with suppress(Exception):
            await socket.close()

    def _on_loaded(self, _page: Any) -> None:
        self._is_loaded = True
        self._active_at = self._clock()

    def _on_crash(self, _page: Any) -> None:
        self._has_crashed = True

    def _on_popup(self, popup: Page) -> None:
        self._counted.refused[RefusalReason.NAVIGATION] += 1
        self._seen += 1
        _detach(popup.close())

    async def _close(self, context: BrowserContext) -> None:
        try:
            await asyncio.wait_for(context.close(), CLOSE_S)
        except Exception:  # a page that does not yield; killing the browser ends it
            self.is_browser_lost = True

    def _crashed(self) -> RenderResult:
        if self._current.killed_for_memory:
            self._current.killed_for_memory = False
            limit = f"the browser needed more than {self._limits.memory_mb:.0f} MB"
            return self._result(failure=RenderFailure.MEMORY, detail=limit)
        return self._result(failure=RenderFailure.CRASHED, detail="the browser's process ended")

    def _result(
        self,
        html: bytes | None = None,
        failure: RenderFailure | None = None,
        detail: str = "",
    ) -> RenderResult:
        seconds = self._clock() - self._began_at
        return replace(self._counted, html=html, failure=failure, detail=detail, seconds=seconds)


def _passed_headers(headers: Any) -> dict[str, str]:
    """Return the headers that matter to a page: no cookies, nothing about codings or lengths."""
    return {
        name: value
        for name, value in headers.items()
        if name in _PASSED_HEADERS or name.startswith(_PASSED_PREFIX)
    }


def _detach(coroutine: Any) -> None:
    """Run a coroutine whose result nobody needs."""
    asyncio.ensure_future(coroutine).add_done_callback(_ignore_result)


def _ignore_result(future: asyncio.Future[Any]) -> None:
    if not future.cancelled():
        future.exception()


def _first_line(error: Exception) -> str:
    return (str(error).strip() or repr(error)).partition("\n")[0][:200]
