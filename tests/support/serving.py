"""Servers on loopback in threads, until a block ends."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from socketserver import BaseServer
from typing import Any

Run = Callable[[Coroutine[Any, Any, Any]], Any]
_END_S = 60
"""For the end of a server on a busy machine."""


@contextmanager
def loop_in_thread() -> Iterator[Run]:
    """Run an event loop; yield what runs a coroutine in it and returns its result.

    Tasks that are left at the end are cancelled.
    """
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield lambda work: asyncio.run_coroutine_threadsafe(work, loop).result(_END_S)
    finally:
        try:
            asyncio.run_coroutine_threadsafe(_cancel_others(), loop).result(_END_S)
        finally:
            loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def close_servers(*servers: asyncio.Server) -> None:
    """Close servers, in the loop that serves them."""
    for each in servers:
        each.close()


async def _cancel_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


@contextmanager
def serving(*servers: BaseServer) -> Iterator[None]:
    """Serve by a thread each, and close the servers."""
    threads = [
        threading.Thread(target=each.serve_forever, args=(0.01,), daemon=True) for each in servers
    ]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        for server, thread in zip(servers, threads, strict=True):
            server.shutdown()
            thread.join()
            server.server_close()


class QuietHandler(BaseHTTPRequestHandler):
    """Answers HTTP/1.1 by :meth:`reply`, whatever the method, and logs nothing."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.reply()

    do_HEAD = do_POST = do_PUT = do_GET  # noqa: N815  # http.server's names

    def reply(self) -> None:
        """Answer one request."""
        raise NotImplementedError

    def respond(self, status: int, body: bytes, **headers: str) -> None:
        """Send a whole answer; a header's underscores stand for hyphens."""
        self.send_response(status)
        for name, value in {"Content_Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Print nothing."""
