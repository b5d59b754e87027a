"""Whose names the reactor's resolver answers for, and who is asked where no name server is."""

from __future__ import annotations

from pathlib import Path

import pytest
from scrapy.settings import Settings
from twisted.internet.address import IPv4Address, IPv6Address

from focused.crawl.name_cache import NameCache
from focused.scrapy_addon import connections
from focused.scrapy_addon.names import Names, ask_system
from focused.scrapy_addon.resolver import CheckedResolver
from focused.web.name_answer import NameAnswer, Standing


class Reactor:
    """What a resolver is installed on."""

    def __init__(self, resolver: object) -> None:
        self.nameResolver = resolver

    def installNameResolver(self, resolver: object) -> object:
        before, self.nameResolver = self.nameResolver, resolver
        return before


class Before:
    """The resolver that was there."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def resolveHostName(self, receiver: object, name: str, *rest: object) -> object:
        self.asked.append(name)
        return receiver


class Receiver:
    def __init__(self) -> None:
        self.found: list[tuple[type, str, int]] = []
        self.complete = False

    def resolutionBegan(self, resolution: object) -> None:
        assert not self.found

    def addressResolved(self, address: IPv4Address | IPv6Address) -> None:
        self.found.append((type(address), address.host, address.port))

    def resolutionComplete(self) -> None:
        self.complete = True


def resolver(*addresses: str, private: bool = False) -> CheckedResolver:
    async def ask(name: str) -> NameAnswer:
        return NameAnswer(Standing.FOUND, addresses, 300)

    return CheckedResolver(Names(ask, NameCache(9), lambda: 0.0, Path("/nowhere")), private=private)


def resolved(by: CheckedResolver, name: str) -> list[tuple[type, str, int]]:
    receiver = Receiver()
    by.resolveHostName(receiver, name, 8080)
    assert receiver.complete
    return receiver.found


def test_addresses_of_both_kinds_are_handed_out_with_the_port() -> None:
    ours = resolver("8.8.8.8", "2606:4700::1")
    ours.answer_for("a.test")
    assert resolved(ours, "a.test") == [
        (IPv4Address, "8.8.8.8", 8080),
        (IPv6Address, "2606:4700::1", 8080),
    ]


@pytest.mark.parametrize(("private", "handed_out"), [(False, []), (True, ["10.0.0.1"])])
def test_private_addresses_are_handed_out_to_an_intranets_crawl_alone(
    private: bool, handed_out: list[str]
) -> None:
    ours = resolver("10.0.0.1", private=private)
    ours.answer_for("a.test")
    assert [address for _, address, _ in resolved(ours, "a.test")] == handed_out


@pytest.mark.parametrize("name", ["A.test", "a.test.", "bücher.test", "xn--bcher-kva.test"])
def test_a_host_is_known_by_any_of_its_spellings(name: str) -> None:
    ours = resolver("10.0.0.1")
    before = Before()
    ours.install(Reactor(before))
    ours.answer_for("a.test")
    ours.answer_for("xn--bcher-kva.test")
    assert resolved(ours, name) == []
    assert before.asked == []


def test_hosts_that_the_crawl_does_not_ask_are_anothers_to_answer_for() -> None:
    ours, before = resolver("10.0.0.1"), Before()
    ours.install(Reactor(before))
    ours.answer_for("a.test")
    ours.resolveHostName(Receiver(), "database.internal")
    assert before.asked == ["database.internal"]


def test_the_resolver_that_was_there_is_there_again_afterwards() -> None:
    before = Before()
    reactor, ours = Reactor(before), resolver("8.8.8.8")
    ours.install(reactor)
    ours.install(reactor)
    assert reactor.nameResolver is ours
    ours.uninstall(reactor)
    assert reactor.nameResolver is before


def test_one_that_came_on_top_stays() -> None:
    reactor, ours, later = Reactor(Before()), resolver("8.8.8.8"), resolver("8.8.8.8")
    ours.install(reactor)
    later.install(reactor)
    ours.uninstall(reactor)
    assert reactor.nameResolver is later


def test_where_there_is_no_name_server_the_system_is_asked_and_the_log_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(connections, "RESOLV_CONF", tmp_path / "missing")
    asker = connections._asker(Settings({"FOCUSED_DNS_SERVERS": None}))
    assert asker is ask_system
    assert "no name server in" in caplog.text
    assert "FOCUSED_DNS_SERVERS names others" in caplog.text
