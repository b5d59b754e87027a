"""What is known of a run: whether it is paused, waits or failed, and why it ended."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from pathlib import Path

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.utils.defer import deferred_from_coro

from focused.crawl import Step, Wait
from focused.errors import print_notice
from focused.scrapy_addon.state_folder import format_error

CRAWL_CLOSING = object()
"""Signal of a crawler whose crawl is closed now; then its report is printed."""


class EngineControl:
    """Wakes, closes and uses the engine of a crawler, once it exists."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    def wake(self) -> None:
        """Let the engine ask the scheduler for requests in the next turn of the reactor."""
        # A private name of Scrapy: nothing public makes the engine call next_request before its
        # heartbeat of 5 s.
        slot = self._crawler.engine._slot
        if slot is not None:
            slot.nextcall.schedule()

    def close(self, reason: str) -> None:
        """Close the spider; requests in flight are awaited."""
        deferred_from_coro(self._crawler.engine.close_spider_async(reason=reason))

    @property
    def is_closing(self) -> bool:
        """Whether the spider is being closed."""
        # A private name of Scrapy: it sends no signal when it begins to close.
        slot = self._crawler.engine._slot
        return slot is None or slot.closing is not None

    async def download(self, request: Request) -> Response:
        """Download a request outside the frontier, in its host's turn.

        Raises the exceptions of downloads.
        """
        return await self._crawler.engine.download_async(request)


logger = logging.getLogger(__name__)


class RunStatus:
    """The status of one run. The driver changes it; progress line, console and metrics show it."""

    def __init__(self, folder: Path, close: Callable[[str], object]) -> None:
        """``close(reason)`` closes the spider of the crawl in ``folder``."""
        self._folder = folder
        self._close = close
        self.end_reason = ""
        """Why the run ended; empty while it runs."""
        self.error_message = ""
        """Why the run failed; empty if it did not."""
        self.is_paused = False
        """Whether no more requests are sent; those in flight are settled."""
        self.waiting = ""
        """What the crawl waits for: hosts in back-off or with long crawl delays; else empty."""

    def end(self, reason: str) -> None:
        """Record why the run ended; a failed run keeps its error as the reason."""
        if not self.error_message:
            self.end_reason = reason

    def fail(self, error: Exception) -> None:
        """Close the spider after an error of the crawl's state."""
        if not self.end_reason:
            message = format_error(error, self._folder)
            self.end_reason = f"stopped by an error: {message}"
            logger.critical("the crawl was stopped: %s", message, exc_info=error)
            self.report_error(message)
        self._close("error")

    def note(self, step: Step) -> None:
        """Update what the crawl waits for by its newest step."""
        waiting = _wait_message(step) if isinstance(step, Wait) else ""
        if waiting and waiting != self.waiting:
            logger.info(waiting)
        self.waiting = waiting

    def report_error(self, message: str) -> None:
        """Print and keep an error, which makes the run a failed one."""
        self.error_message = message
        print_notice(message)


def _wait_message(wait: Wait) -> str:
    if not wait.hosts_backing_off or wait.until is None:
        return ""
    hosts = f"{wait.hosts_backing_off:,} host{'' if wait.hosts_backing_off == 1 else 's'}"
    at = time.strftime("%H:%M:%S", time.localtime(wait.until))
    return f"waiting for {hosts} in back-off or long crawl-delays, the next at {at}"
