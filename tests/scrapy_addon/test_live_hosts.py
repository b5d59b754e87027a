"""A live crawl on loopback: existing and missing hosts, and their addresses."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from focused.frontier.disk_frontier import DiskFrontier
from focused.storage.state_store import StateStore
from tests.support.crawling import Finished, crawl, write_topic
from tests.support.hostile_hosts import Behaviour, pages, serve_hosts
from tests.support.name_server import FAILS, NO_SUCH_NAME, at, serve_names
from tests.support.recorded_web import html

ZONE = {"here.test": at("127.0.0.1"), "nowhere.test": NO_SUCH_NAME, "silent.test": FAILS}


def start_page(port: int) -> dict[str, Behaviour]:
    """A page that links to hosts that are not there; no robots.txt."""
    links = [f"http://{name}.test/{n}" for name in ("nowhere", "silent") for n in range(3)]
    return {"here.test": pages({"/": (200, html("Start", *links), {})})}


@pytest.fixture
def seed() -> Iterator[str]:
    with serve_hosts(start_page) as served:
        yield served.url("here.test")


def crawl_live(topic: Path, **settings: object) -> Finished:
    with serve_names(ZONE) as names:
        options = {"FOCUSED_DNS_SERVERS": names.address, "DNS_TIMEOUT": 60, **settings}
        return crawl(topic, "", **options)


def live_topic(folder: Path, seed: str, **sections: str) -> Path:
    return write_topic(folder, seed, scope="private_addresses = true", **sections)


def test_a_name_that_does_not_exist_is_reported_from_a_name_service_that_is_silent(tmp_path, seed):
    done = crawl_live(live_topic(tmp_path, seed, politeness="suspend_s = 0"))
    assert done.status == 0, done.output
    assert done.stats["failures"] == {"no-such-host": 3, "dns": 3}
    assert done.stats["end_reason"] == "frontier is empty"


def test_where_a_host_stands_is_kept(tmp_path, seed):
    done = crawl_live(live_topic(tmp_path, seed, politeness="suspend_s = 0"))
    store = StateStore.reopen(done.folder / "state")
    standing = {host.name: host.address for host in DiskFrontier(store.tables).hosts}
    store.close()
    assert standing[seed.split("/")[2]] == "127.0.0.1"
    assert standing["silent.test"] == ""


def test_a_crawl_that_only_waits_for_such_hosts_says_so_where_its_operator_looks(tmp_path, seed):
    topic = live_topic(
        tmp_path, seed, politeness="suspend_s = 8\nmax_tries = 1", budget="hours = 0.004"
    )
    done = crawl_live(topic, FOCUSED_PROGRESS_INTERVAL_S=1)
    message = "waiting for 2 hosts in back-off or long crawl-delays, the next at "
    assert any(line.count(message) == 1 for line in done.output.splitlines() if " pages | " in line)
    log = (done.folder / "crawl.log").read_text()
    assert log.count(message) >= 1
    assert done.stats["hosts_in_back_off"] >= 1
    assert done.stats["end_reason"].startswith("only hosts are left that are not due before")
