"""Crawls in rounds whose states are in shared storage of each kind, as users start them."""

import os
import signal

import pytest

from tests.rounds import shared_storages
from tests.rounds.shared_storages import new_bucket
from tests.support.recorded_web import MemoryWeb, impolite, served
from tests.support.round_crawls import RoundCrawl, requests_of_pages, ring_web, round_crawl

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]
s3_server = shared_storages.s3_server
HOSTS, PAGES, DELAY_S = 12, 12, 0.05
EVERY_PAGE = {f"http://h{h}.test/{n}": 1 for h in range(HOSTS) for n in range(PAGES)}


@pytest.fixture(scope="module")
def web() -> MemoryWeb:
    return ring_web(HOSTS, PAGES)


def kill_one_in_the_second_round(crawl: RoundCrawl) -> None:
    before = crawl.rounds()
    crawl.wait_for(lambda: crawl.rounds() > before + 1, "a round")
    crawl.wait_for(lambda: len(crawl.processes()) == 3, "all processes")
    os.kill(crawl.processes()[0], signal.SIGKILL)


def test_a_crawl_on_s3_survives_the_loss_of_a_process(tmp_path, web, s3_server, monkeypatch):
    bucket = new_bucket(s3_server, monkeypatch)
    with (
        served(web) as site,
        round_crawl(tmp_path, site, delay_s=DELAY_S, storage=f"{bucket}/crawls") as crawl,
    ):
        driver = crawl.start()
        kill_one_in_the_second_round(crawl)
        assert driver.wait(800) == 0, crawl.log.read_text()
        assert crawl.fetched() == EVERY_PAGE
        assert not impolite(site.accesses, DELAY_S)
        assert requests_of_pages(site).total() <= 2 * len(EVERY_PAGE)
