"""A page requested again with ``dont_filter`` reaches its callback, changed or not."""

from tests.scrapy_addon.own_project import crawl_web, write_project
from tests.support.recorded_web import MemoryWeb, html, page

POLLS = 60
SPIDER = f"""
import scrapy

class Mine(scrapy.Spider):
    name = "mine"
    start_urls = ["http://a.test/news/now"]

    def parse(self, response, n=1):
        yield {{"n": n, "relevance?": response.meta["focused"].relevance}}
        if n < {POLLS}:
            yield response.request.replace(dont_filter=True, cb_kwargs={{"n": n + 1}})
        else:
            yield response.follow("/news/other", self.other)

    def other(self, response):
        yield {{"n": "other"}}
"""


def test_sixty_polls_of_an_unchanged_page_all_arrive_and_close_nothing(tmp_path):
    text = " ".join(f"word{number}" for number in range(80))
    web = MemoryWeb(
        page("http://a.test/news/now", html("Whale news", "/news/other", text=text)),
        page("http://a.test/news/other", html("Another page", text="of other words")),
    )
    project = write_project(tmp_path, SPIDER)
    done = crawl_web(project, web)
    assert [item["n"] for item in done.items] == [*range(1, POLLS + 1), "other"]
