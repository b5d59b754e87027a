"""Downloads by ``download_async``: they leave the page alone that the spider is given."""

import pytest

from tests.scrapy_addon.own_project import Ran, crawl_web, write_project
from tests.support.recorded_web import MemoryWeb, html, page

SPIDER = """
import scrapy

class Middleware:
    def __init__(self, crawler):
        self.crawler = crawler

    @classmethod
    def from_crawler(cls, crawler):
        return cls(crawler)

    async def process_response(self, request, response, spider=None):
        if request.url.endswith("/leased"):
            other = request.replace(url="http://b.test/other")
            await self.crawler.engine.download_async(other)
        return response

class Mine(scrapy.Spider):
    name = "mine"
    start_urls = ["http://a.test/", "http://a.test/leased"]

    async def parse(self, response):
        yield {"n": "before", "url": response.url}
        other = await self.crawler.engine.download_async(scrapy.Request("http://b.test/other"))
        yield {"n": "after", "url": response.url, "status": other.status}
        copied = response.request.replace(url="http://b.test/other")
        state = (await self.crawler.engine.download_async(copied)).meta["focused"]
        yield {"n": "copied", "url": response.url, "state": [state.relevance, state.settled]}
"""


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    web = MemoryWeb(
        page("http://a.test/", html("Whales")),
        page("http://a.test/leased", html("Blue whales")),
        page("http://b.test/other", html("Trade", text="trade")),
    )
    project = write_project(
        tmp_path_factory.mktemp("own"),
        SPIDER,
        settings={"DOWNLOADER_MIDDLEWARES": {"mine.spiders.Middleware": 950}},
    )
    return crawl_web(project, web)


@pytest.mark.parametrize("n", ["before", "after", "copied"])
@pytest.mark.parametrize("path", ["", "leased"])
def test_items_get_the_relevance_of_the_page_that_the_callback_received(ran, n, path):
    of_page = [item for item in ran.items if item["url"] == f"http://a.test/{path}"]
    assert [item["relevance"] for item in of_page if item["n"] == n] == [0.9]


def test_a_request_with_the_meta_of_another_one_is_not_settled_as_it(ran):
    states = [item["state"] for item in ran.items if item["n"] == "copied"]
    assert states == [[None, None]] * 2
