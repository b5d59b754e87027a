"""Watch a crawl's control folder: import what executes commands when somebody watches or steers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from scrapy import signals
from scrapy.utils.asyncio import create_looping_call

from focused.scrapy_addon.driver_features import Driver

if TYPE_CHECKING:
    from focused.scrapy_addon.command_executor import CommandExecutor

_INTERVAL_S = 1.0


class ControlWatch:
    """The extension that looks into the control folder once a second."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._folder = driver.topic.output.folder / "control"
        self._executor: CommandExecutor | None = None
        self._loop = create_looping_call(self._tick)

    @classmethod
    def of_driver(cls, driver: Driver) -> ControlWatch:
        """Create and connect."""
        watch = cls(driver)
        driver.crawler.signals.connect(watch.opened, signals.spider_opened)
        driver.crawler.signals.connect(watch.closing, signals.spider_closed)
        return watch

    def opened(self) -> None:
        """Start; commands that an earlier session left are logged and not executed."""
        if self._driver.slot.is_open and _has_entries(self._folder / "commands"):
            self._get_executor().discard()
        self._loop.start(_INTERVAL_S, now=False)

    def closing(self) -> None:
        """Stop, and write the last status."""
        if self._loop.running:
            self._loop.stop()
        if self._executor is not None:
            self._executor.write_status()

    def _tick(self) -> None:
        is_asked = (self._folder / "watched").exists() or _has_entries(self._folder / "commands")
        if self._executor is not None or is_asked:
            self._get_executor().tick()

    def _get_executor(self) -> CommandExecutor:
        if self._executor is None:
            from focused.scrapy_addon.command_executor import CommandExecutor

            self._executor = CommandExecutor(self._driver)
        return self._executor


def _has_entries(folder: Path) -> bool:
    try:
        with os.scandir(folder) as entries:
            return next(entries, None) is not None
    except OSError:
        return False
