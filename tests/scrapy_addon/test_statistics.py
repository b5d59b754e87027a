"""The crawl's counters are in Scrapy's statistics, under ``focused/``."""

import json
import re
from collections.abc import Iterator
from typing import Any

from scrapy.statscollectors import StatsCollector
from scrapy.utils.test import get_crawler

from focused.scrapy_addon.driver_features import statistics_meanings
from focused.scrapy_addon.statistics import publish
from tests.scrapy_addon.own_project import crawl_web, write_project
from tests.support.recorded_web import MemoryWeb, html, page

SPIDER = """
import json
import re
from pathlib import Path
import scrapy

class Mine(scrapy.Spider):
    name = "mine"
    start_urls = ["http://a.test/"]

    def parse(self, response):
        yield from response.follow_all(css="a")

    def closed(self, reason):
        stats = self.crawler.stats.get_stats()
        ours = {name: value for name, value in stats.items() if name.startswith("focused/")}
        Path("scrapy-stats.json").write_text(json.dumps(ours))
"""


def leaves(values: dict[str, Any], path: str = "focused") -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, dict):
            yield from leaves(value, f"{path}/{name}")
        else:
            yield f"{path}/{name}", value


def is_described(name: str) -> bool:
    patterns = (re.sub(r"[A-Z]+", "[^/]+", each) for each in statistics_meanings())
    return any(re.fullmatch(f"focused/{pattern}", name) for pattern in patterns)


def published(values: dict[str, Any]) -> dict[str, Any]:
    stats = StatsCollector(get_crawler())
    publish(stats, values)
    return stats.get_stats()


def test_each_total_of_stats_json_is_in_scrapys_statistics(tmp_path):
    web = MemoryWeb(
        page("http://a.test/", html("Whales", "/1", "/gone")),
        page("http://a.test/1", html("One whale")),
    )
    project = write_project(tmp_path, SPIDER)
    done = crawl_web(project, web)
    found = json.loads((project / "scrapy-stats.json").read_text())
    listed = {"traps", "long_crawl_delays", "mirrors"}
    totals = {name: value for name, value in done.stats.items() if name not in listed}
    assert {name: found[name] for name, _ in leaves(totals)} == dict(leaves(totals))
    assert not [name for name in found if not is_described(name)]
    assert found["focused/fetched"] == 2
    assert found["focused/failures/gone"] == 1
    assert found["focused/mirrors"] == 0


def test_traps_are_added_up_by_kind():
    lines = [
        {"site": "a.test", "kind": "calendar", "pages": 2, "links": 5, "examples": ["http://x/"]},
        {"site": "b.test", "kind": "calendar", "pages": 1, "links": 1, "examples": []},
    ]
    assert published({"traps": lines}) == {
        "focused/traps/calendar/pages": 3,
        "focused/traps/calendar/links": 6,
    }


def test_of_lists_of_hosts_their_number_is_there():
    assert published({"mirrors": {"a.test": "b.test"}}) == {"focused/mirrors": 1}
