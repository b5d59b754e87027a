"""The one way of all requests: who takes part sees each, and nothing else changes."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

import pytest
from fastwarc.warc import ArchiveIterator
from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.http import Response

from tests.scrapy_addon.own_project import crawl_web, write_project
from tests.support.crawling import Finished
from tests.support.hostile_hosts import crawl_hosts, pages
from tests.support.recorded_web import MemoryWeb, assert_digest_holds, html, page

HOST = "a.test"
FULL_WARC = 'warc = "full"'
PATHS = [f"/whales-{number}" for number in range(6)]


class PathLog:
    """Notes in ``PATH_LOG`` how it logged of which path."""

    def __init__(self, crawler: Crawler) -> None:
        self._file = Path(crawler.settings["PATH_LOG"])

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def note(self, how: str, url: str) -> None:
        with self._file.open("a") as file:
            file.write(f"{how} {urlsplit(url).path}\n")


class LoggingMiddleware(PathLog):
    """Sees requests."""

    def process_request(self, request: Request) -> None:
        self.note("request", request.url)


class LoggingExtension(PathLog):
    """Connected to the signals of pages, and of the bytes of an answer."""

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


def crawled(folder: Path, **settings: Any) -> Finished:
    site: Mapping[str, Any] = {
        path: (200, html(f"whale {path}", *PATHS), {}) for path in ("/", *PATHS)
    }
    done, _ = crawl_hosts(
        folder, lambda _: {HOST: pages(site)}, settings=lambda _: settings, scope="traps = false"
    )
    assert len(done.fetched()) == 1 + len(PATHS)
    return done


def test_middlewares_and_signal_handlers_see_each_page(tmp_path):
    file = tmp_path / "paths.txt"
    crawled(
        tmp_path,
        PATH_LOG=file,
        DOWNLOADER_MIDDLEWARES=json.dumps({f"{__name__}.LoggingMiddleware": 500}),
        EXTENSIONS=json.dumps({f"{__name__}.LoggingExtension": 1}),
    )
    logged = {tuple(line.split()) for line in file.read_text().splitlines()}
    ways = "request", "response", "bytes"
    assert {(way, path) for way in ways for path in ("/", *PATHS)} <= logged


def test_the_warc_has_what_was_sent_and_what_came(tmp_path):
    packed = gzip.compress(html("a whale", "/gone", "/moved"), mtime=0)
    coded = {"Content-Encoding": "gzip", "Content-Type": "text/html", "X-Odd": "Kept  as sent"}
    site: Mapping[str, Any] = {
        "/": (200, packed, coded),
        "/moved": (302, b"over there", {"Location": "/there"}),
        "/there": (200, html("another whale"), {}),
        "/gone": (404, b"<p>no such whale", {}),
        "/robots.txt": (200, b"User-agent: *\nDisallow: /secret\n", {}),
    }
    made = {HOST: pages(site)}
    done, hosts = crawl_hosts(tmp_path, lambda _: made, scope="traps = false", output=FULL_WARC)
    root = hosts.url(HOST)
    kinds: dict[str, dict[str, tuple[bytes, str | None]]] = {}
    for path in done.folder.glob("*.warc.gz"):
        with path.open("rb") as file:
            for each in ArchiveIterator(file, parse_http=False):
                url = each.headers.get("WARC-Target-URI") or ""
                kept = each.reader.read(), each.headers.get("WARC-IP-Address")
                assert_digest_holds(each.headers, kept[0])
                kinds.setdefault(each.headers["WARC-Type"], {})[url.removeprefix(root)] = kept
    responses, requests = kinds["response"], kinds["request"]
    assert set(responses) == set(requests) == {"", "robots.txt", "moved", "there", "gone"}
    head, body = responses[""][0].split(b"\r\n\r\n", 1)
    assert body == packed
    assert b"\r\nContent-Encoding: gzip" in head
    assert responses["gone"][0].endswith(b"\r\n\r\n<p>no such whale")
    assert responses["moved"][0].endswith(b"\r\n\r\nover there")
    assert {address for _, address in responses.values()} == {"127.0.0.41"}
    asked = requests[""][0]
    assert asked.startswith(b"GET / HTTP/1.1\r\nHost: a.test:")
    assert b"\r\nUser-Agent: FocusedTest" in asked
    assert b"\r\nAccept-Encoding: gzip" in asked


SPIDER = """
from focused.scrapy_addon.spiders.topic_spider import TopicSpider

class Mine(TopicSpider):
    name = "mine"

    @staticmethod
    def wants_page(settled):
        return settled.link.url.endswith("whales-1")

    def parse(self, response):
        yield {"url": response.url}
"""


@pytest.mark.parametrize("level", ["INFO", "DEBUG"])
def test_a_spider_receives_the_pages_that_it_wants_whatever_is_logged(tmp_path, level):
    project = write_project(
        tmp_path, SPIDER, "http://a.test/", settings={"FOCUSED_LOG_LEVEL": level}
    )
    web = MemoryWeb(*(page(f"http://a.test{path}", html(path, *PATHS)) for path in ("/", *PATHS)))
    done = crawl_web(project, web)
    assert done.stats["fetched"] == 1 + len(PATHS)
    assert [item["url"] for item in done.items] == ["http://a.test/whales-1"]
    log = (project / "out" / "crawl.log").read_text()
    assert ("Crawled (200) <GET http://a.test/whales-2>" in log) == (level == "DEBUG")
