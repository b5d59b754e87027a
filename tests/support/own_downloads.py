"""An extension that downloads past the frontier, as pipelines for media do."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from scrapy import Request, signals
from scrapy.crawler import Crawler


def own_downloads(file: Path, *urls: str, **options: Any) -> dict[str, Any]:
    """Settings with which a crawl downloads the URLs; ``options`` without ``OWN_DOWNLOADS_``."""
    given = {f"OWN_DOWNLOADS_{name}": value for name, value in options.items()}
    return {
        "EXTENSIONS": json.dumps({f"{__name__}.OwnDownloads": 1}),
        "OWN_DOWNLOADS": ",".join(urls),
        "OWN_DOWNLOADS_FILE": file,
        **given,
    }


class OwnDownloads:
    """Asks for ``OWN_DOWNLOADS`` when the spider opens; writes what came of each to a file.

    One after the other, or with ``OWN_DOWNLOADS_AT_ONCE`` all together; with
    ``OWN_DOWNLOADS_HEADERS`` and ``OWN_DOWNLOADS_META`` as their own.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> OwnDownloads:
        extension = cls(crawler)
        crawler.signals.connect(extension.download, signals.spider_opened)
        return extension

    async def download(self) -> None:
        settings = self._crawler.settings
        urls = settings.getlist("OWN_DOWNLOADS")
        if settings.getbool("OWN_DOWNLOADS_AT_ONCE"):
            downloaded = await asyncio.gather(*map(self._download, urls))
        else:
            downloaded = [await self._download(url) for url in urls]
        came = dict(zip(urls, downloaded, strict=True))
        Path(settings["OWN_DOWNLOADS_FILE"]).write_text(json.dumps(came))

    async def _download(self, url: str) -> str:
        settings = self._crawler.settings
        headers = settings.getdict("OWN_DOWNLOADS_HEADERS")
        request = Request(url, headers=headers, meta=settings.getdict("OWN_DOWNLOADS_META"))
        try:
            response = await self._crawler.engine.download_async(request)
        except Exception as error:
            return type(error).__name__
        return str(response.status)
