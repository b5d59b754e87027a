"""The scheduler's heaps stay small."""

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from focused.frontier.disk_frontier import DiskFrontier, NotYet, Offer
from focused.frontier.host import Host
from focused.frontier.host_pace import HostPace
from focused.storage.state_store import StateStore
from tests.frontier.steps import finish, link, take

HOSTS, MANY = 20, 20_000
SLACK = 1_024


@pytest.fixture
def frontier(tmp_path: Path) -> Iterator[DiskFrontier]:
    store = StateStore.open(tmp_path / "state", {}, commit_every=2)
    yield DiskFrontier(store.tables, address_delay_s=0.5)
    store.abandon()


@pytest.fixture
def hosts(frontier: DiskFrontier) -> list[Host]:
    for number in range(HOSTS):
        frontier.push(link(f"http://h{number}/", 0.5), 0)
    return [frontier.hosts.get(f"h{number}") for number in range(HOSTS)]


def longest(frontier: DiskFrontier, hosts: list[Host]) -> int:
    turns = frontier.hosts.turns
    waiting_hosts = [len(host.server.waiting_hosts) for host in hosts if host.server is not None]
    return max(len(turns._due), len(turns._waiting), *waiting_hosts, 0)


def test_hosts_that_are_due_are_scheduled_again_thousands_of_times(frontier, hosts):
    for number in range(MANY):
        frontier.hosts.refresh(hosts[number % HOSTS], 0)
    assert longest(frontier, hosts) <= SLACK + 2 * HOSTS + 1
    assert len([take(frontier) for _ in hosts]) == HOSTS


def test_hosts_queued_are_scheduled_again_thousands_of_times(frontier, hosts):
    for number in range(MANY):
        host = hosts[number % HOSTS]
        host.pace = HostPace(2.0 + number % 7)
        frontier.hosts.refresh(host, 0)
    assert longest(frontier, hosts) <= SLACK + 2 * HOSTS + 1
    assert frontier.offer(0) == NotYet(min(host.pace.due_at for host in hosts))


def test_hosts_beside_a_busy_one_are_scheduled_again_thousands_of_times(frontier, hosts):
    for host in hosts:
        frontier.hosts.assign_address(host, "192.0.2.1")
    in_flight = take(frontier)
    for number in range(MANY):
        frontier.hosts.refresh(hosts[number % HOSTS], 0)
        assert frontier.offer(0) == NotYet(None)
    assert longest(frontier, hosts) <= SLACK + 2 * HOSTS + 1
    finish(frontier, in_flight, 0)
    assert isinstance(frontier.offer(0.5), Offer)


def test_hosts_beside_a_better_one_are_scheduled_again_thousands_of_times(frontier, hosts):
    for host in hosts:
        frontier.hosts.assign_address(host, "192.0.2.1")
    rng = Random(1)
    best = hosts[0]
    for now in range(MANY // 10):
        frontier.push(link(f"http://h0/{now}", 0.9), now)
        offer = take(frontier, now)
        assert offer.host is best
        for host in hosts[1:]:
            frontier.reprioritise({f"http://{host.name}/": rng.random() / 2}, now)
            assert frontier.offer(now) == NotYet(None)
        finish(frontier, offer, now, delay_s=0.5)
    assert longest(frontier, hosts) <= SLACK + 2 * HOSTS + 1


def test_it_wakes_no_more_often_than_hosts_and_addresses_fall_due(frontier, hosts):
    for number, host in enumerate(hosts):
        frontier.hosts.assign_address(host, f"192.0.2.{number % 3}")
        frontier.push(link(f"http://{host.name}/more", 0.4), 0)
    now, fetched, woken = 0.0, 0, 0
    while woken <= 3 * HOSTS:
        offered = frontier.offer(now)
        if isinstance(offered, Offer):
            finish(frontier, offered, now, delay_s=1.0)
            fetched += 1
        elif offered is None:
            break
        else:
            assert offered.until is not None and offered.until > now
            now, woken = offered.until, woken + 1
    assert fetched == 2 * HOSTS
