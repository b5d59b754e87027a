"""The replay server over real HTTP on loopback."""

import asyncio
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest
from yarl import URL

from focused.errors import RecordedWebError
from focused.recorded_web import FAULT_HEADER, SCHEME_HEADER, UNKNOWN_HOST
from focused_lab.recorded_web.replay_faults import FaultPlan, parse_fault
from focused_lab.recorded_web.replay_server import ReplayServer
from tests.support.recorded_web import MemoryWeb, Served, answer, html, page, redirect, served

A = "http://a.example/"
BIG = html("big", text="x" * 4000)
WEB = MemoryWeb(
    page(A, html("plain a", "/next")),
    page("https://a.example/", html("secure a")),
    page("https://b.example:8443/p?q=1&r=%C3%A9", html("b")),
    page("http://a.example/big", BIG),
    redirect("http://a.example/old", "https://b.example:8443/p?q=1&r=%C3%A9"),
    answer("http://a.example/bare", 200, b"<p>no type"),
    page("http://a.example/robots.txt", "User-agent: *\nDisallow: /x\n", content_type="text/plain"),
    answer(
        "http://a.example/hops",
        200,
        b"decoded when kept",
        content_encoding="gzip",
        content_length="3",
        transfer_encoding="chunked",
        connection="x-hop, close",
        x_hop="1",
        x_kept="2",
    ),
    answer("http://a.example/controls", 200, "page", x_odd="a\x00b\x0bc"),
    answer("http://a.example/gone", 410, "gone", content_type="text/plain"),
)


@pytest.fixture(scope="module")
def site() -> Iterator[Served]:
    """The web, served without faults; other tests ask it, too."""
    with served(WEB) as found:
        yield found


@dataclass(frozen=True)
class Got:
    status: int
    headers: dict[str, str]
    body: bytes


async def ask(
    site: Served, url: str, method: str = "GET", headers: dict[str, str] | None = None
) -> Got:
    """Ask for a URL as the crawl does: scheme and host in headers, the rest in the line."""
    scheme, _, rest = url.partition("://")
    host, _, path = rest.partition("/")
    meant = {"Host": host, SCHEME_HEADER: scheme, **(headers or {})}
    timeout = aiohttp.ClientTimeout(total=20)
    async with aiohttp.ClientSession(timeout=timeout) as session:
        target = URL(f"http://{site.address}/{path}", encoded=True)
        async with session.request(
            method, target, headers=meant, allow_redirects=False
        ) as response:
            return Got(response.status, dict(response.headers), await response.read())


def asking(site: Served, url: str, method: str = "GET") -> Got:
    return asyncio.run(ask(site, url, method))


def raw(site: Served, request: bytes) -> bytes:
    """Send bytes, return all that comes until the server hangs up."""
    host, port = site.address.split(":")
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        connection.sendall(request)
        return b"".join(iter(lambda: connection.recv(65536), b""))


def plan(*texts: str, seed: int = 0) -> FaultPlan:
    return FaultPlan(tuple(parse_fault(text) for text in texts), seed)


def test_a_recorded_page_comes_with_its_status_type_and_body(site):
    got = asking(site, A)
    assert (got.status, got.body) == (200, html("plain a", "/next"))
    assert got.headers["Content-Type"] == "text/html; charset=utf-8"
    assert got.headers["Content-Length"] == str(len(got.body))


def test_the_scheme_header_chooses_between_http_and_https(site):
    assert asking(site, "https://a.example/").body == html("secure a")


def test_without_a_scheme_header_http_is_meant(site):
    got = raw(site, b"GET / HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n")
    assert got.endswith(html("plain a", "/next"))


def test_port_query_and_escapes_of_a_url_reach_the_web_as_they_are(site):
    assert asking(site, "https://b.example:8443/p?q=1&r=%C3%A9").body == html("b")


@pytest.mark.parametrize("host", ["A.Example", "a.example:80"])
def test_other_spellings_of_a_host_are_the_same_host(site, host):
    assert asking(site, f"http://{host}/").status == 200


def test_the_other_schemes_port_is_another_host(site):
    assert asking(site, "https://a.example:80/").headers[FAULT_HEADER] == UNKNOWN_HOST


def test_an_absolute_request_uri_is_answered_as_by_a_proxy(site):
    got = raw(
        site, b"GET https://a.example/ HTTP/1.1\r\nHost: other.example\r\nConnection: close\r\n\r\n"
    )
    assert got.endswith(html("secure a"))


def test_an_unknown_page_of_a_known_host_is_a_404(site):
    got = asking(site, "http://a.example/nowhere")
    assert got.status == 404
    assert FAULT_HEADER not in got.headers


def test_an_unknown_host_is_marked_as_such_and_has_no_body(site):
    got = asking(site, "http://nowhere.example/")
    assert (got.status, got.headers[FAULT_HEADER], got.body) == (502, UNKNOWN_HOST, b"")


def test_recorded_redirects_and_errors_come_as_recorded(site):
    old, gone = asking(site, "http://a.example/old"), asking(site, "http://a.example/gone")
    assert (old.status, old.headers["Location"]) == (301, "https://b.example:8443/p?q=1&r=%C3%A9")
    assert (gone.status, gone.body) == (410, b"gone")


def test_robots_txt_is_a_page_like_any_other(site):
    assert asking(site, "http://a.example/robots.txt").body.startswith(b"User-agent")
    assert asking(site, "https://b.example:8443/robots.txt").status == 404


def test_head_gives_the_headers_of_get_and_no_body(site):
    got = asking(site, "http://a.example/big", "HEAD")
    assert (got.status, got.body) == (200, b"")
    assert got.headers["Content-Length"] == str(len(BIG))


def test_a_recorded_web_cannot_be_written_to(site):
    got = asking(site, A, "POST")
    assert (got.status, got.headers["Allow"]) == (405, "GET, HEAD")


def test_headers_of_the_recorded_connection_and_coding_are_not_passed_on(site):
    got = asking(site, "http://a.example/hops")
    assert got.body == b"decoded when kept"
    assert got.headers["x-kept"] == "2"
    assert not {"x-hop", "content-encoding", "transfer-encoding"} & {
        name.lower() for name in got.headers
    }


def test_control_characters_of_a_recorded_header_become_spaces(site):
    got = asking(site, "http://a.example/controls")
    assert (got.status, got.headers["x-odd"]) == (200, "a b c")


def test_a_page_recorded_without_a_type_gets_none_made_up(site):
    assert asking(site, "http://a.example/bare").headers["Content-Type"] == ""


def test_the_access_log_tells_who_requested_what_and_when():
    with served(WEB) as site:
        asyncio.run(ask(site, "https://a.example/", headers={"User-Agent": "tester/1"}))
        asking(site, "http://nowhere.example/x")
    first, second = site.accesses
    assert (first.scheme, first.host, first.path, first.status) == ("https", "a.example", "/", 200)
    assert first.user_agent == "tester/1"
    assert first.start <= first.end <= second.start <= second.end
    assert (second.host, second.status) == ("nowhere.example", 502)


def test_a_port_in_use_is_an_error_that_names_it():
    async def start_twice(port: int) -> None:
        await ReplayServer(WEB, clock=lambda: 0.0).start(port=port)

    with served(WEB) as site:
        port = site.address.split(":")[1]
        with pytest.raises(RecordedWebError, match=port):
            asyncio.run(start_twice(int(port)))


def test_a_record_that_cannot_be_read_is_a_500_and_not_the_end():
    class Damaged(MemoryWeb):
        def get(self, url: str) -> Any:
            if url.endswith("/big"):
                raise RecordedWebError("no readable record at byte 7")
            return super().get(url)

    with served(Damaged(page(A, html("plain a")))) as site:
        got = asking(site, "http://a.example/big")
        assert (got.status, got.body) == (500, b"no readable record at byte 7\n")
        assert asking(site, A).status == 200


def test_a_status_fault_replaces_the_page():
    with served(WEB, plan("a.example:kind=503")) as site:
        got = asking(site, A)
        assert got.status == 503
        assert "Retry-After" not in got.headers
        assert asking(site, "https://b.example:8443/p?q=1&r=%C3%A9").status == 200


def test_a_429_can_say_when_to_come_again():
    with served(WEB, plan("*:kind=429,retry_after_s=7,attempts=1")) as site:
        first, second = asking(site, A), asking(site, A)
    assert (first.status, first.headers["Retry-After"], second.status) == (429, "7", 200)


def test_a_connection_dropped_in_the_headers_gives_no_response():
    with served(WEB, plan("*:kind=drop-headers")) as site:
        with pytest.raises(aiohttp.ClientConnectionError):
            asking(site, A)
        got = raw(site, b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n")
    assert got.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"\r\n\r\n" not in got
    assert {access.status for access in site.accesses} == {0}


def test_a_connection_dropped_in_the_body_gives_half_of_it():
    with served(WEB, plan("*:kind=drop-body")) as site:
        with pytest.raises(aiohttp.ClientPayloadError):
            asking(site, "http://a.example/big")
        got = raw(site, b"GET /big HTTP/1.1\r\nHost: a.example\r\n\r\n")
    head, _, body = got.partition(b"\r\n\r\n")
    assert f"content-length: {len(BIG)}" in head.decode().lower()
    assert body == BIG[: len(BIG) // 2]


def test_the_server_lives_on_after_dropped_connections():
    faults = plan("*:kind=drop-body,attempts=1", "*:kind=drop-headers,attempts=2")
    with served(WEB, faults) as site:
        for _ in range(2):
            raw(site, b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n")
        assert asking(site, A).status == 200
    assert [access.fault for access in site.accesses] == ["drop-body", "drop-headers", ""]


def test_a_slow_body_takes_at_least_its_time_and_comes_whole():
    speed = len(BIG) / 0.4
    with served(WEB, plan(f"*:kind=slow,bytes_per_s={speed}")) as site:
        got = asking(site, "http://a.example/big")
    (access,) = site.accesses
    assert got.body == BIG
    assert access.end - access.start >= 0.4 - 1e-3


def test_latency_comes_before_the_answer():
    with served(WEB, plan("*:kind=latency,latency_s=0.2", "*:kind=503")) as site:
        got = asking(site, A)
    (access,) = site.accesses
    assert got.status == 503
    assert access.end - access.start >= 0.2 - 1e-3


def test_latency_of_one_host_does_not_hold_up_another():
    async def both(site: Served) -> None:
        await asyncio.gather(ask(site, A), ask(site, "https://b.example:8443/"))

    with served(WEB, plan("a.example:kind=latency,latency_s=1")) as site:
        asyncio.run(both(site))
    assert [access.host for access in site.accesses] == ["b.example:8443", "a.example"]


def test_an_unknown_host_suffers_no_faults():
    with served(WEB, plan("*:kind=503")) as site:
        assert asking(site, "http://nowhere.example/").headers[FAULT_HEADER] == UNKNOWN_HOST


def test_head_with_a_body_fault_is_answered_at_once():
    with served(WEB, plan("*:kind=drop-body", "*:kind=slow,bytes_per_s=1")) as site:
        assert asking(site, "http://a.example/big", "HEAD").status == 200
