"""A hundred thousand hosts: choosing costs no more than with a thousand, and a crawl resumes."""

import random
import time
from statistics import median

import pytest

from focused.frontier.disk_frontier import DiskFrontier, Offer
from focused.frontier.host_pace import HostPace
from focused.frontier.queued_link import QueuedLink, link_key
from focused.frontier.state_check import check_state
from focused.storage.state_store import StateStore

LINKS_A_HOST, TURNS = 3, 3_000


def fill(store: StateStore, hosts: int, now: float) -> DiskFrontier:
    frontier, rng = DiskFrontier(store.tables), random.Random(1)
    for first in range(0, hosts, 50):
        links = []
        for number in range(first, first + 50):
            for path in range(LINKS_A_HOST):
                url = f"http://h{number}.test/{path}"
                links.append(QueuedLink(link_key(url), url, f"h{number}.test", rng.random(), 0.5))
        frontier.push_all(links, now)
        frontier.save()
        store.commit()
    return frontier


def turn_s(frontier: DiskFrontier, store: StateStore, now: float) -> float:
    """The median seconds of CPU that choosing and settling a link take."""
    took = []
    for number in range(TURNS):
        at = now + number / 100
        began = time.thread_time()
        offer = frontier.offer(at)
        if isinstance(offer, Offer):
            frontier.settle(offer, HostPace(due_at=at + 600), at)
        frontier.save()
        store.commit()
        took.append(time.thread_time() - began)
    return median(took)


@pytest.mark.long
def test_choosing_among_a_hundred_thousand_hosts_costs_as_much_as_among_a_thousand(tmp_path):
    took = {}
    for hosts in (2_000 + TURNS, 100_000):
        store = StateStore.open(tmp_path / str(hosts), {})
        took[hosts] = turn_s(fill(store, hosts, 1e6), store, 1e6)
        store.close()
    few, many = took.values()
    assert many < 5 * few
    began = time.thread_time()
    store = StateStore.open(tmp_path / "100000", {})
    frontier = DiskFrontier(store.tables)
    frontier.hosts.restore_address_delays(1e6)
    assert isinstance(frontier.offer(1e6 + 1_000), Offer)
    assert time.thread_time() - began < 30
    assert len(frontier.hosts) == 100_000
    store.close()
    assert check_state(tmp_path / "100000", lambda table, key, value: None).damaged == []
