"""Who looks on at a crawl from without: each notes the paths that it heard of, in a file."""

from __future__ import annotations

from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.http import Response


class _Onlooker:
    def __init__(self, file: Path) -> None:
        self._file = file

    def note(self, url: str) -> None:
        with self._file.open("a") as file:
            file.write(urlsplit(url).path + "\n")


class Middleware(_Onlooker):
    """A downloader middleware."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(Path(crawler.settings["ONLOOKER_FILE"]))

    def process_request(self, request: Request) -> None:
        self.note(request.url)


class _Listener(_Onlooker):
    signal: object

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        listener = cls(Path(crawler.settings["ONLOOKER_FILE"]))
        crawler.signals.connect(listener.came, cls.signal)
        return listener


class Received(_Listener):
    """Hears of pages."""

    signal = signals.response_received

    def came(self, response: Response, request: Request) -> None:
        assert response.request is request
        assert response.body
        self.note(response.url)


class Bytes(_Listener):
    """Hears of the bytes of an answer."""

    signal = signals.bytes_received

    def came(self, data: bytes, request: Request) -> None:
        self.note(request.url)
