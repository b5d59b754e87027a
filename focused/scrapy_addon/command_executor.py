"""Execute an operator's commands on the running crawl, and write its status for who watches it.

Both go through the crawl's control folder. What executes commands (:mod:`focused.crawl.steering`)
is imported when there is such a folder: when somebody watches or steers, or did so before.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from typing import TYPE_CHECKING, Any

from scrapy import signals
from scrapy.utils.asyncio import call_later, create_looping_call

from focused.crawl import CONTROL_FOLDER
from focused.errors import FocusedError
from focused.scrapy_addon.driver_features import Driver

if TYPE_CHECKING:
    from focused.crawl.steering import ControlFolder, SentCommand, SteeringResult, Steps

logger = logging.getLogger(__name__)

STOP_REASON = "stopped by its operator"
_INTERVAL_S = 1.0


class CommandExecutor:
    """The extension that looks into the control folder once a second.

    It executes commands one after the other, each in slices between which the crawl goes on.
    """

    def __init__(self, driver: Driver) -> None:
        self._slot = driver.slot
        self._clock = driver.clock
        self._status = driver.status
        self._engine = driver.engine
        self._statistics = driver.statistics
        self._folder = driver.topic.output.folder
        self._control: ControlFolder | None = None
        self._waiting: deque[SentCommand] = deque()
        self._current: SentCommand | None = None
        self._last: tuple[float, int, int] | None = None
        self._loop = create_looping_call(self._tick)

    @classmethod
    def of_driver(cls, driver: Driver) -> CommandExecutor:
        """Create and connect."""
        executor = cls(driver)
        driver.crawler.signals.connect(executor.opened, signals.spider_opened)
        driver.crawler.signals.connect(executor.closing, signals.spider_closed)
        return executor

    def opened(self) -> None:
        """Start; commands that an earlier session left are logged and not executed."""
        control = self._find_control()
        if self._slot.is_open and control is not None:
            for sent in control.take():
                self._log(sent, error="discarded: the crawl ended before it was executed")
        self._loop.start(_INTERVAL_S, now=False)

    def closing(self) -> None:
        """Stop, and write the last status."""
        if self._loop.running:
            self._loop.stop()
        self._write_status()

    def _tick(self) -> None:
        """Execute what came, and write the status."""
        control = self._find_control()
        if control is None:
            return
        if self._slot.is_open:
            self._waiting.extend(control.take())
            if self._current is None:
                self._execute_next()
        self._write_status()

    def _find_control(self) -> ControlFolder | None:
        """Return the control folder; None until somebody watches or steers."""
        if self._control is None and (self._folder / CONTROL_FOLDER).is_dir():
            from focused.crawl.steering import ControlFolder  # when it is needed

            self._control = ControlFolder(self._folder)
        return self._control

    def _write_status(self) -> None:
        """Write the status if somebody watches."""
        control = self._control
        if control is not None and self._slot.was_opened and control.is_watched(time.time()):
            control.write_status(self._describe())

    def _execute_next(self) -> None:
        if not self._waiting:
            return
        sent = self._current = self._waiting.popleft()
        result = self._execute_by_driver(sent)
        if result is not None:
            self._finish(sent, result)
            return
        from focused.crawl.steering import execute  # as above

        self._continue(sent, execute(self._slot.crawl, sent.command, self._clock))

    def _execute_by_driver(self, sent: SentCommand) -> SteeringResult | None:
        """Execute what concerns requests as such; None for other commands."""
        from focused.crawl.steering import Pause, Resume, SteeringResult, Stop  # as above

        match sent.command:
            case Pause():
                self._status.is_paused = True
                return SteeringResult("paused: requests in flight are awaited", Resume())
            case Resume():
                self._status.is_paused = False
                self._engine.wake()
                return SteeringResult("resumed", Pause())
            case Stop():
                self._engine.close(STOP_REASON)
                return SteeringResult("stopping: requests in flight are awaited")
            case _:
                return None

    def _continue(self, sent: SentCommand, steps: Steps) -> None:
        """Execute a slice; the engine works before the next one."""
        if not self._slot.is_open:
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
            self._status.fail(error)
        else:
            call_later(0, self._continue, sent, steps)

    def _finish(self, sent: SentCommand, result: SteeringResult) -> None:
        self._current = None
        self._engine.wake()
        self._log(sent, result)

    def _log(
        self, sent: SentCommand, result: SteeringResult | None = None, *, error: str = ""
    ) -> None:
        from focused.crawl.steering import Action  # as above

        message, undo = ("", None) if result is None else (result.message, result.undo)
        logger.info("%s by %s: %s", sent.command, sent.by, message or error)
        now = self._clock()
        assert self._control is not None, "the command came from there"
        self._control.log(
            Action(sent.id, now, sent.by, sent.command, message, error, undo, sent.undoes)
        )

    def _describe(self) -> dict[str, Any]:
        now_s = time.monotonic()
        status: dict[str, Any] = {
            "at": time.time(),
            "is_paused": self._status.is_paused,
            "end_reason": self._status.end_reason,
            "error": self._status.error_message,
            "command": None if self._current is None else type(self._current.command).__name__,
        }
        if not self._slot.is_open:
            return status
        self._statistics.publish()
        status["stats"] = self._statistics.read()
        crawl, now = self._slot.crawl, self._clock()
        counters = crawl.counters
        downloads = counters.downloads
        if self._last is not None and now_s > self._last[0]:
            elapsed_s = now_s - self._last[0]
            status["pages_per_s"] = (downloads - self._last[1]) / elapsed_s
            status["bytes_per_s"] = (counters.bytes - self._last[2]) / elapsed_s
        self._last = now_s, downloads, counters.bytes
        status["in_flight"] = crawl.in_flight
        status["waiting"] = self._status.waiting
        status["active_s"] = crawl.active_s(now)
        budget = crawl.stop_conditions.budget
        status["budget"] = {"pages": budget.pages, "hours": budget.hours, "bytes": budget.bytes}
        status["delay_s"] = crawl.hosts.policy.delay_s
        return status
