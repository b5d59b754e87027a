"""A spider's queued requests survive the process, with their values."""

import pytest
from scrapy import Request

from focused.scrapy_addon.spider_requests import redirected
from tests.scrapy_addon.own_project import Ran, crawl_own, crawl_web, write_project
from tests.support.hostile_hosts import pages, serve_hosts
from tests.support.recorded_web import MemoryWeb, html, page, redirect, served

SPIDER = """
import dataclasses
from datetime import datetime, timezone
import scrapy

@dataclasses.dataclass
class Book:
    title: str

GIVEN = {
    "numbers": {1: 2, (3, 4): {5}},
    "pair": (1, [b"x", None]),
    "when": datetime(2024, 1, 2, tzinfo=timezone.utc),
    "book": Book("Whales"),
}

class Mine(scrapy.Spider):
    name = "mine"

    async def start(self):
        if self.crawler.settings.getbool("AGAIN"):
            return
        yield scrapy.Request("http://a.test/", self.parse)
        yield scrapy.FormRequest("http://a.test/form", self.came, method="GET", formdata={"a": "b"},
                                 headers={"X-Mine": "yes"},
                                 cb_kwargs=GIVEN, meta={"key": (1, 2), "depth": 7})
        yield scrapy.Request("http://a.test/lost", lambda response: {"lost": response.url})

    def parse(self, response):
        return []

    def came(self, response, **kwargs):
        yield {"url": response.url, "same": kwargs == GIVEN,
               "types": [type(v).__name__ for v in kwargs.values()],
               "meta": repr(response.meta["key"]), "depth": response.meta["depth"],
               "mine": response.request.headers["X-Mine"].decode(),
               "kind": type(response.request).__name__}
"""


@pytest.fixture(scope="module")
def resumed(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """Stopped after a page, with two requests queued, and started again."""
    web = MemoryWeb(
        page("http://a.test/", html("Whales")),
        redirect("http://a.test/form?a=b", "/formed"),
        page("http://a.test/formed", html("Form", text="whale")),
        page("http://a.test/lost", html("Lost")),
    )
    project = write_project(tmp_path_factory.mktemp("stored"), SPIDER, delay_s=0.5)
    with served(web) as site:
        replay = ("-s", f"FOCUSED_REPLAY={site.address}")
        first = crawl_own(project, *replay, "-s", "CLOSESPIDER_PAGECOUNT=1")
        assert first.status == 0, first.output
        assert (first.items, first.stats["frontier"]) == ([], 2)
        assert "lost if the crawl is stopped" in first.output
        again = crawl_own(project, *replay, "-s", "AGAIN=1")
    assert again.status == 0, again.output
    assert "/lost" not in [access.path for access in site.accesses]
    return again


def test_arguments_and_meta_arrive_over_a_redirect_as_they_were_given(resumed):
    (item,) = resumed.items
    assert (item["url"], item["relevance"]) == ("http://a.test/formed", 0.9)
    assert item["same"]
    assert item["types"] == ["dict", "tuple", "datetime", "Book"]
    assert item["meta"] == "(1, 2)"


def test_so_do_depth_headers_and_class(resumed):
    (item,) = resumed.items
    assert (item["depth"], item["mine"], item["kind"]) == (7, "yes", "FormRequest")


def test_a_request_whose_callback_is_lost_is_not_requested_and_the_log_names_it(resumed):
    assert "http://a.test/lost is dropped: its callback" in resumed.output
    assert resumed.stats["frontier"] == 0


RENAMED = """
import scrapy

class Mine(scrapy.Spider):
    name = "mine"

    async def start(self):
        if not self.crawler.settings.getbool("AGAIN"):
            for path in "abc":
                yield scrapy.Request("http://a.test/" + path, self.CALLBACK)

    def CALLBACK(self, response):
        return []
"""


def test_a_callback_that_is_gone_stops_the_crawl_and_nothing_is_lost(tmp_path):
    web = MemoryWeb(*(page(f"http://a.test/{path}", html(path)) for path in "abc"))
    project = write_project(tmp_path, RENAMED.replace("CALLBACK", "old"))
    module = project / "mine" / "spiders" / "__init__.py"
    with served(web) as site:
        replay = ("-s", f"FOCUSED_REPLAY={site.address}")
        first = crawl_own(project, *replay, "-s", "CLOSESPIDER_PAGECOUNT=1")
        left = first.stats["frontier"]
        module.write_text(
            RENAMED.replace("CALLBACK", "renamed")
        )  # another size, or Python runs old bytecode
        again = crawl_own(project, *replay, "-s", "AGAIN=1")
    assert left > 0
    assert again.status == 1
    assert "Method 'old' not found" in again.output
    assert again.stats["frontier"] == left


LOGGED_IN = """
import scrapy

class Mine(scrapy.Spider):
    name = "mine"

    async def start(self):
        yield scrapy.Request("http://a.test/", headers={"Authorization": "x"}, cookies={"c": "1"})

    def parse(self, response):
        headers = response.request.headers
        sent = [name for name in ("Authorization", "Cookie") if name in headers]
        yield {"url": response.url, "sent": sent}
"""


@pytest.mark.parametrize(
    ("target", "sent"),
    [("http://a.test/in", ["Authorization", "Cookie"]), ("http://b.test/in", [])],
)
def test_credentials_follow_a_redirect_to_their_own_origin_alone(tmp_path, target, sent):
    web = MemoryWeb(redirect("http://a.test/", target), page(target, html("Whales")))
    project = write_project(tmp_path, LOGGED_IN, settings={"COOKIES_ENABLED": True})
    (item,) = crawl_web(project, web).items
    assert (item["url"], item["sent"]) == (target, sent)


@pytest.mark.parametrize(
    ("method", "status", "then"),
    [
        *[("POST", 301, "GET"), ("POST", 302, "GET"), ("PUT", 303, "GET")],
        *[("PUT", 302, "PUT"), ("POST", 307, "POST"), ("GET", 302, "GET"), ("HEAD", 303, "HEAD")],
    ],
)
def test_a_redirect_changes_the_method_as_in_scrapy(method, status, then):
    sent = Request("http://a.test/", method=method, body=b"x", headers={"Content-Type": "y"})
    moved = redirected(sent, "http://a.test/in", status)
    assert (moved.url, moved.method) == ("http://a.test/in", then)
    kept = then == method
    assert (bool(moved.body), "Content-Type" in moved.headers) == (kept, kept)


def test_the_referer_is_not_sent_unencrypted_after_a_redirect():
    sent = Request("https://a.test/", headers={"Referer": "https://a.test/secret"})
    assert "Referer" in redirected(sent, "https://b.test/").headers
    assert "Referer" not in redirected(sent, "http://a.test/").headers


FORM = """
import scrapy

class Mine(scrapy.Spider):
    name = "mine"

    async def start(self):
        yield scrapy.FormRequest("LOGIN", formdata={"password": "x"}, cb_kwargs={"n": 1})

    def parse(self, response, n):
        yield {"url": response.url, "method": response.request.method, "n": n}
"""


def test_the_page_behind_a_form_is_requested_by_get(tmp_path):
    site = {"/login": (302, b"", {"Location": "/in"}), "/in": (200, html("Whales"), {})}
    with serve_hosts(lambda _: {"127.0.0.1": pages(site)}) as hosts:
        spider = FORM.replace("LOGIN", hosts.url("127.0.0.1", "/login"))
        project = write_project(tmp_path, spider, scope="private_addresses = true")
        (item,) = crawl_own(project).items
    assert item["url"] == hosts.url("127.0.0.1", "/in")
    assert (item["method"], item["n"], item["relevance"]) == ("GET", 1, 0.9)
