"""HTTP servers beside a crawl: connections that harm are closed, and few are open at once."""

import asyncio
import selectors
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
from aiohttp import web

from focused.local_server import LocalServer, is_own_name, open_listener

HALF_A_HEADER = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "
REQUEST = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
FOR_EVER_S = 3_600.0
SOON_S = 2.0


class Served:
    """A server in a thread of its own; ``release`` lets the request for ``/wait`` be answered."""

    def __init__(self, loop: asyncio.AbstractEventLoop, port: int, released: asyncio.Event) -> None:
        self._loop = loop
        self._released = released
        self.port = port

    def connect(self, sent: bytes = b"") -> socket.socket:
        client = socket.create_connection(("127.0.0.1", self.port), timeout=60)
        client.sendall(sent)
        return client

    def release(self) -> None:
        self._loop.call_soon_threadsafe(self._released.set)


@contextmanager
def served(**limits: Any) -> Iterator[Served]:
    loop = asyncio.new_event_loop()
    released = asyncio.Event()

    async def answer(request: web.Request) -> web.Response:
        return web.Response(text="answered")

    async def wait(request: web.Request) -> web.Response:
        await released.wait()
        return await answer(request)

    app = web.Application()
    app.add_routes([web.get("/", answer), web.get("/wait", wait)])
    server = LocalServer(app, **limits)
    listener = open_listener("127.0.0.1", 0)
    port = listener.getsockname()[1]
    loop.run_until_complete(server.start(listener))
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield Served(loop, port, released)
    finally:
        asyncio.run_coroutine_threadsafe(server.close(), loop).result(60)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(60)
        loop.close()


def received(client: socket.socket) -> bytes:
    """All that the server sends until it closes the connection."""
    chunks = []
    try:
        while chunk := client.recv(65_536):
            chunks.append(chunk)
    except ConnectionResetError:
        pass
    return b"".join(chunks)


def wait_until_closed(clients: list[socket.socket], number: int) -> None:
    """Return when the server has closed this number of connections."""
    with selectors.DefaultSelector() as selector:
        for client in clients:
            selector.register(client, selectors.EVENT_READ)
        while number:
            ready = selector.select(timeout=60)
            assert ready, f"{number} connections are still open"
            for key, _ in ready:
                selector.unregister(key.fileobj)
                number -= 1


def is_open(client: socket.socket) -> bool:
    client.setblocking(False)
    try:
        return client.recv(1) != b""
    except BlockingIOError:
        return True
    except ConnectionResetError:
        return False


def test_clients_with_half_a_header_take_few_connections():
    with served(header_timeout_s=FOR_EVER_S, max_connections=8) as server, ExitStack() as stack:
        clients = [stack.enter_context(server.connect()) for _ in range(200)]
        for client in clients:
            try:
                client.sendall(HALF_A_HEADER)
            except (BrokenPipeError, ConnectionResetError):
                continue
        wait_until_closed(clients, 192)
        assert sum(map(is_open, clients)) == 8


def test_a_connection_that_sends_no_header_in_time_is_closed():
    with (
        served(header_timeout_s=SOON_S, max_connections=1) as server,
        server.connect(HALF_A_HEADER) as slow,
    ):
        received(slow)
        with server.connect(REQUEST) as other:
            assert b"answered" in received(other)


def test_a_response_may_take_longer_than_a_header():
    with served(header_timeout_s=SOON_S) as server, server.connect() as waiting:
        waiting.sendall(REQUEST.replace(b"GET /", b"GET /wait"))
        with server.connect(HALF_A_HEADER) as later:
            received(later)
        server.release()
        assert b"answered" in received(waiting)


def test_no_connection_takes_a_descriptor_of_the_reserve():
    with served(max_descriptor=0) as server, server.connect() as client:
        assert received(client) == b""


def test_a_port_in_use_is_an_error():
    with open_listener("127.0.0.1", 0) as taken, pytest.raises(OSError, match="in use"):
        open_listener("127.0.0.1", taken.getsockname()[1])


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1:9410", "[::1]:9410", "localhost:9410", "10.1.2.3"),
        *("crawler:9410", "focused.default.svc.cluster.local:9410", socket.gethostname()),
    ],
)
def test_addresses_and_names_that_nobody_can_register_are_own_names(host):
    assert is_own_name(host)


@pytest.mark.parametrize("host", ["", "evil.test", "evil.test:9410", "127.0.0.1.evil.test", "a.b."])
def test_other_names_may_be_rebound(host):
    assert not is_own_name(host)
