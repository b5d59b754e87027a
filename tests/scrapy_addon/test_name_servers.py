"""Questions to name servers of our own on loopback, over real datagrams."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.selectreactor import SelectReactor
from twisted.names import dns

from focused.errors import ConfigurationError
from focused.scrapy_addon.name_servers import NameServers, servers_of, system_servers, waits_s
from focused.web.name_answer import UNANSWERED, NameAnswer, Standing
from tests.support.name_server import (
    FAILS,
    NO_SUCH_NAME,
    SILENT,
    NameServer,
    Says,
    Zone,
    at,
    serve_names,
)

T = TypeVar("T")
LOOPS = Says(loops=True)
WAITS = (0.02, 0.04, 0.06, 0.08, 0.1)
PATIENT = (10.0,) * 5


def with_reactor(run: Callable[[SelectReactor], Awaitable[T]]) -> T:
    """What ``run`` comes to, in a reactor of its own."""
    reactor, ended = SelectReactor(), []

    async def to_the_end() -> None:
        try:
            ended.append(await run(reactor))
        finally:
            reactor.stop()

    reactor.callWhenRunning(lambda: Deferred.fromCoroutine(to_the_end()))
    reactor.run(installSignalHandlers=False)
    return ended[0]


def ask(
    *servers: NameServer, name: str = "a.test", waits: tuple[float, ...] = PATIENT
) -> NameAnswer:
    addresses = [("127.0.0.1", server.port) for server in servers]
    return with_reactor(lambda reactor: NameServers(addresses, waits, reactor).ask(name))


def asked_of(zone: Zone, name: str = "a.test") -> NameAnswer:
    with serve_names(zone) as server:
        return ask(server, name=name)


def test_both_kinds_of_address_are_asked_for_and_version_4_comes_first() -> None:
    with serve_names({"a.test": at("2001:db8::1", "192.0.2.1", ttl_s=70)}) as server:
        told = ask(server)
    assert told == NameAnswer(Standing.FOUND, ("192.0.2.1", "2001:db8::1"), 70)
    assert sorted(server.asked) == [("a.test", "A"), ("a.test", "AAAA")]


def test_an_alias_that_the_server_follows_takes_one_question() -> None:
    zone = {"a.test": Says(("192.0.2.1",), alias="cdn.test")}
    assert asked_of(zone).addresses == ("192.0.2.1",)


def test_an_alias_that_the_server_leaves_open_is_asked_for() -> None:
    zone = {"a.test": Says(alias="cdn.test", ttl_s=20), "cdn.test": at("192.0.2.7")}
    assert asked_of(zone) == NameAnswer(Standing.FOUND, ("192.0.2.7",), 20)


@pytest.mark.parametrize("names", [2, 100])
def test_aliases_without_end_tell_nothing(names: int) -> None:
    zone = {f"{n}.test": Says(alias=f"{(n + 1) % names}.test") for n in range(names)}
    assert asked_of(zone, "0.test") == UNANSWERED


def test_a_name_that_does_not_exist_is_missing_for_the_time_of_the_soa() -> None:
    assert asked_of({}) == NameAnswer(Standing.MISSING, ttl_s=60)


def test_a_name_without_addresses_is_missing() -> None:
    assert asked_of({"a.test": Says(minimum_s=90)}) == NameAnswer(Standing.MISSING, ttl_s=90)


def test_an_answer_too_long_for_a_datagram_is_fetched_by_tcp() -> None:
    zone = {"a.test": Says(tuple(f"192.0.2.{n}" for n in range(1, 200)), long=True)}
    with serve_names(zone) as server:
        assert len(ask(server).addresses) == 199
    assert ("a.test", "A", "TCP") in server.asked


@pytest.mark.parametrize("says", [FAILS, SILENT, LOOPS, Says(code=dns.EREFUSED)])
def test_a_server_that_cannot_tell_is_asked_five_times(says: Says) -> None:
    with serve_names({"a.test": says}) as server:
        assert ask(server, waits=WAITS) == UNANSWERED
    assert server.asked.count(("a.test", "A")) == 5


@pytest.mark.parametrize("says", [FAILS, SILENT])
def test_an_answer_at_the_fifth_try_is_an_answer(says: Says) -> None:
    with serve_names({"a.test": [says, says, says, says, at("192.0.2.1")]}) as server:
        assert ask(server, waits=WAITS + PATIENT).addresses == ("192.0.2.1",)


def test_a_server_that_is_down_is_passed_over() -> None:
    with serve_names({"a.test": at("192.0.2.1")}) as up, serve_names({"a.test": SILENT}) as down:
        assert ask(down, up, waits=(0.02, 10.0)).addresses == ("192.0.2.1",)


def test_a_server_that_does_not_know_is_not_waited_for_when_another_may() -> None:
    with serve_names({"a.test": at("192.0.2.1")}) as good, serve_names({"a.test": FAILS}) as bad:
        assert ask(bad, good, waits=(3_600.0, 10.0)).addresses == ("192.0.2.1",)


def test_a_no_of_the_first_server_is_an_answer() -> None:
    with serve_names({"a.test": NO_SUCH_NAME}) as first, serve_names({}) as second:
        assert ask(first, second).standing is Standing.MISSING
    assert second.asked == []


@pytest.mark.parametrize("name", ["a..test", "-" * 64 + ".test", "ä.test", "x" * 300])
def test_what_no_name_can_be_is_missing_unasked(name: str) -> None:
    with serve_names({}) as server:
        assert ask(server, name=name).standing is Standing.MISSING
    assert server.asked == []


def test_waits_grow_and_end_in_time() -> None:
    assert waits_s(31.0) == (1.0, 2.0, 4.0, 8.0, 16.0)


def test_servers_are_written_with_a_port_or_without() -> None:
    assert servers_of("127.0.0.1:5353, [::1]:54,9.9.9.9,[::1],2620:fe::fe") == (
        ("127.0.0.1", 5353),
        ("::1", 54),
        ("9.9.9.9", 53),
        ("::1", 53),
        ("2620:fe::fe", 53),
    )


@pytest.mark.parametrize(
    "text", ["dns.test", "127.0.0.1:x", "127.0.0.1:0", "[::1", "[::1]x:53", ":53"]
)
def test_a_server_that_is_no_address_is_an_error_that_names_the_setting(text: str) -> None:
    with pytest.raises(ConfigurationError, match="FOCUSED_DNS_SERVERS: "):
        servers_of(text)


def test_the_systems_servers_are_read_as_the_system_reads_them(tmp_path: Path) -> None:
    conf = tmp_path / "resolv.conf"
    lines = ["# nameserver 192.0.2.9", "search a.test", "nameserver 192.0.2.1", "nameserver", ""]
    more = ["nameserver ::1", "nameserver dns.test", "nameserver 192.0.2.2", "nameserver 192.0.2.3"]
    conf.write_text("\n".join(lines + more))
    assert system_servers(conf) == (("192.0.2.1", 53), ("::1", 53), ("192.0.2.2", 53))


def test_without_such_a_file_there_are_none(tmp_path: Path) -> None:
    assert system_servers(tmp_path / "missing") == ()
