"""Serves a session in the browser until it is told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from aiohttp import web

from focused.archive_warc import warc_files
from focused.errors import FocusedError, LabelError
from focused.labelling.bounded_reading import BoundedReader
from focused.labelling.crawled import CrawledPages, read_crawled
from focused.labelling.pool import TeachingPool, teaching_pool
from focused.labelling.server import Clock, LabelServer
from focused.labelling.session import Session

LOOK_AGAIN_S = 60.0
"""So often a running crawl is looked at again."""

_GROWTH = 1.1


def serve(
    session: Session,
    *,
    clock: Clock,
    ready: Callable[[str], None],
    host: str = "127.0.0.1",
    port: int = 0,
) -> None:
    """Serve ``session`` at ``host`` until SIGINT or SIGTERM.

    ``ready`` is called with the address, token included, once it is served. Port 0 takes a
    free one. Raises :class:`LabelError` when the port is taken.
    """
    with BoundedReader() as reader:
        server = LabelServer(session, reader, clock, host)
        asyncio.run(_serve(server, session, ready, host, port))


async def _serve(
    server: LabelServer, session: Session, ready: Callable[[str], None], host: str, port: int
) -> None:
    app = server.application()
    app.cleanup_ctx.append(_keeping_up(session))
    runner = web.AppRunner(app, access_log=None, handle_signals=False)
    await runner.setup()
    try:
        site = web.TCPSite(runner, host, port)
        try:
            await site.start()
        except OSError as error:
            raise LabelError(f"{host}:{port}: cannot be served at: {error.strerror}") from error
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            with contextlib.suppress(ValueError, RuntimeError):  # not in the main thread
                loop.add_signal_handler(number, stop.set)
        bound = runner.addresses[0][1]
        name = f"[{host}]" if ":" in host else host
        ready(f"http://{name}:{bound}/#{server.token}")
        await stop.wait()
    finally:
        await runner.cleanup()


def _keeping_up(session: Session) -> Callable[[web.Application], AsyncIterator[None]]:
    """While the server runs, take in what a running crawl has fetched since."""

    async def context(_: web.Application) -> AsyncIterator[None]:
        task = asyncio.create_task(_keep_up(session))
        yield
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    return context


async def _keep_up(session: Session) -> None:
    folder = session.crawled.folder
    size = _warc_bytes(folder)
    while True:
        await asyncio.sleep(LOOK_AGAIN_S)
        # A crawl's folder that cannot be read now may be at the next look.
        with contextlib.suppress(FocusedError, OSError):
            # Of a crawl that has ended nothing is opened: it may be about to be resumed.
            if _warc_bytes(folder) == size:
                continue
            found = await asyncio.to_thread(_grown, session)
            if found is not None:
                size = _warc_bytes(folder)
                session.renew(*found)


def _warc_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in warc_files(folder))


def _grown(session: Session) -> tuple[CrawledPages, TeachingPool] | None:
    """The crawl's pages when there are a tenth more than the session has."""
    now = read_crawled(session.crawled.folder)
    if len(now.pages) < _GROWTH * len(session.crawled.pages) + 1:
        return None
    return now, teaching_pool(now, session.subject.judge)
