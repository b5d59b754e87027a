"""Pages read in processes of their own, when that pays: the reactor has other things to do.

None is begun before the crawl's own process has much to do, or a page comes that would block it
for long. A page that they have no time for is read by the crawl itself, so that no core idles
while another is late. One that brings its process down is a failed page.
"""

from __future__ import annotations

import asyncio
import logging
import os
import pickle
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable

from focused.crawl import reading_process
from focused.crawl.reading import Reader, Reading
from focused.crawl.reading_process import LENGTH, ReadingError, question, reading_in
from focused.web.page import Failed, FailureKind, Fetched

BUSY_SHARE = 0.6
"""Of a core's time; from there on the crawl's process is relieved of reading."""

LONG_BYTES = 150_000
"""A page of more takes some 10 ms to read, and a hostile one a hundred times that."""

AHEAD = 32
"""Pages that wait for one process: with fewer it idles while the crawl settles those of a turn."""
ENOUGH = 8
"""With so many it does not idle: a crawl that has no page to settle reads the next itself."""

_MOST_CHOSEN = 4
MOST_READERS = 64
"""Processes that somebody may ask for."""

_ANSWERS_BYTES = 4_000_000
"""As much waits to be heard of before the other process has to."""

logger = logging.getLogger(__name__)


def workers_for(cores: int) -> int:
    """How many processes read beside a crawl, on so many cores."""
    return max(1, min(_MOST_CHOSEN, cores - 1))


def cores() -> int:
    """How many cores this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _wall_and_cpu() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


class _Worker:
    """A process, the socket to it, and the pages that wait for its answers."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        stream: asyncio.StreamReader,
        out: asyncio.StreamWriter,
    ) -> None:
        self.process = process
        self._stream = stream
        self._out = out
        self._asked: deque[asyncio.Future[bytes]] = deque()
        self._to_ask: list[bytes] = []
        self._hearing = asyncio.ensure_future(self._hear())

    @classmethod
    async def begun(cls, reader: bytes) -> _Worker:
        ours, theirs = socket.socketpair()
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-m", reading_process.__name__, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
        stream, out = await asyncio.open_connection(sock=ours, limit=_ANSWERS_BYTES)
        out.writelines((LENGTH.pack(len(reader)), reader))
        return cls(process, stream, out)

    @property
    def waiting(self) -> int:
        """How many pages it has."""
        return len(self._asked)

    async def read(self, fetched: Fetched) -> Reading | Failed:
        """Raises OSError when the process is gone."""
        asked = question(fetched)
        loop = asyncio.get_running_loop()
        answer = loop.create_future()
        self._asked.append(answer)
        if not self._to_ask:
            loop.call_soon(self._ask)
        self._to_ask += (LENGTH.pack(len(asked)), asked)
        return reading_in(await answer)

    def _ask(self) -> None:
        """Send the questions of a turn together: each sending wakes the other process."""
        asked, self._to_ask = self._to_ask, []
        self._out.writelines(asked)
        if self._hearing.done():
            self._lost()

    async def _hear(self) -> None:
        """Hand out answers, which come in the order of the questions.

        As many as there are: were each waited for by who asked, each would take the reactor a turn.
        """
        try:
            while True:
                length = LENGTH.unpack(await self._stream.readexactly(LENGTH.size))[0]
                answer = await self._stream.readexactly(length)
                asked = self._asked.popleft()
                if not asked.done():
                    asked.set_result(answer)
        except (OSError, asyncio.IncompleteReadError):
            self._lost()

    def _lost(self) -> None:
        while self._asked:
            asked = self._asked.popleft()
            if not asked.done():
                asked.set_exception(ConnectionError("the process is gone"))

    def end(self) -> None:
        self._hearing.cancel()
        self._lost()
        self._out.close()
        self.process.kill()
        self.process.wait()


class ReadingWorkers:
    """The processes that read pages for one crawl."""

    def __init__(
        self,
        most: int | None,
        reader: Callable[[], Reader],
        clocks: Callable[[], tuple[float, float]] = _wall_and_cpu,
        *,
        is_idle: Callable[[], bool] = lambda: False,
    ) -> None:
        """``most`` processes from the first page on, 0 for none; None: as it pays.

        ``clocks`` tell seconds gone by, and seconds of CPU of this process; ``is_idle``, whether
        this process has no page to settle or to read.
        """
        self._at_once = most is not None
        self._relieve = cores() > 1
        self._most = workers_for(cores()) if most is None else most
        self._reader = reader
        self._workers: list[_Worker] = []
        self._beginning: asyncio.Future[None] | None = None
        self._clocks = clocks
        self._is_idle = is_idle
        self._looked_at = clocks()
        self.most_at_once = 0
        """How many processes there were."""
        self.read = 0
        """How many pages they read."""
        self.seconds = 0.0
        """What they needed for that."""

    def __len__(self) -> int:
        return len(self._workers)

    def look(self) -> None:
        """Begin when the crawl's process has much to do; to be called about once a second."""
        now = self._clocks()
        elapsed_s, cpu_s = now[0] - self._looked_at[0], now[1] - self._looked_at[1]
        self._looked_at = now
        busy = cpu_s > BUSY_SHARE * elapsed_s
        if busy and self._relieve and on_asyncio():
            self._begin()

    async def ahead(self, fetched: Fetched) -> Reading | Failed | None:
        """What an answer's page holds; None: it is for the crawl itself to read."""
        is_long = len(fetched.body) >= LONG_BYTES
        if is_long or self._at_once:
            await self._begin()
        worker = min(self._workers, key=lambda each: each.waiting, default=None)
        if worker is None or not (is_long or self._has_time(worker)):
            return None
        try:
            reading = await worker.read(fetched)
        except OSError:
            return self._lost(worker, fetched)
        except ReadingError as error:
            logger.error("%s could not be read: %s", fetched.url, error)
            return Failed(fetched.url, FailureKind.UNDIGESTED, fetched.status, str(error)[:200])
        self.read += 1
        if isinstance(reading, Reading):
            self.seconds += sum(reading.seconds.values())
        return reading

    def _has_time(self, worker: _Worker) -> bool:
        # On one core it would take the time from the crawl itself.
        if not (self._relieve or self._at_once):
            return False
        return worker.waiting < ENOUGH or (worker.waiting < AHEAD and not self._is_idle())

    def close(self) -> None:
        """End all processes; what they were reading is for the crawl to read."""
        for worker in self._workers:
            worker.end()
        self._workers.clear()

    def judge_changed(self) -> None:
        """Another judge took office: who judges by the old one ends, others begin when it pays."""
        self.close()
        self._beginning = None

    def _begin(self) -> asyncio.Future[None]:
        """Begin all, once; those that were lost are not made up for."""
        if self._beginning is None:
            self._beginning = asyncio.ensure_future(self._begun())
        return self._beginning

    async def _begun(self) -> None:
        if not self._most:
            return
        try:
            reader = pickle.dumps(self._reader())
        except Exception as error:  # whatever a judge of the user's own may raise
            logger.warning("pages are read in the crawl's own process: %r", error)
            return
        for _ in range(self._most):
            self._workers.append(await _Worker.begun(reader))
        self.most_at_once = len(self._workers)
        logger.info("%d processes read pages from now on", len(self._workers))

    def _lost(self, worker: _Worker, fetched: Fetched) -> Failed | None:
        """The first page to hear of it is the one that the process died over: it is given up."""
        if worker not in self._workers:
            return None
        self._workers.remove(worker)
        worker.end()
        logger.error("a process ended over %s: %s", fetched.url, worker.process.returncode)
        detail = "the process that read it died"
        return Failed(fetched.url, FailureKind.UNDIGESTED, fetched.status, detail)


def on_asyncio() -> bool:
    """Whether this reactor is one that asyncio's streams run in."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
