"""``focused crawl --processes``: stopping, resuming, and folders of other crawls."""

from __future__ import annotations

import json
import signal
from pathlib import Path

from focused.cluster.storage import SharedStorage
from focused.rounds.manifest import Manifest, commit_manifest
from tests.support.recorded_web import served
from tests.support.round_crawls import RoundCrawl, requests_of_pages, ring_web, round_crawl


def test_a_stopped_crawl_is_resumed_by_the_same_command(tmp_path: Path) -> None:
    web = ring_web(4, 10)
    with served(web) as site, round_crawl(tmp_path, site, processes=2, delay_s=0.1) as crawl:
        driver = crawl.start()
        crawl.wait_for(lambda: crawl.rounds() > 0, "a round")
        driver.send_signal(signal.SIGTERM)
        assert driver.wait(120) == 0
        assert json.loads((crawl.folder / "stats.json").read_text())["end_reason"] == "stopped"
        assert 0 < len(crawl.fetched()) < 40
        assert crawl.run() == 0
        assert len(crawl.fetched()) == 40
        assert (crawl.folder / "partitions" / "partition-0000" / "pages.parquet").exists()
    assert set(requests_of_pages(site).values()) == {1}


def test_the_number_of_processes_cannot_be_changed(tmp_path: Path) -> None:
    crawl = RoundCrawl(tmp_path, "127.0.0.1:1", processes=3)
    storage = SharedStorage(f"file://{tmp_path}", "crawl")
    commit_manifest(storage, Manifest("whales", "focused", 4, "domain", 1))
    assert crawl.run() != 0
    assert "in 4 processes" in crawl.log.read_text()


def test_a_crawl_of_one_process_is_not_resumed_by_several(tmp_path: Path) -> None:
    crawl = RoundCrawl(tmp_path, "127.0.0.1:1")
    (crawl.folder / "state").mkdir(parents=True)
    assert crawl.run() != 0
    assert "resumed without --processes" in crawl.log.read_text()


def test_a_second_driver_is_refused(tmp_path: Path) -> None:
    web = ring_web(4, 50)
    with served(web) as site, round_crawl(tmp_path, site, processes=2, delay_s=2.0) as crawl:
        driver = crawl.start()
        crawl.wait_for(lambda: crawl.rounds() > 0, "a round")
        second = RoundCrawl(tmp_path, site.address, processes=2)
        assert second.run() != 0
        assert "is in use by another crawl" in second.log.read_text()
        driver.kill()
        driver.wait()


def test_settings_of_one_process_are_refused(tmp_path: Path) -> None:
    crawl = RoundCrawl(tmp_path, "127.0.0.1:1", settings=["FOCUSED_METRICS_PORT=9000"])
    assert crawl.run() != 0
    assert "FOCUSED_METRICS_PORT cannot be set" in crawl.log.read_text()
