"""A crawl that only waits for hosts in back-off reports it."""

import logging
import time
from pathlib import Path

import pytest

from focused.crawl import Wait
from focused.scrapy_addon.progress import progress_line
from focused.scrapy_addon.run_status import RunStatus
from focused.topic import Budget, Revisit
from tests.support.simulated import START, Simulation, page, topic

AT = time.mktime((2026, 3, 4, 14, 2, 11, 0, 0, -1))
LINE = "waiting for 3 hosts in back-off or long crawl-delays, the next at 14:02:11"


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, logger="focused.scrapy_addon.run_status")
    return caplog


def test_the_wait_is_logged_once_and_not_at_each_turn(log):
    status = RunStatus(Path(), print)
    for _ in range(5):
        status.note(Wait(AT, hosts_backing_off=3))
    assert log.messages == [LINE]
    assert status.waiting == LINE


def test_it_is_logged_again_when_it_changes(log):
    status = RunStatus(Path(), print)
    for step in (
        Wait(AT, hosts_backing_off=3),
        Wait(AT + 60, hosts_backing_off=1),
        Wait(AT, hosts_backing_off=3),
    ):
        status.note(step)
    other = "waiting for 1 host in back-off or long crawl-delays, the next at 14:03:11"
    assert log.messages == [LINE, other, LINE]


def test_nothing_is_reported_while_there_is_more_to_do(log):
    status = RunStatus(Path(), print)
    status.note(Wait(AT, hosts_backing_off=3))
    status.note(Wait(AT))
    assert status.waiting == ""
    status.note(Wait(None))
    assert log.messages == [LINE]


def test_the_progress_line_ends_with_it(tmp_path):
    crawl = Simulation(topic(tmp_path, "http://a.test/"), {})
    assert progress_line(crawl.crawl.topic, crawl.crawl, START, 0.0, LINE).endswith(f"| {LINE}")
    assert "waiting" not in progress_line(crawl.crawl.topic, crawl.crawl, START, 0.0)
    crawl.close()


@pytest.mark.parametrize(("productive_pages", "asks"), [(0, True), (1, False)])
def test_the_progress_line_asks_whether_the_topic_is_exhausted(productive_pages, asks, tmp_path):
    simulation = Simulation(topic(tmp_path, "http://a.test/"), {})
    counters = simulation.crawl.counters
    for number in range(101):
        counters.count_classified(0 < number <= productive_pages)
    line = progress_line(simulation.crawl.topic, simulation.crawl, START, 0.0)
    assert line.endswith("| is the topic exhausted?") == asks
    simulation.close()


def test_the_progress_line_of_a_continuous_crawl_counts_revisits(tmp_path):
    revisit = Revisit(continuous=True, hours=48, pages_per_day=4)
    url = "http://a.test/"
    subject = topic(tmp_path, url, revisit=revisit, budget=Budget(pages=1))
    crawl = Simulation(subject, {url: page(url, text="whale blubber krill fluke")}).run(1_000)
    revisits = sum(crawl.crawl.counters.kinds("revisits").values())
    line = progress_line(crawl.crawl.topic, crawl.crawl, START + 24 * 3600, 0.0)
    assert revisits > 3
    assert f"| {revisits} revisits: {revisits} identical | " in line
    assert line.endswith("24:00:00 left"), "of the hours of the revisits, not of the harvest"
    crawl.close()
