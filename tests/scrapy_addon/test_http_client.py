"""The crawl's HTTP client against loopback servers with exact responses."""

from __future__ import annotations

import asyncio
import fcntl
import os
import resource
import sys
import termios
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any
from unittest.mock import Mock

import pytest
from scrapy import Request
from scrapy.exceptions import DownloadCancelledError, DownloadTimeoutError
from scrapy.http import Response
from scrapy.utils.test import get_crawler

from focused.scrapy_addon.download_handlers import FocusedDownloadHandler, TransferOptions
from focused.scrapy_addon.http_client import MAX_HEAD_BYTES, MAX_IDLE, IdleConnections, max_idle
from focused.scrapy_addon.outcomes import failure_kind_of
from focused.scrapy_addon.request_state import META_KEY, RequestState
from focused.web.page import FailureKind
from tests.support.crawling import start, write_topic
from tests.support.forked import ForkedCommand
from tests.support.hostile_hosts import pages, serve_hosts
from tests.support.name_server import at, serve_names
from tests.support.recorded_web import html

OK = b"HTTP/1.1 200 OK\r\n"
PLAIN = OK + b"Content-Type: text/html\r\nContent-Length: 6\r\n\r\nwhales"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n6\r\nwhales\r\n0\r\n\r\n"
INTERIM = b"HTTP/1.1 100 Continue\r\n\r\n"


class Server:
    """A loopback server that answers each request with the next of ``answers`` (the last stays)."""

    def __init__(self, *answers: bytes, closes: bool = False) -> None:
        self._answers = list(answers)
        self._closes = closes
        self.requests: list[bytes] = []
        self.connections = 0
        self.writers: list[asyncio.StreamWriter] = []

    async def __aenter__(self) -> Server:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for writer in self.writers:
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.writers.append(writer)
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                self.requests.append(await reader.readuntil(b"\r\n\r\n"))
                answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
                writer.write(answer)
                await writer.drain()
                if self._closes:
                    writer.close()


Fetch = Callable[..., Awaitable[Response]]


def with_handler(server: Server, test: Callable[[Fetch], Awaitable[Any]], **options: Any) -> Any:
    """Let ``test`` fetch from the server by the crawl's download handler."""

    async def run() -> Any:
        handler = FocusedDownloadHandler(get_crawler(), TransferOptions(**options))

        async def fetch(
            host: str = "a.test", path: str = "/", port: int | None = None, **meta: Any
        ) -> Response:
            limits = {"download_timeout": 20.0, "download_maxsize": 1_000_000, **meta}
            state = RequestState(checked_address="127.0.0.1")
            url = f"http://{host}:{port or server.port}{path}"
            return await handler.download_request(Request(url, meta={META_KEY: state, **limits}))

        async with server:
            try:
                return await test(fetch)
            finally:
                await handler.close()

    return asyncio.run(run())


def fetched(raw: bytes, *, closes: bool = False, **meta: Any) -> Response:
    return with_handler(Server(raw, closes=closes), lambda fetch: fetch(**meta))


def failure(raw: bytes, *, closes: bool = False, **given: Any) -> FailureKind:
    with pytest.raises(Exception) as raised:  # noqa: PT011  # its kind is what is tested
        fetched(raw, closes=closes, **given)
    return failure_kind_of(raised.value)


def test_an_answer_has_its_status_headers_and_body_as_they_came():
    raw = OK + b"X-A: 1\r\nContent-Length: 6\r\nx-a:  2 \r\nContent-Encoding: gzip\r\n\r\nwhales"
    answer = fetched(raw)
    assert (answer.status, answer.body, answer.flags) == (200, b"whales", [])
    assert answer.headers.getlist("x-a") == [b"1", b"2"]
    assert answer.headers["content-encoding"] == b"gzip"


def test_the_request_names_the_host_of_its_url_and_has_no_headers_of_its_own():
    server = Server(PLAIN)
    with_handler(server, lambda fetch: fetch("a.test", "/x?q=%7e&b;c"))
    lines = server.requests[0].split(b"\r\n")
    assert lines == [b"GET /x?q=%7e&b;c HTTP/1.1", b"Host: a.test:%d" % server.port, b"", b""]


@pytest.mark.parametrize(
    ("raw", "closes"),
    [
        (CHUNKED, False),
        (INTERIM + PLAIN, False),
        (INTERIM * 3 + CHUNKED, False),
        (b"HTTP/1.0 200 OK\r\n\r\nwhales", True),
        (OK + b"\r\nwhales", True),
        (PLAIN.replace(b"\r\n", b"\n"), False),
    ],
)
def test_servers_may_frame_a_body_as_they_like(raw, closes):
    assert fetched(raw, closes=closes).body == b"whales"


@pytest.mark.parametrize(
    "raw",
    [
        b"whales\r\n\r\n",
        OK + b"Content-Length: 6\r\nContent-Length: 7\r\n\r\nwhales!",
        OK + b"Content-Length: -6\r\n\r\nwhales",
        OK + b"X-Odd: a\x00b\r\nContent-Length: 6\r\n\r\nwhales",
        OK + b"X-Long: " + b"x" * 40_000,
        OK + b"Transfer-Encoding: gzip\r\n\r\n<p>x",
        PLAIN[:30],
        PLAIN[:-2],
        CHUNKED[:-9],
        OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nwhales",
        b"",
    ],
)
def test_an_answer_that_breaks_off_or_is_not_a_http_is_a_reset(raw):
    assert failure(raw, closes=True) is FailureKind.RESET


def test_a_port_where_nobody_listens_refuses_the_connection():
    async def test(fetch: Fetch) -> None:
        with pytest.raises(Exception) as raised:  # noqa: PT011  # its kind is what is tested
            await fetch(port=1)
        assert failure_kind_of(raised.value) is FailureKind.CONNECT

    with_handler(Server(PLAIN), test)


@pytest.mark.parametrize("raw", [PLAIN, CHUNKED])
def test_a_body_beyond_the_limit_is_too_large(raw):
    assert failure(raw, download_maxsize=5) is FailureKind.TOO_LARGE
    assert fetched(raw, download_maxsize=6).body == b"whales"


@pytest.mark.parametrize("raw", [b"", OK, PLAIN[:-1]])
def test_the_time_counts_to_the_last_byte(raw):
    with pytest.raises(DownloadTimeoutError, match=r"a\.test.* took longer than 0\.2 seconds"):
        fetched(raw, download_timeout=0.2)


# -- heads


LINE = b"X-More: " + b"x" * 990 + b"\r\n"


@pytest.mark.parametrize("piece", [LINE, INTERIM * 40])
def test_a_head_without_end_is_too_large(piece):
    start = OK if piece is LINE else b""
    assert failure(start + piece * (MAX_HEAD_BYTES // len(piece) + 300)) is FailureKind.TOO_LARGE


def test_a_long_head_below_the_bound_is_an_answer_on_each_request_of_a_connection():
    head = OK + LINE * (MAX_HEAD_BYTES // 2_000)
    server = Server(head + b"Content-Length: 6\r\n\r\nwhales")

    async def test(fetch: Fetch) -> None:
        for _ in range(3):
            assert (await fetch()).body == b"whales"

    with_handler(server, test)
    assert server.connections == 1


def test_a_long_body_that_comes_with_the_end_of_its_head_is_not_counted_as_head():
    raw = OK + LINE * 200 + b"Content-Length: 600000\r\n\r\n" + b"w" * 600_000
    assert len(fetched(raw).body) == 600_000


# -- connections


def test_requests_leave_for_the_checked_address_whatever_the_name_resolves_to():
    server = Server(PLAIN)
    with_handler(server, lambda fetch: fetch("this-name-does-not-exist.invalid"))
    assert b"Host: this-name-does-not-exist.invalid" in server.requests[0]


def test_the_next_request_to_a_host_leaves_over_the_same_connection():
    server = Server(PLAIN)

    async def test(fetch: Fetch) -> None:
        for path in ("/1", "/2", "/3"):
            await fetch(path=path)

    with_handler(server, test)
    assert (len(server.requests), server.connections) == (3, 1)


@pytest.mark.parametrize("says", [b"", b"HTTP/1.1 408 Request Timeout\r\n\r\n"])
def test_a_connection_that_the_server_ended_is_not_used_again(says):
    server = Server(PLAIN)

    async def test(fetch: Fetch) -> None:
        await fetch()
        server.writers[0].write(says)
        server.writers[0].close()
        await server.writers[0].wait_closed()
        assert (await fetch()).body == b"whales"

    with_handler(server, test)
    assert server.connections == 2


FORGED = PLAIN.replace(b"whales", b"forged")
WITHOUT_BODY = b"HTTP/1.1 204 No Content\r\n\r\n"


@pytest.mark.parametrize(
    ("raw", "body"),
    [
        (PLAIN + FORGED, b"whales"),
        (PLAIN + b"more", b"whales"),
        (PLAIN + b"\x00\r\n\r\n", b"whales"),
        (PLAIN + b" <!-- longer than it said -->" + FORGED, b"whales"),
        # The next answer would become the end of the forged one's body.
        (PLAIN + OK + b"Content-Length: 100000\r\n\r\nforged", b"whales"),
        (WITHOUT_BODY + FORGED, b""),
    ],
)
def test_what_comes_beyond_an_answer_is_nobodys_answer(raw, body):
    server = Server(raw, PLAIN)

    async def test(fetch: Fetch) -> None:
        assert (await fetch(path="/1")).body == body
        assert (await fetch(path="/2")).body == b"whales"

    with_handler(server, test)


def bytes_not_received(writer: asyncio.StreamWriter) -> int:
    """How much of what was written the client's system has not acknowledged."""
    queue = fcntl.ioctl(writer.get_extra_info("socket").fileno(), termios.TIOCOUTQ, bytes(4))
    return int.from_bytes(queue, sys.byteorder)


def test_an_answer_that_nobody_asked_for_is_nobodys_answer():
    server = Server(PLAIN)

    async def test(fetch: Fetch) -> None:
        assert (await fetch()).body == b"whales"
        server.writers[0].write(FORGED)
        while bytes_not_received(server.writers[0]):
            await asyncio.sleep(0)
        assert (await fetch()).body == b"whales"

    with_handler(server, test)


def test_the_end_of_an_answer_with_both_a_length_and_chunks_is_that_of_one_of_them():
    """By the chunks the body ends early, by the length the forged answer is a part of it."""
    head = OK + b"Content-Length: 100\r\n"
    server = Server(head + CHUNKED.removeprefix(OK) + FORGED, PLAIN)

    async def test(fetch: Fetch) -> None:
        with suppress(Exception):
            assert (await fetch(path="/1", download_timeout=0.2)).body == b"whales"
        assert (await fetch(path="/2")).body == b"whales"

    with_handler(server, test)


def test_no_request_is_repeated_when_a_kept_connection_breaks():
    server = Server(PLAIN, b"HTTP/1.1 200", closes=False)

    async def test(fetch: Fetch) -> None:
        await fetch()
        answer = asyncio.ensure_future(fetch(path="/2"))
        while len(server.requests) < 2:
            await asyncio.sleep(0)
        server.writers[0].close()
        with pytest.raises(Exception) as raised:  # noqa: PT011  # its kind is what is tested
            await answer
        assert failure_kind_of(raised.value) is FailureKind.RESET

    with_handler(server, test)
    assert len(server.requests) == 2


@pytest.mark.parametrize(("one_per_address", "connections"), [(False, 2), (True, 3)])
def test_one_connection_idles_at_an_address_where_the_topic_says_so(one_per_address, connections):
    server = Server(PLAIN)

    async def test(fetch: Fetch) -> None:
        for host in ("a.test", "b.test", "a.test"):
            await fetch(host)

    with_handler(server, test, one_per_address=one_per_address)
    assert server.connections == connections


def test_a_body_that_is_too_large_leaves_no_connection_open():
    server = Server(OK + b"Content-Length: 900000\r\n\r\nwhales", PLAIN)

    async def test(fetch: Fetch) -> None:
        with pytest.raises(DownloadCancelledError):
            await fetch(download_maxsize=3)
        await fetch()

    with_handler(server, test)
    assert server.connections == 2


class FakeTransport(Mock):
    """An open connection that its server has not ended."""

    def __init__(self) -> None:
        super().__init__()
        self.closed = False
        self.is_closing = lambda: self.closed
        self.get_extra_info = lambda name: object() if name == "ssl_object" else None

    def close(self) -> None:
        self.closed = True

    def _get_child_mock(self, **given: Any) -> Mock:
        return Mock(**given)


def idling(idle: IdleConnections, *places: Sequence[str]) -> list[FakeTransport]:
    transports = [FakeTransport() for _ in places]
    for (host, address), transport in zip(places, transports, strict=True):
        idle.add(host, address, transport)
    return transports


def test_a_host_is_asked_over_no_connection_to_another_of_its_addresses():
    idle = IdleConnections(max_idle=10)
    there, elsewhere, other = idling(
        idle, ("a.test", "192.0.2.1"), ("a.test", "192.0.2.2"), ("b.test", "192.0.2.2")
    )
    assert idle.prepare("a.test", "192.0.2.1")
    assert (there.closed, elsewhere.closed, other.closed) == (False, True, False)


def test_the_connections_that_idle_longest_are_closed_where_there_are_too_many():
    idle = IdleConnections(max_idle=10)
    transports = idling(idle, *((f"{n}.test", "192.0.2.1") for n in range(40)))
    assert [each for each in transports if not each.closed] == transports[-10:]
    assert len(idle) == 10


@pytest.mark.parametrize(
    ("may_open", "most"),
    [(256, 48), (1024, 432), (500_000, MAX_IDLE), (resource.RLIM_INFINITY, MAX_IDLE)],
)
def test_half_of_the_files_that_may_be_open_are_left_to_others(may_open, most):
    assert max_idle(32, may_open) == most


HOSTS = [f"h{number}.test" for number in range(250)]


def most_files_open(crawl: ForkedCommand) -> int:
    """How many files the process had open at most, until its end."""
    most = 0
    while crawl.poll() is None:
        with suppress(FileNotFoundError):
            most = max(most, len(os.listdir(f"/proc/{crawl.pid}/fd")))
        time.sleep(0.02)
    return most


def test_a_crawl_of_many_hosts_keeps_few_connections_open(tmp_path):
    page = (200, html("Whales"), {})
    zone = {host: at(f"127.4.0.{number + 1}") for number, host in enumerate(HOSTS)}
    with (
        serve_hosts(lambda _: {host: pages({"/": page}) for host in HOSTS}) as hosts,
        serve_names(zone) as names,
    ):
        topic = write_topic(
            tmp_path, *map(hosts.url, HOSTS), scope="private_addresses = true\ntraps = false"
        )
        crawl = start(topic, "", most_files_open=256, FOCUSED_DNS_SERVERS=names.address)
        most = most_files_open(crawl)
    assert crawl.wait() == 0
    assert len(hosts.accesses) == 2 * len(HOSTS)
    assert most < 256 - 100


def is_video(request: Request, status: int, content_type: str) -> bool:
    return (status, content_type) == (200, "video/mp4")


def test_a_long_body_of_a_refused_type_is_not_awaited():
    server = Server(OK + b"Content-Type: video/mp4\r\nContent-Length: 9000000\r\n\r\nwha")
    answer = with_handler(server, lambda fetch: fetch(), refuses=is_video)
    assert (answer.status, answer.body, answer.flags) == (200, b"", ["download_stopped"])


def test_a_short_body_of_a_refused_type_is_read_and_the_connection_stays():
    server = Server(OK + b"Content-Type: video/mp4\r\nContent-Length: 6\r\n\r\nwhales")

    async def test(fetch: Fetch) -> None:
        for _number in range(2):
            assert (await fetch()).body == b"whales"

    with_handler(server, test, refuses=is_video)
    assert server.connections == 1
