"""Host names: servers, lookups, cache times, allowed addresses."""

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pycares
import pytest
from scrapy.settings import Settings
from twisted.names import dns

from focused.errors import ConfigurationError
from focused.scrapy_addon import name_resolver
from focused.scrapy_addon.name_resolver import (
    MISSING,
    UNRESOLVED,
    DnsLookup,
    NameResolver,
    NameServerError,
    NoSuchHostError,
    PrivateAddressError,
    ResolvedName,
    allowed_addresses,
    make_lookup,
    parse_servers,
    system_lookup,
)
from tests.support.name_server import FAILS, SILENT, DnsAnswer, NameServer, Zone, at, serve_names

T = TypeVar("T")
FOUND = ResolvedName(("192.0.2.1",), 300)


class FakeLookup:
    """A lookup that answers when the test says so."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.answers: list[asyncio.Future[ResolvedName]] = []
        self.now = 0.0

    async def __call__(self, name: str) -> ResolvedName:
        self.names.append(name)
        self.answers.append(asyncio.get_running_loop().create_future())
        return await self.answers[-1]


def run(test: Callable[[NameResolver, FakeLookup], Awaitable[T]], max_names: int = 10) -> T:
    lookup = FakeLookup()
    return asyncio.run(test(NameResolver(lookup, max_names, lambda: lookup.now), lookup))


async def resolved(
    resolver: NameResolver, lookup: FakeLookup, host: str, answer: ResolvedName
) -> None:
    waiting = asyncio.ensure_future(resolver.resolve(host))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    lookup.answers[-1].set_result(answer)
    assert await waiting == answer


def test_callers_at_the_same_time_share_one_lookup():
    async def test(resolver: NameResolver, lookup: FakeLookup) -> None:
        waiting = [
            asyncio.ensure_future(resolver.resolve(h)) for h in ("a.test", "A.test", "a.test.")
        ]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert lookup.names == ["a.test"]
        lookup.answers[0].set_result(FOUND)
        assert await asyncio.gather(*waiting) == [FOUND] * 3

    run(test)


def test_a_caller_who_gives_up_takes_the_answer_from_nobody_else():
    async def test(resolver: NameResolver, lookup: FakeLookup) -> None:
        first, second = (asyncio.ensure_future(resolver.resolve("a.test")) for _ in range(2))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.sleep(0)
        lookup.answers[0].set_result(FOUND)
        assert await second == FOUND

    run(test)


def test_a_lookup_that_fails_leaves_nobody_waiting(caplog):
    async def test(resolver: NameResolver, lookup: FakeLookup) -> None:
        waiting = asyncio.ensure_future(resolver.resolve("a.test"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        lookup.answers[0].set_exception(RuntimeError("broken"))
        assert await waiting == UNRESOLVED

    run(test)
    assert "a.test could not be looked up" in caplog.text


@pytest.mark.parametrize(
    ("answer", "kept_s"),
    [
        (ResolvedName(("192.0.2.1",), 0), 10),
        (ResolvedName(("192.0.2.1",), 300), 300),
        (ResolvedName(("192.0.2.1",), 10**9), 86_400),
        (MISSING, 30),
        (UNRESOLVED, 10),
    ],
)
def test_an_answer_is_kept_for_its_time_to_live_within_bounds(answer, kept_s):
    async def test(resolver: NameResolver, lookup: FakeLookup) -> None:
        await resolved(resolver, lookup, "a.test", answer)
        lookup.now = kept_s - 0.1
        assert resolver.cached("a.test") == answer
        again = asyncio.ensure_future(resolver.resolve("a.test"))
        await asyncio.sleep(0)
        assert again.done() and lookup.names == ["a.test"]
        lookup.now = kept_s
        assert resolver.cached("a.test") is None

    run(test)


def test_the_names_used_last_are_kept():
    async def test(resolver: NameResolver, lookup: FakeLookup) -> None:
        for name in ("a.test", "b.test"):
            await resolved(resolver, lookup, name, FOUND)
        resolver.cached("a.test")
        await resolved(resolver, lookup, "c.test", FOUND)
        kept = [name for name in ("a.test", "b.test", "c.test") if resolver.cached(name)]
        assert kept == ["a.test", "c.test"]

    run(test, max_names=2)


def test_a_cache_of_no_names_keeps_none():
    async def test(resolver: NameResolver, lookup: FakeLookup) -> None:
        await resolved(resolver, lookup, "a.test", FOUND)
        assert resolver.cached("a.test") is None

    run(test, max_names=0)


def test_an_address_where_nobody_answers_comes_last():
    answer = ResolvedName(("192.0.2.1", "::ffff:192.0.2.2", "192.0.2.3"), 300)

    async def test(resolver: NameResolver, lookup: FakeLookup) -> None:
        await resolved(resolver, lookup, "a.test", answer)
        resolver.deprioritize("A.test", "192.0.2.1")
        resolver.deprioritize("a.test", "192.0.2.2")
        resolver.deprioritize("never-asked.test", "192.0.2.2")
        kept = resolver.cached("a.test")
        assert kept is not None
        assert kept.addresses == ("192.0.2.3", "192.0.2.1", "::ffff:192.0.2.2")

    run(test)


@pytest.mark.parametrize(
    ("host", "addresses"),
    [
        ("192.0.2.5", ("192.0.2.5",)),
        ("0x7f.1", ("127.0.0.1",)),
        ("::1", ("::1",)),
        ("localhost", ("127.0.0.1", "::1")),
        ("printer.localhost", ("127.0.0.1", "::1")),
    ],
)
def test_addresses_and_this_machine_need_no_lookup(host, addresses):
    async def test(resolver: NameResolver, lookup: FakeLookup) -> None:
        assert (await resolver.resolve(host)).addresses == tuple(addresses)
        assert lookup.names == []

    run(test)


def test_an_international_name_is_looked_up_in_punycode():
    async def test(resolver: NameResolver, lookup: FakeLookup) -> None:
        await resolved(resolver, lookup, "bücher.test", FOUND)
        assert resolver.cached("xn--bcher-kva.test") == FOUND
        assert lookup.names == ["xn--bcher-kva.test"]

    run(test)


# -- name servers


def ask(*servers: NameServer, name: str = "a.test", timeout_s: float = 31.0) -> ResolvedName:
    async def asked() -> ResolvedName:
        return await DnsLookup([server.address for server in servers], timeout_s)(name)

    return asyncio.run(asked())


def asked_of(zone: Zone, name: str = "a.test") -> ResolvedName:
    with serve_names(zone) as server:
        return ask(server, name=name)


def test_both_kinds_of_address_are_requested_and_ipv4_comes_first():
    with serve_names({"a.test": at("2001:db8::1", "192.0.2.1", ttl_s=70)}) as server:
        answer = ask(server)
    assert answer == ResolvedName(("192.0.2.1", "2001:db8::1"), 70)
    assert sorted(server.asked) == [("a.test", "A"), ("a.test", "AAAA")]


def test_an_alias_is_kept_for_the_shortest_time_of_its_chain():
    zone = {"a.test": DnsAnswer(("192.0.2.1",), alias="cdn.test", ttl_s=20)}
    assert asked_of(zone) == ResolvedName(("192.0.2.1",), 20)


@pytest.mark.parametrize("zone", [{}, {"a.test": DnsAnswer(minimum_s=90)}])
def test_a_name_that_does_not_exist_or_has_no_address_is_missing(zone):
    assert asked_of(zone) == MISSING


def test_an_answer_too_long_for_a_datagram_is_fetched_by_tcp():
    zone = {"a.test": DnsAnswer(tuple(f"192.0.2.{n}" for n in range(1, 200)), long=True)}
    with serve_names(zone) as server:
        assert len(ask(server).addresses) == 199
    assert ("a.test", "A", "TCP") in server.asked


@pytest.mark.parametrize("answer", [FAILS, DnsAnswer(loops=True), DnsAnswer(code=dns.EREFUSED)])
def test_a_server_that_cannot_tell_is_asked_five_times(answer):
    with serve_names({"a.test": answer}) as server:
        assert ask(server) == UNRESOLVED
    assert server.asked.count(("a.test", "A")) == 5


def test_an_answer_at_the_fifth_try_is_an_answer():
    with serve_names({"a.test": [FAILS, FAILS, FAILS, FAILS, at("192.0.2.1")]}) as server:
        assert ask(server).addresses == ("192.0.2.1",)


@pytest.mark.parametrize("answer", [SILENT, FAILS])
def test_another_server_is_asked_where_the_first_is_silent_or_fails(answer):
    with serve_names({"a.test": at("192.0.2.1")}) as up, serve_names({"a.test": answer}) as down:
        assert ask(down, up).addresses == ("192.0.2.1",)


@pytest.mark.parametrize("name", ["a..test", "-" * 64 + ".test", "ä.test", "x." * 200 + "test"])
def test_what_cannot_be_a_name_is_missing_without_a_question(name):
    with serve_names({}) as server:
        assert ask(server, name=name) == MISSING
    assert server.asked == []


# -- the operating system


@pytest.mark.parametrize("name", ["intranet", "printer.local"])
def test_the_system_resolves_search_domains_and_multicast_names(system, name):
    system.answer = ["2001:db8::1", "192.0.2.1", "192.0.2.1"]
    with serve_names({}) as server:
        assert ask(server, name=name).addresses == ("192.0.2.1", "2001:db8::1")
    assert server.asked == []


@pytest.mark.parametrize(
    ("error", "answer"),
    [
        (socket.gaierror(socket.EAI_NONAME, "no name"), MISSING),
        (socket.gaierror(socket.EAI_AGAIN, "later"), UNRESOLVED),
        (socket.gaierror(socket.EAI_FAIL, "never"), UNRESOLVED),
        (OSError("no sockets left"), UNRESOLVED),
        (UnicodeError("label too long"), UNRESOLVED),
    ],
)
def test_a_missing_name_is_distinguished_from_a_silent_system(system, error, answer):
    system.answer = error
    assert asyncio.run(system_lookup("a.test")) == answer


def test_the_system_resolves_all_names_where_no_server_is_configured_and_the_log_says_so(
    monkeypatch, caplog
):
    def refuse(*_: object, **__: object) -> None:
        raise pycares.AresError("no server")

    monkeypatch.setattr(name_resolver.aiodns, "DNSResolver", refuse)
    with caplog.at_level(logging.WARNING):
        assert make_lookup(Settings({"FOCUSED_DNS_SERVERS": None})) is system_lookup
    assert "FOCUSED_DNS_SERVERS names others" in caplog.text


# -- which addresses may be used


def test_private_addresses_among_public_ones_are_excluded():
    answer = ResolvedName(("10.0.0.1", "8.8.8.8", "::1", "2606:4700::1"), 300)
    assert allowed_addresses("a.test", answer, private=False) == ("8.8.8.8", "2606:4700::1")
    assert allowed_addresses("a.test", answer, private=True) == answer.addresses


def test_a_host_with_private_addresses_alone_is_refused():
    answer = ResolvedName(("169.254.169.254", "fd00:ec2::254"), 300)
    with pytest.raises(PrivateAddressError, match=r"a\.test is at 169\.254\.169\.254"):
        allowed_addresses("a.test", answer, private=False)


def test_an_address_counts_once_however_it_is_written():
    written = ("8.8.8.8", "::ffff:808:808", "::ffff:8.8.8.8", "2606:4700:0::1", "2606:4700::1")
    answer = ResolvedName(written, 300)
    assert allowed_addresses("a.test", answer, private=False) == ("8.8.8.8", "2606:4700::1")


@pytest.mark.parametrize(
    ("answer", "error"), [(MISSING, NoSuchHostError), (UNRESOLVED, NameServerError)]
)
def test_a_missing_name_is_another_error_than_silence(answer, error):
    with pytest.raises(error, match=r"a\.test"):
        allowed_addresses("a.test", answer, private=True)


# -- the setting


def test_servers_are_written_with_a_port_or_without():
    assert parse_servers("127.0.0.1:5353, [::1]:54,9.9.9.9,[::1],2620:fe::fe") == (
        "127.0.0.1:5353",
        "[::1]:54",
        "9.9.9.9:53",
        "[::1]:53",
        "[2620:fe::fe]:53",
    )


@pytest.mark.parametrize(
    "text", ["dns.test", "127.0.0.1:x", "127.0.0.1:99999", "[::1", "[::1]x:53", ":53"]
)
def test_a_server_that_is_not_an_address_is_an_error_that_names_the_setting(text):
    with pytest.raises(ConfigurationError, match="FOCUSED_DNS_SERVERS: "):
        parse_servers(text)
