"""Whose names the reactor's resolver answers for, and who is asked where no name server is."""

from __future__ import annotations

from pathlib import Path

import pytest
from scrapy.settings import Settings
from twisted.internet.address import IPv4Address, IPv6Address

from focused.scrapy_addon import connections
from focused.scrapy_addon.names import ask_system
from focused.scrapy_addon.resolver import CheckedResolver


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


def resolved(by: CheckedResolver, name: str) -> list[tuple[type, str, int]]:
    receiver = Receiver()
    by.resolveHostName(receiver, name, 8080)
    assert receiver.complete
    return receiver.found


@pytest.mark.parametrize(
    ("address", "kind"), [("8.8.8.8", IPv4Address), ("2606:4700::1", IPv6Address)]
)
def test_the_address_that_was_checked_last_is_all_that_is_handed_out(
    address: str, kind: type
) -> None:
    ours = CheckedResolver()
    ours.answer_for("a.test", "192.0.2.1")
    ours.answer_for("a.test", address)
    assert resolved(ours, "a.test") == [(kind, address, 8080)]


@pytest.mark.parametrize("name", ["A.test", "a.test.", "bücher.test", "xn--bcher-kva.test"])
def test_a_host_is_known_by_any_of_its_spellings(name: str) -> None:
    ours = CheckedResolver()
    before = Before()
    ours.install(Reactor(before))
    ours.answer_for("a.test", "192.0.2.1")
    ours.answer_for("xn--bcher-kva.test", "192.0.2.1")
    assert resolved(ours, name) == [(IPv4Address, "192.0.2.1", 8080)]
    assert before.asked == []


def test_hosts_that_the_crawl_does_not_ask_are_anothers_to_answer_for() -> None:
    ours, before = CheckedResolver(), Before()
    ours.install(Reactor(before))
    ours.answer_for("a.test", "192.0.2.1")
    ours.resolveHostName(Receiver(), "database.internal")
    assert before.asked == ["database.internal"]


def test_the_resolver_that_was_there_is_there_again_afterwards() -> None:
    before = Before()
    reactor, ours = Reactor(before), CheckedResolver()
    ours.install(reactor)
    ours.install(reactor)
    assert reactor.nameResolver is ours
    ours.uninstall(reactor)
    assert reactor.nameResolver is before


def test_one_that_came_on_top_stays() -> None:
    reactor, ours, later = Reactor(Before()), CheckedResolver(), CheckedResolver()
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
