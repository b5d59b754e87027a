"""Execute an operator's commands on the running crawl, and write its status for who watches it.

Both go through the crawl's control folder (:mod:`focused.crawl.control_folder`). Without a watcher
and without commands it costs two system calls a second.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from typing import Any

from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.utils.asyncio import call_later, create_looping_call
from scrapy.utils.defer import deferred_from_coro

from focused.crawl.control_folder import Action, ControlFolder, SentCommand
from focused.crawl.steering import Pause, Resume, SteeringResult, Steps, Stop, execute
from focused.errors import FocusedError
from focused.scrapy_addon.crawl_session import CrawlSession, session_of

logger = logging.getLogger(__name__)

_INTERVAL_S = 1.0
STOP_REASON = "stopped by its operator"


class SteeringExtension:
    """Executes commands one after the other, each in slices between which the crawl goes on."""

    def __init__(self, crawler: Crawler, session: CrawlSession) -> None:
        self._crawler = crawler
        self._session = session
        self._control = ControlFolder(session.topic.output.folder)
        self._waiting: deque[SentCommand] = deque()
        self._current: SentCommand | None = None
        self._last: tuple[float, int, int] | None = None
        self._loop = create_looping_call(self._tick)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> SteeringExtension:
        """Create and connect."""
        extension = cls(crawler, session_of(crawler))
        crawler.signals.connect(extension.opened, signals.spider_opened)
        crawler.signals.connect(extension.closing, signals.spider_closed)
        return extension

    def opened(self) -> None:
        """Start; commands that an earlier session left are logged and not executed."""
        for sent in self._control.take():
            self._log(sent, error="discarded: the crawl ended before it was executed")
        self._loop.start(_INTERVAL_S, now=False)

    def closing(self) -> None:
        """Stop, and write the last status."""
        if self._loop.running:
            self._loop.stop()
        self._write_status()

    def _tick(self) -> None:
        if not self._session.is_open:
            return
        self._waiting.extend(self._control.take())
        if self._current is None:
            self._execute_next()
        self._write_status()

    def _execute_next(self) -> None:
        if not self._waiting:
            return
        sent = self._current = self._waiting.popleft()
        result = self._execute_by_driver(sent)
        if result is not None:
            self._finish(sent, result)
            return
        self._continue(sent, execute(self._session.group.crawls, sent.command, self._session.now))

    def _execute_by_driver(self, sent: SentCommand) -> SteeringResult | None:
        """Execute what concerns requests as such; None for other commands."""
        session = self._session
        match sent.command:
            case Pause():
                session.is_paused = True
                return SteeringResult("paused: requests in flight are awaited", Resume())
            case Resume():
                session.is_paused = False
                session.wake()
                return SteeringResult("resumed", Pause())
            case Stop():
                closing = self._crawler.engine.close_spider_async(reason=STOP_REASON)
                deferred_from_coro(closing)
                return SteeringResult("stopping: requests in flight are awaited")
            case _:
                return None

    def _continue(self, sent: SentCommand, steps: Steps) -> None:
        """Execute a slice; the engine works before the next one."""
        if not self._session.is_open:
            self._log(sent, error="the crawl ended before it was finished")
            return
        try:
            next(steps)
        except StopIteration as finished:
            self._finish(sent, finished.value)
        except FocusedError as error:
            self._current = None
            self._log(sent, error=str(error))
        except Exception as error:  # the frontier may be half edited
            self._log(sent, error=f"{type(error).__name__}: {error}")
            self._session.fail(error)
        else:
            call_later(0, self._continue, sent, steps)

    def _finish(self, sent: SentCommand, result: SteeringResult) -> None:
        self._current = None
        self._session.wake()
        self._log(sent, result)

    def _log(
        self, sent: SentCommand, result: SteeringResult | None = None, *, error: str = ""
    ) -> None:
        message, undo = ("", None) if result is None else (result.message, result.undo)
        logger.info("%s by %s: %s", sent.command, sent.by, message or error)
        now = self._session.now()
        self._control.log(
            Action(sent.id, now, sent.by, sent.command, message, error, undo, sent.undoes)
        )

    def _write_status(self) -> None:
        if self._session.was_opened and self._control.is_watched(time.time()):
            self._control.write_status(self._status())

    def _status(self) -> dict[str, Any]:
        session = self._session
        now_s = time.monotonic()
        status: dict[str, Any] = {
            "at": time.time(),
            "is_paused": session.is_paused,
            "end_reason": session.end_reason,
            "error": session.error_message,
            "command": None if self._current is None else type(self._current.command).__name__,
        }
        if not session.is_open:
            return status
        session.publish()
        assert self._crawler.stats is not None, "the crawl runs"
        prefix = "focused/"
        stats = self._crawler.stats.get_stats()
        status["stats"] = {
            name.removeprefix(prefix): value
            for name, value in stats.items()
            if name.startswith(prefix)
        }
        group, counters = session.group, session.group.counters
        downloads = counters.fetched + sum(counters.revisits.values())
        if self._last is not None and now_s > self._last[0]:
            elapsed_s = now_s - self._last[0]
            status["pages_per_s"] = (downloads - self._last[1]) / elapsed_s
            status["bytes_per_s"] = (counters.bytes - self._last[2]) / elapsed_s
        self._last = now_s, downloads, counters.bytes
        status["in_flight"] = sum(crawl.in_flight for crawl in group.crawls)
        status["waiting"] = session.waiting.line
        if group.crawls:
            first, now = group.crawls[0], session.now()
            budget = first.budget
            status["active_s"] = max(crawl.active_s(now) for crawl in group.crawls)
            status["budget"] = {
                "pages": budget.pages, "hours": budget.hours, "bytes": budget.bytes
            }  # fmt: skip
            status["delay_s"] = first.delay_s
        return status
