"""Names of hosts: what is asked, of whom, how often, and which addresses are fit."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from pathlib import Path

import pytest
from twisted.internet.defer import Deferred

from focused.crawl.name_cache import NameCache
from focused.scrapy_addon import names as names_module
from focused.scrapy_addon.names import (
    Names,
    NoSuchHostError,
    PrivateAddressError,
    UnansweredNameError,
    is_the_systems_own,
    usable,
)
from focused.web.name_answer import UNANSWERED, NameAnswer, Standing

FOUND = NameAnswer(Standing.FOUND, ("192.0.2.1",), 300)
MISSING = NameAnswer(Standing.MISSING, ttl_s=300)


class Asked:
    """A name service that answers when it is told to."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.waiting: list[Deferred[NameAnswer]] = []
        self.now = 0.0

    async def __call__(self, name: str) -> NameAnswer:
        self.names.append(name)
        self.waiting.append(Deferred())
        return await self.waiting[-1]


@pytest.fixture
def asked() -> Asked:
    return Asked()


@pytest.fixture
def names(asked: Asked, tmp_path: Path) -> Names:
    hosts = tmp_path / "hosts"
    hosts.write_text("# 10.0.0.1 no.test\n::1 in.test\n192.0.2.8\tIn.Test other.test # yes\n")
    return Names(asked, NameCache(10), lambda: asked.now, hosts)


def now(deferred: Deferred[NameAnswer]) -> NameAnswer:
    """What is known already."""
    assert deferred.called
    return deferred.result


def test_those_who_ask_at_the_same_time_share_one_question(names: Names, asked: Asked) -> None:
    waiting = [names.look_up(host) for host in ("a.test", "A.test", "a.test.")]
    assert asked.names == ["a.test"]
    asked.waiting[0].callback(FOUND)
    assert [now(each) for each in waiting] == [FOUND] * 3


def test_an_answer_is_kept_for_its_time(names: Names, asked: Asked) -> None:
    names.look_up("a.test")
    asked.waiting[0].callback(FOUND)
    asked.now = 299.0
    assert now(names.look_up("a.test")) == FOUND
    asked.now = 300.0
    assert not names.look_up("a.test").called
    assert asked.names == ["a.test", "a.test"]


def test_one_who_gives_up_takes_no_answer_from_the_others(names: Names, asked: Asked) -> None:
    first, second = names.look_up("a.test"), names.look_up("a.test")
    first.addErrback(lambda _: None)
    first.cancel()
    asked.waiting[0].callback(FOUND)
    assert now(second) == FOUND


def test_a_name_service_that_breaks_leaves_nobody_waiting(
    names: Names, asked: Asked, caplog: pytest.LogCaptureFixture
) -> None:
    answered = names.look_up("a.test")
    asked.waiting[0].errback(RuntimeError("broken"))
    assert now(answered) == UNANSWERED
    assert "a.test could not be looked up" in caplog.text
    assert not names.look_up("a.test").called


@pytest.mark.parametrize(
    ("host", "addresses"),
    [
        ("192.0.2.5", ("192.0.2.5",)),
        ("0x7f.1", ("127.0.0.1",)),
        ("::1", ("::1",)),
        ("localhost", ("127.0.0.1", "::1")),
        ("printer.localhost", ("127.0.0.1", "::1")),
        ("in.test", ("192.0.2.8", "::1")),
        ("OTHER.test.", ("192.0.2.8",)),
    ],
)
def test_addresses_this_machine_and_its_hosts_file_need_no_name_server(
    names: Names, asked: Asked, host: str, addresses: Sequence[str]
) -> None:
    assert now(names.look_up(host)).addresses == tuple(addresses)
    assert asked.names == []


def test_a_name_in_other_letters_is_asked_for_as_urls_write_it(names: Names, asked: Asked) -> None:
    names.look_up("bücher.test")
    names.look_up("xn--bcher-kva.test")
    assert asked.names == ["xn--bcher-kva.test"]


@pytest.mark.parametrize("name", ["intranet", "printer.local"])
def test_search_domains_and_multicast_names_are_the_systems_own(name: str) -> None:
    assert is_the_systems_own(name)
    assert not is_the_systems_own(f"{name}.test")


@pytest.mark.parametrize(
    ("error", "standing"),
    [
        (socket.gaierror(socket.EAI_NONAME, "no name"), Standing.MISSING),
        (socket.gaierror(socket.EAI_AGAIN, "later"), Standing.UNANSWERED),
        (OSError("no sockets left"), Standing.UNANSWERED),
        (UnicodeError("label too long"), Standing.UNANSWERED),
    ],
)
def test_what_the_system_says_when_it_has_no_address_is_told_apart(
    monkeypatch: pytest.MonkeyPatch, error: Exception, standing: Standing
) -> None:
    def getaddrinfo(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    assert names_module._system_answer("a.test").standing is standing


def test_the_system_tells_addresses_of_both_kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [(0, 0, 0, "", (address, 0)) for address in ("2001:db8::1", "192.0.2.1", "192.0.2.1")]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    assert names_module._system_answer("a.test").addresses == ("192.0.2.1", "2001:db8::1")


def at(*addresses: str) -> NameAnswer:
    return NameAnswer(Standing.FOUND, addresses, 300)


def test_private_addresses_among_public_ones_are_left_out() -> None:
    answer = at("10.0.0.1", "8.8.8.8", "::1", "2606:4700::1")
    assert usable("a.test", answer, private=False) == ("8.8.8.8", "2606:4700::1")
    assert usable("a.test", answer, private=True) == answer.addresses


def test_a_host_with_private_addresses_alone_is_refused() -> None:
    with pytest.raises(PrivateAddressError, match=r"a\.test is at 169\.254\.169\.254"):
        usable("a.test", at("169.254.169.254", "fd00:ec2::254"), private=False)


def test_an_address_counts_once_however_it_is_spelled() -> None:
    answer = at("8.8.8.8", "::ffff:808:808", "::ffff:8.8.8.8", "2606:4700:0::1", "2606:4700::1")
    assert usable("a.test", answer, private=False) == ("8.8.8.8", "2606:4700::1")


def test_an_address_where_nobody_answers_comes_last(names: Names, asked: Asked) -> None:
    names.look_up("a.test")
    asked.waiting[0].callback(at("192.0.2.1", "::ffff:192.0.2.2", "192.0.2.3"))
    names.pass_over("A.test", "192.0.2.1")
    names.pass_over("a.test", "192.0.2.2")
    names.pass_over("never-asked.test", "192.0.2.2")
    assert now(names.look_up("a.test")) == at("192.0.2.3", "192.0.2.1", "::ffff:192.0.2.2")


@pytest.mark.parametrize(
    ("answer", "error"), [(MISSING, NoSuchHostError), (UNANSWERED, UnansweredNameError)]
)
def test_a_name_that_does_not_exist_is_another_error_than_silence(
    answer: NameAnswer, error: type[Exception]
) -> None:
    with pytest.raises(error, match=r"a\.test"):
        usable("a.test", answer, private=True)
