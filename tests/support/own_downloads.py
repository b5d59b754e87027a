"""An extension that downloads past the frontier, as pipelines for media do."""

from __future__ import annotations

import json
from pathlib import Path

from scrapy import Request, signals
from scrapy.crawler import Crawler


class OwnDownloads:
    """Asks for ``OWN_DOWNLOADS`` when the spider opens; writes what came of each to a file."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> OwnDownloads:
        extension = cls(crawler)
        crawler.signals.connect(extension.download, signals.spider_opened)
        return extension

    async def download(self) -> None:
        settings = self._crawler.settings
        came = {}
        for url in settings.getlist("OWN_DOWNLOADS"):
            try:
                response = await self._crawler.engine.download_async(Request(url))
                came[url] = str(response.status)
            except Exception as error:
                came[url] = type(error).__name__
        Path(settings["OWN_DOWNLOADS_FILE"]).write_text(json.dumps(came))
