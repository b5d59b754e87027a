"""Requests that bypass the frontier: held until their host is due, refused if it is set aside."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Request

from focused.frontier.politeness import HostPace, set_aside
from focused.scrapy_addon.outcomes import SENT_AT
from focused.scrapy_addon.politeness import PolitenessMiddleware
from tests.support.simulated import START, Simulation, topic

URL = "http://a.test/own"


@pytest.fixture
def simulation(tmp_path: Path) -> Iterator[Simulation]:
    simulation = Simulation(topic(tmp_path, "http://a.test/"), {})
    yield simulation
    simulation.close()


def sent_at(simulation: Simulation, now: float) -> float:
    session = SimpleNamespace(crawl=simulation.crawl, now=lambda: now)
    request = Request(URL)
    asyncio.run(PolitenessMiddleware(session).process_request(request))
    return request.meta[SENT_AT]


def test_a_request_to_a_host_that_is_due_leaves_at_once_and_starts_its_delay(simulation):
    assert sent_at(simulation, START) == START
    assert simulation.crawl.due_at(URL) == START + 1.0


def test_a_request_to_a_host_that_is_set_aside_is_not_sent(simulation):
    host = simulation.crawl.frontier.hosts.get("a.test")
    host.pace = set_aside(HostPace(failures=8), START, 3_600.0)
    with pytest.raises(IgnoreRequest, match="only fails: not asked for 3600 s"):
        sent_at(simulation, START)
    assert sent_at(simulation, START + 3_600.0) == START + 3_600.0
