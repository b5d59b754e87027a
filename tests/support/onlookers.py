"""Who looks on at a crawl from without: each notes how it heard of which path, in a file."""

from __future__ import annotations

from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.http import Response


class _Onlooker:
    def __init__(self, crawler: Crawler) -> None:
        self._file = Path(crawler.settings["ONLOOKER_FILE"])

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def note(self, how: str, url: str) -> None:
        with self._file.open("a") as file:
            file.write(f"{how} {urlsplit(url).path}\n")


class Middleware(_Onlooker):
    """A downloader middleware."""

    def process_request(self, request: Request) -> None:
        self.note("request", request.url)


class Listener(_Onlooker):
    """Hears of pages, and of the bytes of an answer."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        crawler.signals.connect(self.response_came, signals.response_received)
        crawler.signals.connect(self.bytes_came, signals.bytes_received)

    def response_came(self, response: Response, request: Request) -> None:
        assert response.request is request
        assert response.body
        self.note("response", response.url)

    def bytes_came(self, data: bytes, request: Request) -> None:
        self.note("bytes", request.url)
