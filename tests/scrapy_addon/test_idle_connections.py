"""Connections that are kept for a host's next turn do not pile up."""

from __future__ import annotations

import os
import resource
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from twisted.internet import tcp
from twisted.internet.defer import Deferred, succeed
from twisted.internet.task import Clock

from focused.scrapy_addon.idle_connections import (
    MAX_IDLE,
    MAX_IDLE_S,
    IdleConnections,
    most_idle,
)
from focused.scrapy_addon.plain_answers import OddAnswer
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
        crawl = start_warm(topic, "", most_files_open=256, FOCUSED_DNS_SERVERS=names.address)
        most = most_files_open(crawl)
    assert crawl.exitcode == 0
    assert len(hosts.accesses) == 2 * len(HOSTS)
    assert most < 256 - 100


class Connection:
    """One that leads to an address."""

    def __init__(self, rest: Callable[[Any], None]) -> None:
        self.state = "QUIESCENT"
        self.transport = Mock()
        self.answered = lambda: rest(self)
        self.abort = Mock(return_value=succeed(None))

    @property
    def closed(self) -> bool:
        return bool(self.transport.loseConnection.called)


class Pool:
    """Asks over connections that come about at once, and says when their answers came."""

    def __init__(self, **given: Any) -> None:
        self.clock = Clock()
        self.made: list[Connection] = []
        self.idle = IdleConnections(
            self.clock, lambda rest, _: rest, **{"one_to_an_address": False, **given}
        )

    def ask(self, key: Sequence[Any], address: str = "192.0.2.1") -> Connection:
        def connect(rest: Callable[[Any], None]) -> Deferred[Connection]:
            self.made.append(Connection(rest))
            self.made[-1].transport.getPeer.return_value.host = address
            return succeed(self.made[-1])

        came: list[Connection] = []
        self.idle.getConnection(tuple(key), Mock(connect=connect)).addCallback(came.append)
        return came[0]

    def asked(self, key: Sequence[Any], address: str = "192.0.2.1") -> Connection:
        connection = self.ask(key, address)
        connection.answered()
        return connection


A, B = (b"http", b"a.test", 80, None), (b"http", b"b.test", 80, None)


def test_the_next_request_to_a_host_leaves_over_the_connection_of_the_last() -> None:
    pool = Pool()
    first, other = pool.asked(A), pool.asked(B)
    assert pool.ask(A) is first
    assert pool.ask(A) not in (first, other)


def test_a_connection_that_its_server_closed_is_not_used() -> None:
    pool = Pool()
    first = pool.asked(A)
    first.state = "CONNECTION_LOST"
    assert pool.ask(A) is not first


@pytest.mark.parametrize("says", [b"", b"HTTP/1.1 408 Request Timeout"])
def test_a_connection_that_ended_since_the_reactor_last_looked_is_not_used(says: bytes) -> None:
    pool = Pool()
    first = pool.asked(A)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        first.transport = tcp.Connection(ours, Mock(), Mock())
        first.transport.connected = True
        assert pool.asked(A) is first
        theirs.sendall(says)
        theirs.close()
        assert pool.ask(A) is not first
        assert first.transport.disconnecting


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
    pool = Pool(one_to_an_address=True)
    there = pool.asked(key)
    elsewhere = pool.asked((b"http", b"c.test", 80, None), "192.0.2.2")
    pool.ask(B)
    assert (there.closed, elsewhere.closed) == (closed, False)


def test_a_request_leaves_over_no_connection_to_another_address_than_the_checked_one() -> None:
    pool = Pool(most_alike=2)
    both = [pool.ask(A), pool.ask(A, "::ffff:192.0.2.2")]
    other = pool.asked(B, "::1")
    for each in both:
        each.answered()
    pool.idle.leaves_for("a.test", "192.0.2.2")
    assert [each.closed for each in (*both, other)] == [True, False, False]
    assert pool.ask(A) is both[1]


def test_those_that_idle_longest_are_closed_where_there_are_too_many() -> None:
    pool = Pool(most=10)
    for number in range(40):
        pool.asked((b"http", b"%d.test" % number, 80, None))
    assert [each for each in pool.made if not each.closed] == pool.made[-10:]
    assert len(pool.idle) == 10


def test_a_host_has_no_more_idle_connections_than_it_may_have_in_use() -> None:
    pool = Pool(most_alike=1)
    first, second = pool.ask(A), pool.ask(A)
    first.answered()
    second.answered()
    assert (first.closed, second.closed) == (True, False)


def test_none_idles_for_long() -> None:
    pool = Pool()
    first = pool.asked(A)
    pool.clock.advance(MAX_IDLE_S / 2)
    second = pool.asked(B)
    pool.clock.advance(MAX_IDLE_S / 2)
    assert (first.closed, second.closed) == (True, False)
    pool.clock.advance(MAX_IDLE_S / 2)
    assert second.closed
    assert not pool.clock.getDelayedCalls()


def test_at_the_end_all_are_closed_and_nothing_is_waited_for() -> None:
    pool = Pool()
    both = [pool.asked(A), pool.asked(B)]
    pool.idle.closeCachedConnections()
    assert all(each.abort.called for each in both)
    assert not pool.clock.getDelayedCalls()
    assert len(pool.idle) == 0


@pytest.mark.parametrize(("may_open", "most"), [(256, 48), (1024, 432), (500_000, MAX_IDLE)])
def test_half_of_the_files_that_may_be_open_are_left_to_others(
    monkeypatch: pytest.MonkeyPatch, may_open: int, most: int
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (may_open, may_open))
    assert most_idle(in_use=32) == most


def test_an_answer_that_is_handed_over_is_for_the_next_request_alone() -> None:
    pool = Pool()
    first = pool.asked(A)
    odd = OddAnswer(Mock())
    pool.idle.next_is(odd)
    assert pool.ask(A) is odd
    assert pool.ask(A) is first
    pool.idle.next_is(odd)
    pool.idle.next_is(None)
    assert pool.ask(A) is not odd
