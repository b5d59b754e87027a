"""Crawls on a Ray cluster: processes, actors, nodes and drivers die; every page comes once.

Pages and requests are counted in the archive and in the log of the web's server.
"""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.ray_nodes import RayNodes, parent_of, ray_nodes
from tests.support.recorded_web import MemoryWeb, Served, impolite, served
from tests.support.round_crawls import RoundCrawl, requests_of_pages, ring_web, round_crawl

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]
HOSTS, PAGES, DELAY_S = 60, 50, 0.1
PROCESSES, ROUND_S, CONCURRENT = 3, 2.0, 8
EVERY_PAGE = {f"http://h{h}.test/{n}": 1 for h in range(HOSTS) for n in range(PAGES)}


@pytest.fixture(scope="module")
def web() -> MemoryWeb:
    return ring_web(HOSTS, PAGES)


@pytest.fixture
def site(web: MemoryWeb) -> Iterator[Served]:
    with served(web) as site:
        yield site


@pytest.fixture
def nodes() -> Iterator[RayNodes]:
    with ray_nodes(2, 2) as nodes:
        yield nodes


@pytest.fixture
def crawl(tmp_path: Path, site: Served, nodes: RayNodes) -> Iterator[RoundCrawl]:
    with round_crawl(
        tmp_path,
        site,
        delay_s=DELAY_S,
        processes=PROCESSES,
        round_s=ROUND_S,
        timeout_s=2.0,
        storage=f"file://{tmp_path}/shared",
        ray=nodes.address,
    ) as crawl:
        yield crawl


def wait_for_rounds(crawl: RoundCrawl, count: int) -> None:
    before = crawl.rounds()
    crawl.wait_for(lambda: crawl.rounds() >= before + count, "rounds")
    crawl.wait_for(lambda: len(crawl.processes()) == PROCESSES, "all processes")


def check(crawl: RoundCrawl, site: Served, *, losses: int) -> None:
    """Every page is archived once, hosts had their delays, and a loss repeats a round at most."""
    assert crawl.fetched() == EVERY_PAGE
    assert not impolite(site.accesses, DELAY_S)
    # The hosts of a partition, once a delay in a round, and what was in flight.
    most = HOSTS * ROUND_S / DELAY_S / PROCESSES + CONCURRENT
    assert requests_of_pages(site).total() - len(EVERY_PAGE) <= losses * most


def test_killed_processes_and_actors_are_replaced(crawl, site):
    driver = crawl.start()
    for kills_actor in (False, True, False):
        wait_for_rounds(crawl, 2)
        process = crawl.processes()[0]
        os.kill(parent_of(process) if kills_actor else process, signal.SIGKILL)
    assert driver.wait(800) == 0, crawl.log.read_text()
    check(crawl, site, losses=3)


def test_partitions_of_a_lost_node_go_on_at_another(crawl, site, nodes):
    driver = crawl.start()
    wait_for_rounds(crawl, 2)
    nodes.kill_one()
    nodes.add(2)
    assert driver.wait(800) == 0, crawl.log.read_text()
    check(crawl, site, losses=2)


def test_a_killed_driver_goes_on_where_it_was(crawl, site):
    driver = crawl.start()
    for _ in range(2):
        wait_for_rounds(crawl, 2)
        driver.kill()
        driver.wait()
        driver = crawl.start()
    assert driver.wait(800) == 0, crawl.log.read_text()
    check(crawl, site, losses=2 * PROCESSES)
