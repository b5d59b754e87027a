"""Connections that are kept for a host's next turn do not pile up."""

from __future__ import annotations

import os
from contextlib import suppress
from multiprocessing.process import BaseProcess
from pathlib import Path
from unittest.mock import Mock

import pytest
from twisted.internet.task import Clock
from twisted.web.client import HTTPConnectionPool

from focused.scrapy_addon.idle_connections import MAX_IDLE, IdleConnections
from tests.support.crawling import write_topic
from tests.support.hostile_hosts import pages, serve_hosts
from tests.support.name_server import at, serve_names
from tests.support.recorded_web import html
from tests.support.warm import start_warm

HOSTS = [f"h{number}.test" for number in range(250)]


def most_files_open(crawl: BaseProcess) -> int:
    """How many files the process had open at most, until its end."""
    most = 0
    while crawl.exitcode is None:
        with suppress(FileNotFoundError):
            most = max(most, len(os.listdir(f"/proc/{crawl.pid}/fd")))
        crawl.join(0.02)
    return most


def test_a_crawl_of_many_hosts_keeps_few_connections_open(tmp_path: Path) -> None:
    page = (200, html("Whales"), {})
    zone = {host: at(f"127.4.0.{number + 1}") for number, host in enumerate(HOSTS)}
    with (
        serve_hosts(lambda _: {host: pages({"/": page}) for host in HOSTS}) as hosts,
        serve_names(zone) as names,
    ):
        topic = write_topic(
            tmp_path, *map(hosts.url, HOSTS), scope="private_addresses = true\ntraps = false"
        )
        crawl = start_warm(topic, "", FOCUSED_DNS_SERVERS=names.address)
        most = most_files_open(crawl)
    assert crawl.exitcode == 0
    assert len(hosts.accesses) == 2 * len(HOSTS)
    assert most < MAX_IDLE + 70


class Connection:
    """One that idles, at an address."""

    state = "QUIESCENT"

    def __init__(self, address: str) -> None:
        self.transport = Mock()
        self.transport.getPeer.return_value.host = address

    @property
    def closed(self) -> bool:
        return bool(self.transport.loseConnection.called)


def pool_of(*, one_to_an_address: bool) -> tuple[HTTPConnectionPool, IdleConnections]:
    pool = HTTPConnectionPool(Clock())
    return pool, IdleConnections(pool, one_to_an_address=one_to_an_address)


@pytest.mark.parametrize(
    ("key", "closed"),
    [
        ((b"http", b"a.test", 80, None), True),
        ((b"https", b"a.test", 443, None), True),
        ((b"http-proxy", b"192.0.2.1", 3128), False),
        ((b"https", b"a.test", 443, b"192.0.2.1", 3128, None, None), False),
    ],
)
def test_one_idles_at_an_address_and_those_through_a_proxy_are_not_meant(key, closed) -> None:
    pool, idle = pool_of(one_to_an_address=True)
    there, elsewhere = Connection("192.0.2.1"), Connection("192.0.2.2")
    pool._putConnection(key, there)
    pool._putConnection((b"http", b"b.test", 80, None), elsewhere)
    idle.connected("192.0.2.1")
    assert (there.closed, elsewhere.closed) == (closed, False)


def test_a_request_leaves_over_no_connection_to_another_address_than_the_checked_one() -> None:
    pool, idle = pool_of(one_to_an_address=False)
    old, new, others = Connection("192.0.2.1"), Connection("::ffff:192.0.2.2"), Connection("::1")
    pool.maxPersistentPerHost = 2
    pool._putConnection((b"http", b"a.test", 80, None), old)
    pool._putConnection((b"http", b"a.test", 80, None), new)
    pool._putConnection((b"http", b"b.test", 80, None), others)
    idle.leaves_for("a.test", "192.0.2.2")
    assert [each.closed for each in (old, new, others)] == [True, False, False]


def test_those_that_idle_longest_are_closed_and_hosts_without_one_forgotten() -> None:
    pool, _ = pool_of(one_to_an_address=False)
    made = [Connection("192.0.2.1") for _ in range(4 * MAX_IDLE)]
    for number, each in enumerate(made):
        pool._putConnection((b"http", b"%d.test" % number, 80, None), each)
    assert [each for each in made if not each.closed] == made[-MAX_IDLE:]
    assert len(pool._connections) <= 2 * MAX_IDLE + 1
