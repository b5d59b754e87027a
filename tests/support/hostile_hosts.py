"""Hosts that answer as they like: raw bytes over loopback, every access noted.

One server, in a thread, for all hosts and all addresses of 127.0.0.0/8. What a
host does is a coroutine that writes what it wants; there is no HTTP library
between, so that nothing is too wrong to be sent.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.access_rules import Access
from tests.support.crawling import Finished, crawl, write_topic
from tests.support.name_server import Zone, at, serve_names
from tests.support.serving import close_servers, loop_in_thread

_HEAD_BYTES = 1 << 20


@dataclass
class Asked:
    """One request; ``status`` and ``retry_after_s`` are for the log, by whoever answers."""

    host: str
    path: str
    times: int
    """How often this URL was asked for, this one included."""
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    status: int = 0
    retry_after_s: float = 0.0
    ended_at: float = 0.0

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def answer(self, status: int = 200, body: bytes | str = b"", **headers: str) -> None:
        """A whole answer; a header's underscores stand for hyphens."""
        self.status = status
        self.retry_after_s = float(headers.get("Retry_After", 0))
        data = body.encode() if isinstance(body, str) else body
        all_headers = {"Content_Type": "text/html; charset=utf-8", **headers}
        head = _head(status, {"Content_Length": str(len(data)), **all_headers})
        # Before it is sent: a busy server notices the end late, when the crawl counts its delay.
        self.ended_at = asyncio.get_running_loop().time()
        await self.send(head + data)

    async def stream(self, **headers: str) -> None:
        """The head of an answer that ends when the connection does."""
        self.status = 200
        await self.send(_head(200, {"Content_Type": "text/html", "Connection": "close", **headers}))

    async def until_left(self) -> None:
        """Say nothing more until the client goes away."""
        while await self.reader.read(1 << 16):
            pass

    def reset(self) -> None:
        self.writer.transport.abort()


def _head(status: int, headers: Mapping[str, str]) -> bytes:
    lines = (f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {status} So\r\n{''.join(lines)}\r\n".encode("latin-1")


Behaviour = Callable[[Asked], Awaitable[None]]


@dataclass
class HostileHosts:
    """``accesses`` is whole when the serving has ended; hosts have no port there.

    ``most_open`` has the connections that were open at an address, idle ones too, as it answered.
    """

    hosts: Mapping[str, Behaviour]
    port: int = 0
    accesses: list[Access] = field(default_factory=list)
    most_open: Counter[str] = field(default_factory=Counter)
    _open: Counter[str] = field(default_factory=Counter)
    _times: dict[tuple[str, str], int] = field(default_factory=dict)

    def url(self, host: str, path: str = "/") -> str:
        return f"http://{host}:{self.port}{path}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        address = writer.get_extra_info("sockname")[0]
        self._open[address] += 1
        try:
            while await self._answer_one(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            self._open[address] -= 1
            writer.close()

    async def _answer_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        first = await reader.read(1)
        if first in (b"", b"\x16"):  # a TLS greeting is answered with something else
            writer.write(b"HTTP/1.1 400 So\r\n\r\n" if first else b"")
            return False
        head = (first + await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        _, path, _ = head.split(" ", 2)
        lines = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
        host = lines["Host"].partition(":")[0]
        self._times[host, path] = times = self._times.get((host, path), 0) + 1
        asked = Asked(host, path, times, reader, writer)
        loop = asyncio.get_running_loop()
        start = loop.time()
        try:
            await self.hosts[host](asked)
        finally:
            address = writer.get_extra_info("sockname")[0]
            self.most_open[address] = max(self.most_open[address], self._open[address])
            ended_at = asked.ended_at or loop.time()
            self.accesses.append(
                Access(start, ended_at, host, address, path, asked.status, asked.retry_after_s)
            )
        return not writer.transport.is_closing()


@contextmanager
def serve_hosts(make: Callable[[int], Mapping[str, Behaviour]]) -> Iterator[HostileHosts]:
    """Serve what ``make`` gives for the port, at all loopback addresses, until the block ends."""
    served = HostileHosts({})

    async def begin() -> asyncio.Server:
        server = await asyncio.start_server(
            served.serve, "0.0.0.0", 0, limit=_HEAD_BYTES, backlog=1024
        )
        served.port = server.sockets[0].getsockname()[1]
        served.hosts = make(served.port)
        return server

    with loop_in_thread() as run:
        server = run(begin())
        try:
            yield served
        finally:
            run(close_servers(server))


Answer = tuple[int, bytes | str, Mapping[str, str]]


def pages(
    answers: Mapping[str, Answer | Sequence[Answer | None]], latency_s: float = 0.0
) -> Behaviour:
    """A host with these answers by path: always the same, or one after the other (the last stays).

    None is a reset; what is not there is a 404.
    """

    async def behave(asked: Asked) -> None:
        if latency_s:
            await asyncio.sleep(latency_s)
        found = answers.get(asked.path, (404, b"", {}))
        answer = found if isinstance(found, tuple) else found[min(asked.times, len(found)) - 1]
        if answer is None:
            asked.reset()
        else:
            status, body, headers = answer
            await asked.answer(status, body, **headers)

    return behave


def crawl_hosts(
    folder: Path,
    make: Callable[[int], Mapping[str, Behaviour]],
    zone: Zone | None = None,
    *,
    seeds: Sequence[str] = (),
    settings: Callable[[HostileHosts], Mapping[str, Any]] = lambda _: {},
    scope: str = "",
    **topic: Any,
) -> tuple[Finished, HostileHosts]:
    """Crawl from the front pages of ``seeds``, else of the first host; all must go well.

    Without a ``zone`` each host has a loopback address of its own.
    """
    with serve_hosts(make) as served:
        addresses = zone or {host: at(f"127.0.0.{41 + n}") for n, host in enumerate(served.hosts)}
        with serve_names(addresses) as names:
            path = write_topic(
                folder,
                *map(served.url, seeds or [*served.hosts][:1]),
                scope=f"private_addresses = true\n{scope}",
                **topic,
            )
            done = crawl(path, "", FOCUSED_DNS_SERVERS=names.address, **settings(served))
    assert done.status == 0, done.output
    return done, served
