"""Items of pages that a callback downloads get the relevance of their page."""

from __future__ import annotations

import pytest

from tests.support.own_project import Ran, crawl_web, write_project
from tests.support.recorded_web import MemoryWeb, html, page

SPIDER = """
import asyncio
import scrapy

class Base(scrapy.Spider):
    start_urls = ["http://a.test/"]

    async def get(self, path):
        request = scrapy.Request("http://a.test" + path)
        return await self.crawler.engine.download_async(request)

class Mine(Base):
    name = "mine"

    async def parse(self, response):
        yield {"n": 1}
        for path in ("/trade", "/whales", "/hidden"):
            page = await self.get(path)
            yield {"n": path, "meta": page.meta["focused"].relevance}
        await self.get("/data.json")
        yield {"n": "by url", "url": response.url}
        yield {"n": "parent's url beside", "url": "http://a.test/trade", "found_on": response.url}
        both = await asyncio.gather(self.get("/trade"), self.get("/whales"))
        yield {"n": "of nobody knows whom"}
        for page in both:
            yield {"n": "each by url", "link": page.url}
"""


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    web = MemoryWeb(
        page("http://a.test/", html("Whales")),
        page("http://a.test/trade", html("Trade", text="trade")),
        page("http://a.test/whales", html("Blue whales")),
        page("http://a.test/hidden", html("Hidden whales"), x_robots_tag="noindex"),
        page("http://a.test/data.json", "{}", content_type="application/json"),
    )
    project = write_project(tmp_path_factory.mktemp("own"), SPIDER)
    return crawl_web(project, web)


def relevance(ran: Ran, n: object) -> list[float | None]:
    return [item.get("relevance") for item in ran.items if item["n"] == n]


def test_before_it_downloads_anything_items_are_of_its_own_page(ran: Ran) -> None:
    assert relevance(ran, 1) == [0.9]


@pytest.mark.parametrize(("path", "expected"), [("/trade", 0.1), ("/whales", 0.9)])
def test_an_item_gets_the_relevance_of_the_page_that_was_downloaded_last(
    ran: Ran, path: str, expected: float
) -> None:
    assert relevance(ran, path) == [expected]


def test_the_relevance_of_each_stands_in_its_responses_meta(ran: Ran) -> None:
    meta_by_number = {item["n"]: item["meta"] for item in ran.items if "meta" in item}
    assert meta_by_number == {"/trade": 0.1, "/whales": 0.9}


def test_items_of_a_downloaded_page_that_asks_not_to_be_indexed_are_dropped(ran: Ran) -> None:
    assert relevance(ran, "/hidden") == []
    assert "'item_dropped_reasons_count/NoindexPageError': 1" in ran.output


def test_an_item_that_holds_a_pages_url_is_of_that_page(ran: Ran) -> None:
    assert relevance(ran, "by url") == [0.9]
    assert relevance(ran, "parent's url beside") == [0.1]
    assert relevance(ran, "each by url") == [0.1, 0.9]


def test_an_item_of_one_of_several_pages_gets_no_relevance_rather_than_a_wrong_one(
    ran: Ran,
) -> None:
    assert relevance(ran, "of nobody knows whom") == [None]
