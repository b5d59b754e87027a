"""Render pages of a crawl in a browser whose requests the crawl itself sends.

A page is rendered between its arrival and its settling: its host stays in flight. What its scripts
request goes the way of any request outside the frontier: robots.txt, the host's delay, one request
at a time to host and address, private addresses, logins and sizes are checked there.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from time import monotonic
from urllib.parse import urljoin

from scrapy import Request, signals
from scrapy.settings import BaseSettings

from focused.crawl.javascript import JavascriptPages, RenderCandidate, select_to_render
from focused.crawl.page_parser import ParsedPage
from focused.errors import print_notice
from focused.rendering.chromium import (
    BrowserUnavailableError,
    ChromiumRenderer,
    check_browser,
)
from focused.rendering.subrequests import (
    AssetCache,
    RefusalReason,
    RenderFailure,
    RenderLimits,
    RenderResult,
    Subrequest,
    SubrequestPolicy,
    SubrequestRefusedError,
    SubrequestResponse,
)
from focused.scrapy_addon.driver_features import Driver, positive, whole_number
from focused.scrapy_addon.name_resolver import PrivateAddressError
from focused.scrapy_addon.outcomes import FetchPostponed, RobotsDeniedError, join_headers
from focused.scrapy_addon.page_processing import ParseEarly
from focused.scrapy_addon.request_state import META_KEY, RequestState
from focused.web.page import Failed, Fetched

logger = logging.getLogger(__name__)

MAX_REDIRECTS = 5

_CHECK_S = 0.2
_REDIRECTS = frozenset({301, 302, 303, 307, 308})


class BrowserRendering:
    """Renders the pages of one crawl that are worth it."""

    def __init__(self, driver: Driver, make: Callable[[], ChromiumRenderer]) -> None:
        """``make`` returns the renderer, in the running event loop."""
        self._slot = driver.slot
        self._clock = driver.clock
        self._engine = driver.engine
        self._make = make
        self._renderer: ChromiumRenderer | None = None
        self._cache = AssetCache()
        self._was_missed = False
        scope = driver.topic.scope
        self._allowed_hosts = (*scope.javascript_hosts, *scope.allow_hosts)
        self._private = scope.private_addresses
        driver.crawler.signals.connect(self._close, signals.spider_closed)

    @classmethod
    def of_driver(cls, settings: BaseSettings, driver: Driver) -> BrowserRendering:
        """Create with the browser of the settings; warn if there is none."""
        limits, path = render_limits(settings), settings["FOCUSED_JAVASCRIPT_BROWSER"]
        browser_path = None if path is None else str(path)
        sandbox = settings.getbool("FOCUSED_JAVASCRIPT_SANDBOX")

        def make() -> ChromiumRenderer:
            return ChromiumRenderer(
                limits,
                monotonic,
                browser_path=browser_path,
                sandbox=sandbox,
                user_agent=driver.topic.politeness.user_agent,
            )

        rendering = cls(driver, make)
        try:
            check_browser(browser_path, sandbox=sandbox)
        except BrowserUnavailableError as error:
            rendering._warn(str(error))
        return rendering

    async def process(
        self, lease: int, fetched: Fetched, parsed: ParsedPage | Failed, parse: ParseEarly
    ) -> tuple[Fetched, ParsedPage | Failed]:
        """Return a page as it came and was parsed, or as a browser shows it.

        Raises FetchPostponed when the crawl ends meanwhile: the link stays queued.
        """
        crawl = self._slot.of_lease(lease)
        if crawl is None:
            return fetched, parsed
        candidate = select_to_render(crawl, lease, fetched, parsed, self._clock())
        if candidate is None:
            return fetched, parsed
        result = await self._render(lease, fetched)
        if not self._slot.is_leased(lease):
            return fetched, parsed
        shown, shown_parsed = fetched, parsed
        if result.html is not None:
            shown = replace(fetched, rendered=result.html)
            again = await parse(lease, shown)
            if again is not None:
                shown_parsed = again
        return self._choose(candidate, result, (fetched, parsed), (shown, shown_parsed), lease)

    def _choose(
        self,
        candidate: RenderCandidate,
        result: RenderResult,
        raw: tuple[Fetched, ParsedPage | Failed],
        shown: tuple[Fetched, ParsedPage | Failed],
        lease: int,
    ) -> tuple[Fetched, ParsedPage | Failed]:
        """Return the rendered page if rendering brought anything."""
        crawl = self._slot.of_lease(lease)
        pages = None if crawl is None else crawl.feature(JavascriptPages)
        if pages is None:
            return raw
        if result.failure is not None:
            logger.info("%s was not rendered: %s, %s", candidate.url, result.failure, result.detail)
        if result.failure is RenderFailure.NO_BROWSER:
            self._warn(result.detail)
        parsed = shown[1]
        is_new = shown[0].rendered is not None and isinstance(parsed, ParsedPage)
        page = parsed.page if is_new and isinstance(parsed, ParsedPage) else None
        if pages.learn(candidate, result, page):
            return shown
        if result.html is not None:
            logger.info("%s was rendered without gain", candidate.url)
        return raw

    async def _render(self, lease: int, fetched: Fetched) -> RenderResult:
        """Render the page, unless the crawl ends meanwhile."""
        if self._renderer is None:
            self._renderer = self._make()
        policy = SubrequestPolicy(fetched.url, self._allowed_hosts, self._private)

        async def fetch(request: Subrequest) -> SubrequestResponse:
            return await self._fetch(request, policy, lease)

        rendering = asyncio.ensure_future(self._renderer.render(fetched, fetch))
        try:
            while not (await asyncio.wait({rendering}, timeout=_CHECK_S))[0]:
                if self._engine.is_closing:
                    raise FetchPostponed("the crawl ends before the page was rendered")
        finally:
            rendering.cancel()
        return rendering.result()

    async def _fetch(
        self, request: Subrequest, policy: SubrequestPolicy, lease: int
    ) -> SubrequestResponse:
        """Fetch a subrequest and follow its redirects. Raises SubrequestRefusedError."""
        for _ in range(MAX_REDIRECTS + 1):
            if (reason := policy.refusal(request)) is not None:
                raise SubrequestRefusedError(reason)
            response = self._cache.get(request)
            if response is None:
                response = await self._download(request, lease)
                self._cache.put(request, response)
            target = response.headers.get("location")
            if response.status not in _REDIRECTS or not target:
                return response
            request = replace(request, url=urljoin(request.url, target))
        raise SubrequestRefusedError(RefusalReason.FAILED)

    async def _download(self, request: Subrequest, lease: int) -> SubrequestResponse:
        sent = Request(
            request.url.partition("#")[0],
            headers=dict(request.forwarded_headers),
            meta={META_KEY: RequestState(page_lease=lease)},
            dont_filter=True,
        )
        try:
            response = await self._engine.download(sent)
        except RobotsDeniedError:
            raise SubrequestRefusedError(RefusalReason.ROBOTS) from None
        except PrivateAddressError:
            raise SubrequestRefusedError(RefusalReason.PRIVATE_ADDRESS) from None
        except Exception as error:  # of the network, or a middleware's
            logger.debug("%s was not fetched for a script: %r", request.url, error)
            raise SubrequestRefusedError(RefusalReason.FAILED) from None
        headers = join_headers({name.lower(): each for name, each in response.headers.items()})
        return SubrequestResponse(response.status, headers, response.body)

    def _warn(self, reason: str) -> None:
        if self._was_missed:
            return
        self._was_missed = True
        message = f"pages are not rendered: {reason}"
        logger.warning(message)
        print_notice(message)

    async def _close(self) -> None:
        if self._renderer is not None:
            await self._renderer.close()


def render_limits(settings: BaseSettings) -> RenderLimits:
    """Return the limits of rendering one page. Raises ConfigurationError."""
    return RenderLimits(
        time_s=positive(settings, "FOCUSED_JAVASCRIPT_TIMEOUT_S"),
        memory_mb=positive(settings, "FOCUSED_JAVASCRIPT_MEMORY_MB"),
        requests=whole_number(settings, "FOCUSED_JAVASCRIPT_REQUESTS") or 1,
        pages=whole_number(settings, "FOCUSED_JAVASCRIPT_PAGES") or 1,
    )
