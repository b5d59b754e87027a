"""No connection to a private address, whatever pages and spiders try."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.crawling import Finished, command, finish, write_topic
from tests.support.forked import ForkedCommand
from tests.support.hostile_hosts import Behaviour, HostileHosts, pages, serve_hosts
from tests.support.name_server import NameServer, Zone, at, serve_names
from tests.support.own_downloads import own_downloads
from tests.support.recorded_web import html

LOOPBACK_IS_PUBLIC = """
from ipaddress import IPv4Network
from focused.scrapy_addon import name_resolver
from focused.web import host_names
host_names._PRIVATE_V4 = (IPv4Network("127.0.0.2"),)
name_resolver.MIN_TTL_S = 0.0  # what may change with each question does
from scrapy.cmdline import execute
execute()
"""
PUBLIC, PRIVATE = "127.0.0.1", "127.0.0.2"
ZONE: Zone = {
    **{f"{name}.test": at(PUBLIC) for name in ("good", "robots")},
    "private.test": at(PRIVATE),
    "both.test": at(PRIVATE, PUBLIC),
}
GOOD = "good.test"


def crawl_from(
    folder: Path, served: HostileHosts, *, politeness: str = "", **settings: object
) -> tuple[Finished, NameServer]:
    """Crawl from the good host; nothing may have come in at the private address."""
    seed = served.url(GOOD)
    topic = write_topic(folder, seed, politeness=politeness)
    with serve_names(ZONE) as names:
        options = {"FOCUSED_DNS_SERVERS": names.address, "DNS_TIMEOUT": 60, **settings}
        _, _, _, *arguments = command(topic, "", **options)
        done = finish(ForkedCommand(["-c", LOOPBACK_IS_PUBLIC, *arguments]), topic)
    assert done.status == 0, done.output
    assert {access.address for access in served.accesses} == {PUBLIC}
    assert seed in done.fetched()
    return done, names


def good(*links: str, **more: bytes) -> Behaviour:
    """A host whose front page has these links."""
    others = {f"/{name}": (200, body, {}) for name, body in more.items()}
    return pages({"/": (200, html("whale", *links), {}), **others})


def test_a_host_with_a_public_address_too_is_asked_there(tmp_path: Path) -> None:
    def web(port: int) -> dict[str, Behaviour]:
        return {GOOD: good(f"http://both.test:{port}/"), "both.test": good()}

    with serve_hosts(web) as served:
        done, _ = crawl_from(tmp_path, served)
    assert served.url("both.test") in done.fetched()


def test_a_robots_txt_that_moves_to_a_private_address_shuts_its_host(tmp_path: Path) -> None:
    def web(port: int) -> dict[str, Behaviour]:
        moves = {"Location": f"http://private.test:{port}/robots.txt"}
        robots = pages({"/robots.txt": (301, "", moves), "/page": (200, html("whale"), {})})
        return {GOOD: good(f"http://robots.test:{port}/page"), "robots.test": robots}

    with serve_hosts(web) as served:
        done, _ = crawl_from(tmp_path, served, politeness="suspend_s = 0\nmax_tries = 1")
    assert [each.path for each in served.accesses if each.host == "robots.test"] == ["/robots.txt"]
    assert done.pages.loc[served.url("robots.test", "/page"), "failure"] == "connect"


@pytest.mark.parametrize(
    ("robots", "error"), [("true", "RobotsDeniedError"), ("false", "PrivateAddressError")]
)
def test_what_is_downloaded_past_the_frontier_meets_the_same_check(
    tmp_path: Path, robots: str, error: str
) -> None:
    came = tmp_path / "came.json"
    with serve_hosts(lambda _: {GOOD: good(image=b"x")}) as served:
        image = served.url(GOOD, "/image")
        refused = [served.url(host) for host in ("private.test", "127.0.0.2", "0x7f.0.0.2")]
        crawl_from(
            tmp_path,
            served,
            politeness=f"robots = {robots}",
            **own_downloads(came, image, *refused, "file:///etc/hostname"),
        )
    loaded = json.loads(came.read_text())
    assert loaded.pop(image) == "200"
    # The host's robots.txt is asked for first, and meets it, too.
    assert loaded == dict.fromkeys(refused, error) | {"file:///etc/hostname": "IgnoreRequest"}


def test_the_host_name_is_requested_once_though_many_pages_are(tmp_path: Path) -> None:
    paths = [f"/{n}" for n in range(5)]
    others = {str(n): html(f"whale {n}") for n in range(5)}
    with serve_hosts(lambda _: {GOOD: good(*paths, **others)}) as served:
        done, names = crawl_from(tmp_path, served)
    assert len(done.fetched()) == 6
    assert sorted(names.asked) == [(GOOD, "A"), (GOOD, "AAAA")]
