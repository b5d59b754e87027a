"""Requests that bypass the frontier obey the rules of the URL that is sent."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from focused.crawl import PAGE, Fetch
from focused.scrapy_addon.access_checks import RobotsCheck
from focused.scrapy_addon.outcomes import FetchPostponed
from focused.web.robots.robots_rules import MAX_AGE_S
from tests.scrapy_addon.driver_parts import ReadClock, opened
from tests.scrapy_addon.test_politeness import handed_out
from tests.support.access_rules import ROBOTS
from tests.support.crawling import USER_AGENT, crawl, write_topic
from tests.support.hostile_hosts import HostileHosts, crawl_hosts, pages
from tests.support.own_downloads import own_downloads
from tests.support.recorded_web import MemoryWeb, html, page, served
from tests.support.simulated import START, Simulation, raw, site, topic

HOST = "a.test"
SESSION = "/pictures?PHPSESSID=0123456789abcdef0123"
FREE = "/pictures?n=1"
RULES = "User-agent: *\nDisallow: /*PHPSESSID\n"


def downloaded(folder: Path, *paths: str) -> tuple[dict[str, str], Sequence[str]]:
    """What became of downloads past the frontier, by path, and the paths that the server saw."""
    text = {"Content_Type": "text/plain"}
    answers = {"/": (200, html("Start"), {}), ROBOTS: (200, RULES, text), FREE: (200, b"x", {})}

    def settings(hosts: HostileHosts) -> dict[str, Any]:
        return own_downloads(folder / "came.json", *(hosts.url(HOST, path) for path in paths))

    _, hosts = crawl_hosts(folder, lambda _: {HOST: pages(answers)}, settings=settings)
    came = json.loads((folder / "came.json").read_text())
    return {f"/{url.split('/', 3)[3]}": received for url, received in came.items()}, [
        access.path for access in hosts.accesses
    ]


def test_rules_hold_for_the_url_that_is_sent_not_for_its_normalised_form(tmp_path):
    came, asked = downloaded(tmp_path, SESSION, FREE)
    assert came == {SESSION: "RobotsDeniedError", FREE: "200"}
    assert SESSION not in asked


def test_a_url_too_long_for_the_crawl_is_not_sent_past_rules_and_delays(tmp_path):
    long = "/" + 2_000 * "x"
    came, asked = downloaded(tmp_path, long)
    assert came == {long: "IgnoreRequest"}
    assert long not in asked


def test_a_page_whose_rules_run_out_on_its_way_goes_back_and_they_are_requested(tmp_path):
    seed, rules = "http://a.test/", raw("http://a.test/robots.txt", RULES, "text/plain")
    simulation = Simulation(topic(tmp_path, seed), site(rules))
    simulation.step()
    last = START + MAX_AGE_S
    lease = simulation.crawl.next(last)
    assert isinstance(lease, Fetch) and lease.purpose == PAGE
    clock = ReadClock(lambda: last + 1.0)
    check = RobotsCheck(opened(simulation.crawl), clock, Mock(), Mock(), Mock())
    with pytest.raises(FetchPostponed):
        asyncio.run(check.check(handed_out(lease), lease.url, is_leased=True))
    simulation.crawl.put_back(lease.lease, last + 1.0)
    again = simulation.crawl.next(last + 1.0)
    assert isinstance(again, Fetch) and again.purpose == "robots"
    simulation.crawl.put_back(again.lease, last + 1.0)
    simulation.close()


def test_no_request_goes_by_another_name_than_the_topics(tmp_path):
    """Neither by the project's headers, nor the spider's attribute, nor a request's own header."""
    web = MemoryWeb(page("http://a.test/", html("Start")), page("http://a.test/own", b"x"))
    theirs = {"User-Agent": "Another/1.0"}
    with served(web) as replay:
        done = crawl(
            write_topic(tmp_path, "http://a.test/"),
            replay.address,
            DEFAULT_REQUEST_HEADERS=json.dumps(theirs),
            arguments=["-a", "user_agent=Third/1.0"],
            **own_downloads(tmp_path / "came", "http://a.test/own", HEADERS=json.dumps(theirs)),
        )
    assert done.status == 0, done.output
    assert {access.path for access in replay.accesses} == {ROBOTS, "/", "/own"}
    assert {access.user_agent for access in replay.accesses} == {USER_AGENT}


def test_robots_txt_does_not_come_from_scrapys_cache(tmp_path):
    web = MemoryWeb(page("http://a.test/", html("Start")), page("http://a.test/robots.txt", RULES))
    asked = []
    with served(web) as replay:
        for number in range(2):
            mine = write_topic(tmp_path / str(number), "http://a.test/")
            cache = {"HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": tmp_path / "cache"}
            assert crawl(mine, replay.address, **cache).fetched() == ["http://a.test/"]
        asked = [access.path for access in replay.accesses]
    assert sorted(asked) == ["/", ROBOTS, ROBOTS]
