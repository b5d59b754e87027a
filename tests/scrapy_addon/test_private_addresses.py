"""No connection to a private address, whatever pages and spiders try."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.support.crawling import Finished, command, finish, write_topic
from tests.support.forked import ForkedCommand
from tests.support.name_server import NameServer, Says, Zone, at, serve_names
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
    **{f"{name}.test": at(PUBLIC) for name in ("good", "moved", "robots", "canonical", "refresh")},
    "private.test": at(PRIVATE),
    "alias.test": Says((PRIVATE,), alias="private.test"),
    "both.test": at(PRIVATE, PUBLIC),
    "rebinding.test": [at(PUBLIC, ttl_s=0), at(PRIVATE, ttl_s=0)],
}


@dataclass
class Site:
    """``log`` holds (address, host, path) of each request."""

    port: int = 0
    pages: dict[str, tuple[int, dict[str, str], bytes]] = field(default_factory=dict)
    log: list[tuple[str, str, str]] = field(default_factory=list)

    def url(self, host: str, path: str = "/") -> str:
        return f"http://{host}:{self.port}{path}"

    def says(self, url: str, body: bytes = b"", status: int = 200, **headers: str) -> str:
        self.pages[url] = status, headers, body
        return url

    def asked(self, host: str) -> list[str]:
        return [path for _, name, path in self.log if name == f"{host}:{self.port}"]


@pytest.fixture
def site() -> Iterator[Site]:
    found = Site()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            host = self.headers["Host"]
            found.log.append((self.request.getsockname()[0], host, self.path))
            page = found.pages.get(f"http://{host}{self.path}", (404, {}, b""))
            status, headers, body = page
            self.send_response(status)
            for name, value in {"Content-Type": "text/html", **headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("0.0.0.0", 0), Handler)
    found.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield found
    server.shutdown()
    thread.join()
    server.server_close()


def crawl_live(topic: Path, names: NameServer, **settings: object) -> Finished:
    options = {"FOCUSED_DNS_SERVERS": names.address, "DNS_TIMEOUT": 60, **settings}
    _, _, _, *arguments = command(topic, "", **options)
    return finish(ForkedCommand(["-c", LOOPBACK_IS_PUBLIC, *arguments]), topic)


def crawl_from(
    site: Site, folder: Path, *links: str, politeness: str = "", **settings: object
) -> Finished:
    """Crawl a page with these links; nothing may have come in at the private address."""
    seed = site.says(site.url("good.test"), html("whale", *links))
    with serve_names(ZONE) as names:
        done = crawl_live(write_topic(folder, seed, politeness=politeness), names, **settings)
    assert done.status == 0, done.output
    assert [entry for entry in site.log if entry[0] != PUBLIC] == []
    assert seed in done.fetched()
    return done


def stats(done: Finished) -> dict:
    return json.loads((done.folder / "stats.json").read_text())


@pytest.mark.parametrize("host", ["127.0.0.2", "0x7f.0.0.2", "2130706434", "[::ffff:127.0.0.2]"])
def test_a_link_to_a_private_address_is_out_of_scope(site: Site, tmp_path: Path, host: str) -> None:
    done = crawl_from(site, tmp_path, site.url(host))
    assert stats(done)["out_of_scope"] == {"private address": 1}
    assert len(done.pages) == 1


@pytest.mark.parametrize("host", ["private.test", "alias.test"])
def test_a_name_that_leads_to_a_private_address_is_given_up(
    site: Site, tmp_path: Path, host: str
) -> None:
    done = crawl_from(site, tmp_path, *(site.url(host, f"/{n}") for n in range(3)))
    assert stats(done)["failures"] == {"private-address": 3}
    assert stats(done)["retries"] == 0


def test_a_host_with_a_public_address_too_is_asked_there(site: Site, tmp_path: Path) -> None:
    both = site.says(site.url("both.test"), html("whale both"))
    assert both in crawl_from(site, tmp_path, both).fetched()


def test_a_name_that_turns_private_between_look_up_and_connection_wins_nothing(
    site: Site, tmp_path: Path
) -> None:
    done = crawl_from(site, tmp_path, site.url("rebinding.test", "/1"))
    assert site.asked("rebinding.test") == ["/robots.txt"]
    assert stats(done)["failures"] == {"private-address": 1}


@pytest.mark.parametrize("target", ["http://127.0.0.2:{port}/", "http://private.test:{port}/"])
def test_a_redirect_leads_to_no_private_address(site: Site, tmp_path: Path, target: str) -> None:
    location = target.format(port=site.port)
    moved = site.says(site.url("moved.test"), status=302, Location=location)
    done = crawl_from(site, tmp_path, moved)
    assert done.pages.loc[moved, "outcome"] == "redirected"


def test_a_robots_txt_that_moves_to_a_private_address_shuts_its_host(
    site: Site, tmp_path: Path
) -> None:
    robots = site.url("robots.test", "/robots.txt")
    site.says(robots, status=301, Location=site.url("private.test", "/robots.txt"))
    page = site.says(site.url("robots.test", "/page"), html("whale"))
    once = "suspend_s = 0\nmax_tries = 1"
    done = crawl_from(site, tmp_path, page, politeness=once)
    assert site.asked("robots.test") == ["/robots.txt"]
    assert done.pages.loc[page, "failure"] == "connect"


@pytest.mark.parametrize("head", ["<meta http-equiv=refresh content='0; url={}'>"])
@pytest.mark.parametrize("host", ["127.0.0.2", "private.test"])
def test_a_refresh_leads_to_no_private_address(
    site: Site, tmp_path: Path, head: str, host: str
) -> None:
    body = f"<html><head>{head.format(site.url(host))}</head><body>whale".encode()
    crawl_from(site, tmp_path, site.says(site.url("refresh.test"), body))


@pytest.mark.parametrize("scheme", ["file:///etc/hostname", "ftp://good.test/", "data:text/html,x"])
@pytest.mark.parametrize("door", ["link", "redirect", "refresh"])
def test_other_schemes_enter_by_no_door(site: Site, tmp_path: Path, scheme: str, door: str) -> None:
    url = site.url("moved.test")
    if door == "redirect":
        site.says(url, status=302, Location=scheme)
    elif door == "refresh":
        site.says(url, f"<meta http-equiv=refresh content='0; url={scheme}'>whale".encode())
    done = crawl_from(site, tmp_path, scheme if door == "link" else url)
    assert all(each.startswith("http://") for each in done.pages["url"])


@pytest.mark.parametrize(
    ("robots", "error"), [("true", "RobotsDeniedError"), ("false", "PrivateAddressError")]
)
def test_what_is_downloaded_past_the_frontier_meets_the_same_check(
    site: Site, tmp_path: Path, robots: str, error: str
) -> None:
    good = site.says(site.url("good.test", "/image"), b"x")
    refused = [site.url("private.test"), site.url("127.0.0.2"), site.url("0x7f.0.0.2")]
    extension = "tests.support.own_downloads.OwnDownloads"
    came = tmp_path / "came.json"
    crawl_from(
        site,
        tmp_path,
        politeness=f"robots = {robots}",
        EXTENSIONS=json.dumps({extension: 1}),
        OWN_DOWNLOADS=",".join([good, *refused, "file:///etc/hostname"]),
        OWN_DOWNLOADS_FILE=came,
    )
    loaded = json.loads(came.read_text())
    assert loaded.pop(good) == "200"
    # The host's robots.txt is asked for first, and meets it, too.
    assert loaded == dict.fromkeys(refused, error) | {"file:///etc/hostname": "IgnoreRequest"}


def test_a_topic_may_let_private_addresses_in(site: Site, tmp_path: Path) -> None:
    literal = site.says(site.url(PRIVATE), html("whale"))
    seed = site.says(site.url("private.test"), html("whale", literal))
    topic = write_topic(tmp_path, seed, scope="private_addresses = true")
    with serve_names(ZONE) as names:
        done = crawl_live(topic, names)
    assert set(done.fetched()) == {seed, literal}


def test_the_host_name_is_requested_once_though_many_pages_are(site: Site, tmp_path: Path) -> None:
    pages = [site.says(site.url("good.test", f"/{n}"), html(f"whale {n}")) for n in range(5)]
    seed = site.says(site.url("good.test"), html("whale", *pages))
    with serve_names(ZONE) as names:
        done = crawl_live(write_topic(tmp_path, seed), names)
    assert len(done.fetched()) == 6
    assert sorted(names.asked) == [("good.test", "A"), ("good.test", "AAAA")]
