"""A server that violates HTTP as each test defines."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field

Play = Callable[[asyncio.StreamWriter], Awaitable[None]]

# The server closes after each answer. Where an answer does not say so, the next request may
# leave over a connection that is closed a moment later, and be lost.
_NOTHING = b"Content-Length: 0\r\nConnection: close\r\n\r\n"
_UNKNOWN = b"HTTP/1.1 502 Unknown\r\nX-Focused-Fault: unknown-host\r\n" + _NOTHING
_NO_RULES = b"HTTP/1.1 404 Not Found\r\n" + _NOTHING


@dataclass(slots=True)
class HostileSite:
    """Where it listens, and how often each URL was asked for."""

    address: str
    asked: Counter[str] = field(default_factory=Counter)


def answer(body: bytes, *headers: str, status: str = "200 OK") -> Play:
    """A whole answer, with its length told."""
    return raw_bytes(whole(body, *headers, status=status))


def whole(body: bytes, *headers: str, status: str = "200 OK") -> bytes:
    """The bytes of a whole answer."""
    head = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers]
    if not any(header.lower().startswith("content-type") for header in headers):
        head.append("Content-Type: text/html")
    return "\r\n".join(head).encode("latin-1") + b"\r\n\r\n" + body


@dataclass(slots=True)
class Packed:
    """A whole answer whose body is packed when the server starts, not when tests are collected."""

    pack: Callable[[], bytes]
    headers: tuple[str, ...]
    raw: bytes = b""

    def prepare(self) -> None:
        self.raw = self.raw or whole(self.pack(), *self.headers)

    async def __call__(self, writer: asyncio.StreamWriter) -> None:
        await raw_bytes(self.raw)(writer)


def packed(pack: Callable[[], bytes], *headers: str) -> Play:
    """A whole answer; ``pack`` makes its body."""
    return Packed(pack, headers)


def raw_bytes(raw: bytes) -> Play:
    """These bytes as they are."""

    async def play(writer: asyncio.StreamWriter) -> None:
        writer.write(raw)
        await writer.drain()

    return play


def endless(head: bytes, piece: bytes, pause_s: float = 0.0) -> Play:
    """A beginning, then the same piece for ever."""

    async def play(writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        while True:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(pause_s)

    return play


@contextlib.contextmanager
def hostile(plays: Mapping[str, Play]) -> Iterator[HostileSite]:
    """Serve: a play by ``host/path``; hosts without a robots.txt of their own have none."""
    for play in plays.values():
        if isinstance(play, Packed):
            play.prepare()
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    stage = _Stage(plays)
    try:
        stage.site.address = asyncio.run_coroutine_threadsafe(stage.start(), loop).result()
        yield stage.site
    finally:
        asyncio.run_coroutine_threadsafe(stage.stop(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


class _Stage:
    def __init__(self, plays: Mapping[str, Play]) -> None:
        self._plays = plays
        self._hosts = {name.partition("/")[0] for name in plays}
        self._tasks: set[asyncio.Task[None]] = set()
        self.site = HostileSite("")

    async def start(self) -> str:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=1024)
        return f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def stop(self) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                await self._answer(reader, writer)
        except asyncio.CancelledError:
            pass
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request a connection: what a play left unsaid must not be the next one's."""
        request = await reader.readuntil(b"\r\n\r\n")
        lines = request.decode("latin-1").split("\r\n")
        path = lines[0].split(" ")[1]
        host = next(line[5:].strip() for line in lines if line.lower().startswith("host:"))
        name = f"{host}{path}"
        self.site.asked[name] += 1
        play = self._plays.get(name)
        if play is None:
            play = raw_bytes(_NO_RULES if host in self._hosts else _UNKNOWN)
        await play(writer)
