"""Processes of a crawl die or stop at any point: every page comes once, every host has its delay.

Pages and requests are counted in the archive and in the log of the web's server.
"""

import os
import random
import signal

import pytest

from tests.support.recorded_web import MemoryWeb, impolite, served
from tests.support.round_crawls import POINTS, requests_of_pages, ring_web, round_crawl

HOSTS, PAGES, DELAY_S = 12, 12, 0.05
CONCURRENT = 3 * 8
"""Requests that are in flight at most."""


@pytest.fixture(scope="module")
def web() -> MemoryWeb:
    return ring_web(HOSTS, PAGES)


def every_page(web: MemoryWeb) -> dict[str, int]:
    return {f"http://h{host}.test/{number}": 1 for host in range(HOSTS) for number in range(PAGES)}


def test_processes_together_fetch_every_page_once(tmp_path, web):
    with served(web) as site, round_crawl(tmp_path, site, delay_s=DELAY_S) as crawl:
        assert crawl.run() == 0
        assert crawl.fetched() == every_page(web)
    assert set(requests_of_pages(site).values()) == {1}
    assert not impolite(site.accesses, DELAY_S)


def test_each_killed_process_is_replaced(tmp_path, web):
    with served(web) as site, round_crawl(tmp_path, site, delay_s=DELAY_S) as crawl:
        driver = crawl.start()
        for which in range(3):
            rounds = crawl.rounds()
            crawl.wait_for(lambda: crawl.rounds() > rounds, "a round")  # noqa: B023
            crawl.wait_for(lambda: len(crawl.processes()) == 3, "all processes")
            os.kill(crawl.processes()[which], signal.SIGKILL)
        assert driver.wait(120) == 0
        assert crawl.fetched() == every_page(web)
    assert not impolite(site.accesses, DELAY_S)
    assert requests_of_pages(site).total() <= HOSTS * PAGES + CONCURRENT


def test_a_driver_that_is_killed_at_each_point_goes_on_where_it_was(tmp_path, web):
    with served(web) as site, round_crawl(tmp_path, site, delay_s=DELAY_S) as crawl:
        for point, number in zip(POINTS, (1, 2) * 3, strict=True):
            assert crawl.start(killed_at=(point, number)).wait(120) == -signal.SIGKILL, point
        assert crawl.run() == 0
        assert crawl.fetched() == every_page(web)
    assert not impolite(site.accesses, DELAY_S)


def test_a_suspended_process_misses_rounds_and_sends_nothing_after_its_own(tmp_path, web):
    with served(web) as site, round_crawl(tmp_path, site, delay_s=DELAY_S) as crawl:
        driver = crawl.start()
        crawl.wait_for(lambda: crawl.rounds() > 0, "a round")
        crawl.wait_for(lambda: len(crawl.processes()) == 3, "all processes")
        stopped, rounds = crawl.processes()[0], crawl.rounds()
        os.kill(stopped, signal.SIGSTOP)
        crawl.wait_for(lambda: crawl.rounds() >= rounds + 3, "three rounds without it")
        os.kill(stopped, signal.SIGCONT)
        assert driver.wait(120) == 0
        assert crawl.fetched() == every_page(web)
    assert not impolite(site.accesses, DELAY_S)


@pytest.mark.long
def test_a_large_crawl_survives_faults_of_all_kinds(tmp_path):
    hosts, pages = 60, 50
    large, chance = ring_web(hosts, pages), random.Random(7)
    with served(large) as site, round_crawl(tmp_path, site, delay_s=DELAY_S) as crawl:
        driver, rounds = crawl.start(), 0
        for fault in ("kill", "driver", "suspend", "kill", "driver", "kill", "suspend", "kill"):
            rounds = crawl.rounds() + 1
            crawl.wait_for(lambda: crawl.rounds() > rounds, "a round")  # noqa: B023
            crawl.wait_for(lambda: len(crawl.processes()) == 3, "all processes")
            victim = chance.choice(crawl.processes())
            if fault == "kill":
                os.kill(victim, signal.SIGKILL)
            elif fault == "driver":
                driver.kill()
                driver.wait()
                driver = crawl.start()
            else:
                os.kill(victim, signal.SIGSTOP)
                stopped = crawl.rounds()
                crawl.wait_for(lambda: crawl.rounds() >= stopped + 3, "rounds without it")  # noqa: B023
                os.kill(victim, signal.SIGCONT)
        assert driver.wait(600) == 0
        expected = {f"http://h{h}.test/{n}": 1 for h in range(hosts) for n in range(pages)}
        assert crawl.fetched() == expected
    assert not impolite(site.accesses, DELAY_S)
    assert requests_of_pages(site).total() <= hosts * pages + 6 * CONCURRENT
