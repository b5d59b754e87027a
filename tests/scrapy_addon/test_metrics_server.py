"""``/metrics`` and ``/health`` of a running crawl."""

from __future__ import annotations

import json
import re
import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from prometheus_client.parser import text_string_to_metric_families

from focused.scrapy_addon.crawl_slot import CrawlSlot
from focused.scrapy_addon.driver_features import statistics_meanings
from focused.scrapy_addon.metrics_server import crawl_health, export_statistics, exported_metrics
from focused.scrapy_addon.run_status import RunStatus
from tests.scrapy_addon.own_project import crawl_own, crawl_web, write_project
from tests.support.recorded_web import MemoryWeb, html, page, served

ROOT = Path(__file__).parents[2]
DASHBOARD = ROOT / "deploy" / "grafana" / "focused.json"
HOW_TO = ROOT / "docs" / "how-to" / "monitoring.md"

SPIDER = """
import asyncio
import json
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen
import scrapy

class Mine(scrapy.Spider):
    name = "mine"
    start_urls = ["http://a.test/"]

    def parse(self, response):
        yield from response.follow_all(css="a", errback=self.go_on)

    def go_on(self, failure):
        # Not before the failure is counted.
        yield scrapy.Request("http://a.test/1", callback=self.scrape)

    async def scrape(self, response):
        (server,) = (
            each for each in self.crawler.extensions.middlewares
            if type(each).__name__ == "MetricsServer"
        )
        ((_, port),) = server.addresses
        for name in ("metrics", "health"):
            url = f"http://127.0.0.1:{port}/{name}"
            body = await asyncio.to_thread(lambda: urlopen(url).read())
            Path(name).write_bytes(body)
        rebound = Request(f"http://127.0.0.1:{port}/metrics", headers={"Host": "evil.test"})
        try:
            await asyncio.to_thread(urlopen, rebound)
        except HTTPError as error:
            Path("rebound").write_text(str(error.code))
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A crawl that asked for its own metrics while it ran."""
    folder = tmp_path_factory.mktemp("metrics")
    web = MemoryWeb(
        page("http://a.test/", html("Whales", "/gone")), page("http://a.test/1", html("One whale"))
    )
    written = write_project(folder, SPIDER, settings={"FOCUSED_METRICS_PORT": 0})
    crawl_web(written, web)
    return written


def samples(text: str) -> dict[tuple[str, str], float]:
    """Values by name and by the labels' values."""
    return {
        (sample.name, ",".join(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_prometheus_reads_the_counters_of_a_running_crawl(project):
    found = samples((project / "metrics").read_text())
    assert found["focused_fetched_total", ""] == 2
    assert found["focused_failures_total", "gone"] == 1
    assert found["focused_frontier_links", ""] == 0
    assert found["focused_hosts", ""] == 1
    assert ("focused_crawl_info", "focused,whales") in found
    assert found["focused_session_stage_seconds_total", "parsing"] > 0


def test_a_running_crawl_is_healthy(project):
    health = json.loads((project / "health").read_text())
    assert health["status"] == "running"
    assert health["fetched"] == 2


def test_a_rebound_name_is_refused(project):
    assert (project / "rebound").read_text() == "403"


def test_a_failed_crawl_is_not_healthy_and_says_why():
    status = cast(RunStatus, SimpleNamespace(error_message="the disk is full"))
    assert crawl_health("whales", status, CrawlSlot()) == {
        "status": "failed",
        "error": "the disk is full",
    }


def test_a_crawl_that_ends_is_closing():
    status = cast(RunStatus, SimpleNamespace(error_message="", end_reason="budget.pages"))
    assert crawl_health("whales", status, CrawlSlot())["status"] == "closing"


def test_a_port_in_use_stops_the_crawl_and_names_the_setting(tmp_path):
    with socket.socket() as taken, served(MemoryWeb(page("http://a.test/", html("A")))) as site:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        project = write_project(tmp_path, SPIDER, settings={"FOCUSED_METRICS_PORT": port})
        done = crawl_own(project, "-s", f"FOCUSED_REPLAY={site.address}")
    assert done.status == 2
    assert "Traceback" not in done.output
    assert "Spider opened" not in done.output
    assert done.output.splitlines()[-1].startswith(
        f"focused: FOCUSED_METRICS_PORT: cannot listen on 127.0.0.1:{port}: Address already in use"
    )


def test_every_metric_exports_a_documented_statistic():
    assert {each.statistic for each in exported_metrics()} <= set(statistics_meanings())


def test_statistics_without_a_value_are_left_out():
    (metric,) = export_statistics({"frontier": 7, "other/frontier": 8})
    assert [(each.name, each.value) for each in metric.samples] == [("focused_frontier_links", 7)]


def test_each_kind_of_failure_has_a_label():
    stats: dict[str, Any] = {"failures/gone": 2, "failures/dns": 1}
    (metric,) = export_statistics(stats)
    assert {each.labels["kind"]: each.value for each in metric.samples} == {"gone": 2, "dns": 1}


def dashboard_queries() -> list[str]:
    panels = json.loads(DASHBOARD.read_text())["panels"]
    return [target["expr"] for panel in panels for target in panel["targets"]]


def documented_alerts() -> list[str]:
    return re.findall(r"^ *expr: (.+)$", HOW_TO.read_text(), re.MULTILINE)


@pytest.mark.parametrize("query", [*dashboard_queries(), *documented_alerts()])
def test_dashboard_and_alerts_ask_for_metrics_that_exist(query):
    exported = {
        f"focused_{each.name}{'_total' if each.is_counter else ''}": each.label
        for each in exported_metrics()
    }
    names = re.findall(r"focused_\w+", query)
    assert names
    assert set(names) <= set(exported)
    labels = {exported[name] for name in names} | {"instance"}
    assert set(re.findall(r"by \((\w+)\)", query)) <= labels
