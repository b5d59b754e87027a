"""A Scrapy extension that writes down which modules are imported when the spider opens."""

from __future__ import annotations

import sys
from pathlib import Path

from scrapy import signals
from scrapy.crawler import Crawler


class ModulesAtStart:
    """``MODULES_FILE`` gets a name a line."""

    def __init__(self, file: Path) -> None:
        self._file = file

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> ModulesAtStart:
        listing = cls(Path(crawler.settings["MODULES_FILE"]))
        crawler.signals.connect(listing.opened, signals.spider_opened)
        return listing

    def opened(self) -> None:
        self._file.write_text("\n".join(sys.modules))
