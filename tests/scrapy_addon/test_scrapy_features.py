"""Scrapy's features with the add-on: pipelines, feeds, cache, media, several crawls."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from focused.storage.state_store import StateStore
from tests.scrapy_addon.own_project import Ran, crawl_own, crawl_web, scrapy, write_project
from tests.support.crawling import ROOT, write_topic
from tests.support.recorded_web import MemoryWeb, Served, html, page, served

SPIDER = """
import scrapy
from scrapy.exceptions import DropItem

class Item(scrapy.Item):
    url = scrapy.Field()
    relevance = scrapy.Field()
    file_urls = scrapy.Field()
    files = scrapy.Field()

class Relevant:
    async def process_item(self, item):
        if item["relevance"] < 0.5:
            raise DropItem("off topic")
        return item

class Mine(scrapy.Spider):
    name = "mine"
    start_urls = ["http://a.test/"]

    def parse(self, response):
        yield Item(url=response.url, file_urls=[response.urljoin("/whale.bin")])
        yield from response.follow_all(css="a")
"""
SETTINGS = {
    "ITEM_PIPELINES": {"mine.spiders.Relevant": 100, "scrapy.pipelines.files.FilesPipeline": 200},
    "FILES_STORE": "files",
    "FEEDS": {"feed.csv": {"format": "csv", "fields": ["url", "relevance"]}},
    "HTTPCACHE_ENABLED": True,
    "HTTPCACHE_DIR": "cache",
    "AUTOTHROTTLE_ENABLED": True,
}


def web() -> MemoryWeb:
    return MemoryWeb(
        page("http://a.test/", html("Whales", "/trade", "/blue")),
        page("http://a.test/trade", html("Trade", text="trade")),
        page("http://a.test/blue", html("Blue whales")),
        page("http://a.test/whale.bin", b"a whale", content_type="application/octet-stream"),
    )


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_project(tmp_path_factory.mktemp("mine"), SPIDER, settings=SETTINGS)


@pytest.fixture(scope="module")
def ran(project: Path) -> Ran:
    return crawl_web(project, web())


def test_an_item_pipeline_sees_the_relevance(ran):
    assert sorted(item["url"] for item in ran.items) == ["http://a.test/", "http://a.test/blue"]


def test_a_media_pipeline_downloads_its_files(ran):
    (path,) = {file["path"] for item in ran.items for file in item["files"]}
    assert (ran.project / "files" / path).read_bytes() == b"a whale"


def test_autothrottle_gives_way_to_the_frontier(ran):
    assert "Spider closed (finished)" in ran.output
    assert "scrapy.extensions.throttle" not in ran.output


def test_pages_come_from_scrapys_cache_at_the_second_time(ran):
    with served(web()) as site:
        replay = ("-s", f"FOCUSED_REPLAY={site.address}", "-s", "FOCUSED_FOLDER=again")
        again = crawl_own(ran.project, *replay)
    assert again.status == 0, again.output
    assert len(again.items) == 2
    assert [access.path for access in site.accesses] == ["/robots.txt"]


def test_feeds_are_written(tmp_path):
    feeds = write_project(tmp_path, SPIDER, settings=SETTINGS)
    with served(web()) as site:
        done = scrapy(feeds, "crawl", "mine", "-s", f"FOCUSED_REPLAY={site.address}")
    assert done.status == 0, done.output
    lines = (feeds / "feed.csv").read_text().split()
    assert sorted(lines[1:]) == ["http://a.test/,0.9", "http://a.test/blue,0.9"]


RULES = """
from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule

class Mine(CrawlSpider):
    name = "mine"
    start_urls = ["http://a.test/"]
    rules = [Rule(LinkExtractor(), callback="found")]

    def found(self, response):
        yield {"url": response.url, "link": response.meta["link_text"]}
"""


def test_a_crawl_spider_follows_its_rules(tmp_path):
    ran = crawl_web(write_project(tmp_path, RULES), web())
    assert sorted(item["url"] for item in ran.items) == [
        "http://a.test/blue",
        "http://a.test/trade",
    ]
    assert {item["link"] for item in ran.items} == {"/blue", "/trade"}


SCRIPT = """
import sys
import scrapy
from scrapy.crawler import AsyncCrawlerProcess, CrawlerProcess, CrawlerRunner
from scrapy.utils.reactor import install_reactor

how, replay = sys.argv[1:3]
settings = {
    "ADDONS": {"focused.scrapy_addon.FocusedAddon": 0},
    "FOCUSED_TOPIC": "whales.toml",
    "FOCUSED_MODELS": "tests.support.whale_models.fixed_models",
    "FOCUSED_REPLAY": replay,
    "FOCUSED_PROGRESS_INTERVAL_S": 0,
    "LOG_LEVEL": "CRITICAL",
}

class One(scrapy.Spider):
    name = "one"
    custom_settings = {"FOCUSED_FOLDER": "one"}

    async def start(self):
        yield scrapy.Request("http://a.test/")

    def parse(self, response):
        print(self.name, response.url.removeprefix("http://a.test"), flush=True)
        yield from response.follow_all(css="a")

class Two(One):
    name = "two"
    custom_settings = {"FOCUSED_FOLDER": "one" if how == "one folder" else "two"}

if how == "one after the other":
    install_reactor("twisted.internet.asyncioreactor.AsyncioSelectorReactor")
    from twisted.internet.defer import ensureDeferred
    from twisted.internet.task import react

    async def main():
        runner = CrawlerRunner(settings)
        for spider in (One, Two, One):
            await runner.crawl(spider)

    react(lambda reactor: ensureDeferred(main()))
else:
    process = (AsyncCrawlerProcess if how == "one folder" else CrawlerProcess)(settings)
    process.crawl(One)
    process.crawl(Two)
    process.start()
    sys.exit(process.bootstrap_failed)
"""


def several(folder: Path, how: str, site: Served) -> tuple[int, list[str], str]:
    """Exit status, pages by spider, and the output of several crawls in one process."""
    write_topic(folder, "http://unused.test/")
    (folder / "several.py").write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, "several.py", how, site.address],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, sorted(done.stdout.splitlines()), done.stderr


PAGES = ["/", "/blue", "/trade"]


@pytest.mark.parametrize("how", ["together", "one after the other"])
def test_several_crawls_run_in_one_process(tmp_path, how):
    with served(web()) as site:
        status, came, output = several(tmp_path, how, site)
    assert status == 0, output
    assert came == [f"{name} {path}" for name in ("one", "two") for path in PAGES]


def test_the_second_of_one_process_on_a_folder_is_refused_and_the_first_continues(tmp_path):
    with served(web()) as site:
        status, came, output = several(tmp_path, "one folder", site)
    assert status == 1
    assert came == [f"one {path}" for path in PAGES]
    assert [line for line in output.splitlines() if line.startswith("focused:")] == [
        line for line in output.splitlines() if "is in use by another crawl" in line
    ][:1]


def test_a_second_process_on_a_folder_ends_with_one_line_and_another_status(tmp_path):
    project = write_project(tmp_path, SPIDER)
    identity = {"topic": "whales", "policy": "focused", "web": "the live one"}
    store = StateStore.open(project / "out" / "state", identity)
    try:
        done = crawl_own(project, "--nolog")
    finally:
        store.close()
    assert done.status == 2
    (line,) = done.output.splitlines()
    assert f"is in use by another crawl (process {os.getpid()})" in line


OTHER_SPIDER = """
import scrapy

class Other(scrapy.Spider):
    name = "other"
    start_urls = ["http://a.test/blue"]

    def parse(self, response):
        yield {"url": response.url}
"""


def test_another_spider_of_the_project_is_refused_in_the_folder_and_needs_its_own(tmp_path):
    project = write_project(tmp_path, SPIDER + OTHER_SPIDER)
    with served(web()) as site:
        replay = ("-s", f"FOCUSED_REPLAY={site.address}")
        first = crawl_own(project, *replay, "-s", "CLOSESPIDER_ITEMCOUNT=1")
        refused = scrapy(project, "crawl", "other", "--nolog", *replay)
        done = scrapy(project, "crawl", "other", *replay, "-s", "FOCUSED_FOLDER=other")
    assert first.status == 0, first.output
    assert refused.status == 2
    (line,) = refused.output.splitlines()
    assert "holds another crawl: its spider is 'mine', not 'other'. Choose another" in line
    assert done.status == 0, done.output
