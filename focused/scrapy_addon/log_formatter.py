"""Two lines for each page that nobody reads are not worded."""

from __future__ import annotations

import logging
from typing import Any

from scrapy.logformatter import LogFormatter
from scrapy.settings import BaseSettings


class QuietLogFormatter(LogFormatter):
    """Scrapy's, without what it tells at level DEBUG of each page and item."""

    def crawled(self, *told: Any) -> Any:
        """Nothing."""

    def scraped(self, *told: Any) -> Any:
        """Nothing."""


def install_quiet_formatter(settings: BaseSettings) -> None:
    """Take it, unless the log is to have lines of level DEBUG, or the user has a formatter."""
    level = settings["LOG_LEVEL"]
    number = level if isinstance(level, int) else logging.getLevelName(str(level))
    if isinstance(number, int) and number > logging.DEBUG:
        settings.set("LOG_FORMATTER", QuietLogFormatter, priority="addon")
