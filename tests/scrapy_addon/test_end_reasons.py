"""Why a spider's crawl ended, in its folder."""

import pytest

from tests.scrapy_addon.own_project import crawl_web, write_project
from tests.support.recorded_web import MemoryWeb, html, page

SPIDER = """
import scrapy
from scrapy.exceptions import CloseSpider

class Mine(scrapy.Spider):
    name = "mine"
    start_urls = ["http://a.test/"]

    def parse(self, response):
        yield {"url": response.url}
        yield from response.follow_all(css="a")
        if self.settings.getbool("STOPS"):
            raise CloseSpider("saw_enough")
"""
PATHS = [f"/{number}" for number in range(9)]


@pytest.mark.parametrize(
    ("given", "budget", "reason", "is_all"),
    [
        ("CLOSESPIDER_PAGECOUNT=2", "", "closespider_pagecount", False),
        ("CLOSESPIDER_ITEMCOUNT=2", "", "closespider_itemcount", False),
        ("STOPS=1", "", "saw_enough", False),
        ("STOPS=0", "pages = 3", "page budget spent", False),
        ("STOPS=0", "", "frontier is empty", True),
    ],
)
def test_it_is_reported(tmp_path, given, budget, reason, is_all):
    pages = [page(f"http://a.test{path}", html(f"Whale {path}")) for path in PATHS]
    web = MemoryWeb(page("http://a.test/", html("Whales", *PATHS)), *pages)
    project = write_project(tmp_path, SPIDER, delay_s=0.1, budget=budget)
    done = crawl_web(project, web, "-s", given)
    assert done.stats["end_reason"] == reason
    assert (done.stats["frontier"] == 0) == is_all
