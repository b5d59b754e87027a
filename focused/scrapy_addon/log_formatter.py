"""Skip formatting Scrapy's per-page DEBUG messages."""

from __future__ import annotations

import logging
from typing import Any

from scrapy.logformatter import LogFormatter
from scrapy.settings import BaseSettings


class QuietLogFormatter(LogFormatter):
    """Scrapy's formatter without messages for each page and item."""

    def crawled(self, *args: Any) -> Any:
        """Return None."""

    def scraped(self, *args: Any) -> Any:
        """Return None."""


def install_quiet_formatter(settings: BaseSettings) -> None:
    """Set the formatter, unless DEBUG messages are logged or the user set one."""
    level = settings["LOG_LEVEL"]
    number = level if isinstance(level, int) else logging.getLevelName(str(level))
    if isinstance(number, int) and number > logging.DEBUG:
        settings.set("LOG_FORMATTER", QuietLogFormatter, priority="addon")
