"""The documentation's example spider, in a real crawl."""

import json
from pathlib import Path

import pandas as pd
import pytest

from tests.support.crawling import ROOT, write_topic
from tests.support.forked import HANGS_AFTER_S, ForkedCommand
from tests.support.recorded_web import MemoryWeb, Served, html, page, redirect, served

EXAMPLE = ROOT / "docs/examples/library"


def web() -> MemoryWeb:
    return MemoryWeb(
        page("http://a.test/", html("Start", "/trade", "/whales", "/old", "/secret")),
        page("http://a.test/trade", html("Trade", "/trade-2", text="trade")),
        page("http://a.test/trade-2", html("Trade two", text="trade")),
        page("http://a.test/whales", html("Whales", "/whales-2", text="whale")),
        page("http://a.test/whales-2", html("More whales", text="whale")),
        page("http://a.test/secret", html("Secret whales", text="whale")),
        redirect("http://a.test/old", "/new-whales"),
        page("http://a.test/new-whales", html("New whales", text="whale")),
        page("http://a.test/robots.txt", "User-agent: *\nDisallow: /secret\n"),
    )


def run(spider: Path, topic: Path, site: Served, *options: str) -> tuple[list[dict], str]:
    items = topic.parent / "items.jsonl"
    settings = {
        "FOCUSED_TOPIC": topic,
        "FOCUSED_MODELS": "tests.support.whale_models.fixed_models",
        "FOCUSED_REPLAY": site.address,
    }
    arguments = [text for name, value in settings.items() for text in ("-s", f"{name}={value}")]
    command = ForkedCommand(
        ["scrapy", "runspider", str(spider), "-o", str(items), *arguments, *options],
        folder=topic.parent,
        environment={"PYTHONPATH": f"{ROOT}:{spider.parent}"},
    )
    output, _ = command.communicate(timeout=HANGS_AFTER_S)
    assert command.returncode == 0, output
    lines = items.read_text().splitlines() if items.exists() else []
    return [json.loads(line) for line in lines], output


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[dict], list[str]]:
    """The items of the example spider, and the paths that it asked for."""
    folder = tmp_path_factory.mktemp("example")
    topic = write_topic(folder, "http://a.test/", politeness="concurrency = 1")
    with served(web()) as site:
        items, _ = run(EXAMPLE / "own_spider.py", topic, site)
    return items, [access.path for access in site.accesses]


def test_the_example_of_the_docs_gets_items_with_relevance(example):
    assert {(item["title"], item["relevance"]) for item in example[0]} == {
        ("Start", 0.9),
        ("Whales", 0.9),
        ("More whales", 0.9),
        ("New whales", 0.9),
    }


def test_the_spiders_own_requests_come_in_the_order_of_their_promise(example):
    _, paths = example
    assert paths.index("/whales") < paths.index("/trade")
    assert paths.index("/whales-2") < paths.index("/trade-2")


def test_the_spiders_own_requests_obey_robots_txt(example):
    assert "/secret" not in example[1]


SPIDER_OF_ALL_PAGES = """
import scrapy

class S(scrapy.Spider):
    name = "s"
    start_urls = ["http://a.test/hidden", "http://a.test/open"]
    custom_settings = {"ADDONS": {"focused.scrapy_addon.FocusedAddon": 0}}

    def parse(self, response):
        print("ASKED TO LEAVE OUT", response.url, response.meta["focused"].left_out)
        yield {"url": response.url}
        yield from response.follow_all(css="a")
"""


def pages_that_hide() -> MemoryWeb:
    return MemoryWeb(
        page("http://a.test/hidden", html("Hidden", "/behind"), x_robots_tag="noindex"),
        page("http://a.test/open", html("Open", text="whale whale")),
        page("http://a.test/behind", html("Behind", text="whale whale whale")),
    )


@pytest.mark.parametrize("noindex", ["leave-out", "keep"])
def test_items_of_pages_that_ask_not_to_be_indexed_are_dropped_unless_they_are_kept(
    tmp_path, noindex
):
    spider = tmp_path / "all.py"
    spider.write_text(SPIDER_OF_ALL_PAGES)
    topic = write_topic(tmp_path, "http://a.test/open", politeness=f'noindex = "{noindex}"')
    with served(pages_that_hide()) as site:
        items, output = run(spider, topic, site)
    left_out = noindex == "leave-out"
    expected = {"http://a.test/open", "http://a.test/behind"}
    if not left_out:
        expected.add("http://a.test/hidden")
    assert {item["url"] for item in items} == expected
    assert f"LEAVE OUT http://a.test/hidden {left_out}" in output
    assert "LEAVE OUT http://a.test/open False" in output
    assert ("'item_dropped_reasons_count/NoindexPageError': 1" in output) == left_out


SPIDER_OF_GUESSES = """
import scrapy

class S(scrapy.Spider):
    name = "s"
    start_urls = ["http://a.test/trade"]
    custom_settings = {
        "ADDONS": {"focused.scrapy_addon.FocusedAddon": 0},
        "SCHEDULER": "scrapy.core.scheduler.Scheduler",
    }

    def parse(self, response):
        yield scrapy.Request("http://a.test/trade-2")
        yield scrapy.Request("http://a.test/not-linked", self.nothing)

    def nothing(self, response):
        yield {"url": response.url}
"""


def test_a_url_that_its_page_does_not_link_to_is_as_good_as_the_page(tmp_path):
    topic = write_topic(tmp_path, "http://unused.test/")
    spider = tmp_path / "s.py"
    spider.write_text(SPIDER_OF_GUESSES)
    with served(web()) as site:
        run(spider, topic, site)
    pages = pd.read_parquet(tmp_path / "out" / "pages.parquet").set_index("url")
    assert pages.loc["http://a.test/trade", "score"] == 1.0
    assert pages.loc["http://a.test/not-linked", "score"] == 0.1
