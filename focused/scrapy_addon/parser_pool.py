"""Pages read in processes of their own, when that pays: the reactor has other things to do.

None is begun before the crawl's own process has much to do, or a page comes that might block it
for long (:func:`focused.web.html.parse.needs_parser_process`): such a page is read nowhere else, because only
another process can be stopped. A small page that they have no time for is read by the crawl
itself, so that no core idles while another is late. A page that ends its process, or exceeds its
time or memory, is a failed page, and another process takes the place of the one that ended.
"""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from focused.crawl.page_parser import PageParser, ParsedPage
from focused.crawl.parser_process import ReadingHandler, decode_reply, encode_request
from focused.parser_process import (
    GRACE_S,
    LENGTH,
    START_S,
    HandlerError,
    ParsingLimits,
    ParsingStoppedError,
    framed,
    pickled,
    result_of,
    start_process,
)
from focused.web.page import Failed, FailureKind, Fetched

BUSY_SHARE = 0.6
"""Of a core's time; from there on the crawl's process is relieved of reading."""

TICK_S = 1.0
_START_TICKS = int(START_S)
_SLOW_TICKS = int(GRACE_S)
_MAX_FAILED_STARTS = 3

MAX_WAITING_PAGES = 32
"""Pages that wait for one process: with fewer it idles while the crawl settles those of a turn."""
MIN_WAITING_PAGES = 8
"""With so many it does not idle: a crawl that has no page to settle reads the next itself."""

_MAX_DEFAULT_PROCESSES = 4
MAX_PARSER_PROCESSES = 64
"""Processes that somebody may ask for."""

_STREAM_LIMIT_BYTES = 4_000_000
"""As much waits to be heard of before the other process has to."""

logger = logging.getLogger(__name__)


def default_process_count(cores: int) -> int:
    """How many processes read beside a crawl, on so many cores."""
    return max(1, min(_MAX_DEFAULT_PROCESSES, cores - 1))


def cores() -> int:
    """How many cores this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _wall_and_cpu() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


class _PageLostError(Exception):
    """A page was not read, for no reason of its own."""


class _PendingPage(NamedTuple):
    answer: asyncio.Future[bytes]
    needs_parser_process: bool


class _ParserProcess:
    """A process, the socket to it, and the pages that wait for its answers."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        stream: asyncio.StreamReader,
        out: asyncio.StreamWriter,
        limits: ParsingLimits,
    ) -> None:
        self.is_ready = False
        """Whether it has loaded its reader."""
        self.is_gone = False
        self._process = process
        self._stream = stream
        self._out = out
        self._limits = limits
        self._asked: deque[_PendingPage] = deque()
        self._to_ask: list[bytes] = []
        self._ticks = 0
        self._is_late = False
        self._hearing = asyncio.ensure_future(self._hear())
        self._ticking = asyncio.get_running_loop().call_later(TICK_S, self._tick)

    @classmethod
    async def begun(cls, reader: bytes, limits: ParsingLimits) -> _ParserProcess:
        process, ours = start_process()
        stream, out = await asyncio.open_connection(sock=ours, limit=_STREAM_LIMIT_BYTES)
        out.write(framed(reader))
        return cls(process, stream, out, limits)

    @property
    def waiting(self) -> int:
        """How many pages it has."""
        return len(self._asked)

    @property
    def is_slow(self) -> bool:
        """Whether it has been reading one page for seconds."""
        return self.is_ready and self._ticks >= _SLOW_TICKS

    async def read(self, fetched: Fetched, *, is_long: bool) -> ParsedPage | Failed:
        """Raises _LostError when the process is gone, or keeps a page waiting that is not long.

        Raises ParsingStoppedError when the page itself ended the process, HandlerError when our
        code raised an exception over it.
        """
        asked = encode_request(fetched)
        loop = asyncio.get_running_loop()
        answer = loop.create_future()
        self._asked.append(_PendingPage(answer, is_long))
        if not self._to_ask:
            loop.call_soon(self._ask)
        self._to_ask += (LENGTH.pack(len(asked)), asked)
        return decode_reply(result_of(await answer))

    def _ask(self) -> None:
        """Send the questions of a turn together: each sending wakes the other process."""
        asked, self._to_ask = self._to_ask, []
        if self.is_gone:
            self._give_back()
        else:
            self._out.writelines(asked)

    async def _hear(self) -> None:
        """Hand out answers, which come in the order of the questions.

        As many as there are: were each waited for by who asked, each would take the reactor a turn.
        """
        try:
            await self._stream.readexactly(LENGTH.size)
            self.is_ready, self._ticks = True, 0
            while True:
                length = LENGTH.unpack(await self._stream.readexactly(LENGTH.size))[0]
                answer = await self._stream.readexactly(length)
                asked = self._asked.popleft().answer
                self._ticks = 0
                if not asked.done():
                    asked.set_result(answer)
        except (OSError, asyncio.IncompleteReadError):
            self._end()
            self._give_back(self._reason() if self.is_ready else None)

    def _tick(self) -> None:
        """Count seconds of one page, and kill a process that its own timers did not end.

        Ticks are counted, and not the clock read: while the crawl itself is suspended, no page
        becomes late.
        """
        self._ticking = asyncio.get_running_loop().call_later(TICK_S, self._tick)
        if self.is_ready and not self._asked:
            return
        self._ticks += 1
        page_ticks = self._limits.elapsed_s / TICK_S + _SLOW_TICKS
        if self._ticks > (page_ticks if self.is_ready else _START_TICKS):
            self._is_late = True
            self._process.kill()
        elif self.is_slow:
            for asked in self._asked:
                if not asked.needs_parser_process and not asked.answer.done():
                    asked.answer.set_exception(_PageLostError())

    def _reason(self) -> ParsingStoppedError:
        """Why the process ended over its page."""
        status = self._process.returncode
        return ParsingStoppedError.of_status(status, self._limits, is_late=self._is_late)

    def _give_back(self, of_first: Exception | None = None) -> None:
        while self._asked:
            asked = self._asked.popleft().answer
            if not asked.done():
                asked.set_exception(of_first or _PageLostError())
            of_first = None

    def end(self) -> None:
        self._hearing.cancel()
        self._end()
        self._give_back()

    def _end(self) -> None:
        self.is_gone = True
        self._ticking.cancel()
        self._out.close()
        self._process.kill()
        self._process.wait()


class ParserPool:
    """The processes that read pages for one crawl."""

    def __init__(
        self,
        most: int | None,
        reader: Callable[[], PageParser],
        clocks: Callable[[], tuple[float, float]] = _wall_and_cpu,
        *,
        limits: ParsingLimits | None = None,
        is_idle: Callable[[], bool] = lambda: False,
    ) -> None:
        """``most`` processes from the first page on; None: as it pays.

        With 0 there is one, which begins when the first page comes that may take long.
        ``clocks`` tell seconds gone by, and seconds of CPU of this process; ``limits`` are those
        of one page; ``is_idle``, whether this process has no page to settle or to read.
        """
        self._at_once = bool(most)
        self._relieve = most is None and cores() > 1
        self._most = (default_process_count(cores()) if most is None else most) or 1
        self._limits = limits or ParsingLimits()
        self._reader = reader
        self._judges = True
        """Whether the processes classifier the pages that they read."""
        self._workers: list[_ParserProcess] = []
        self._beginning: asyncio.Future[None] | None = None
        self._failed_starts = 0
        self._is_closed = False
        self._clocks = clocks
        self._is_idle = is_idle
        self._looked_at = clocks()
        self.max_running = 0
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
        if busy and self._relieve:
            self._begin()

    async def ahead(self, fetched: Fetched, *, is_long: bool) -> ParsedPage | Failed | None:
        """What an answer's page holds; None: it is for the crawl itself to read.

        ``is_long``: :func:`focused.web.html.parse.needs_parser_process` says so of the page.
        """
        while not self._is_closed:
            if is_long or self._at_once:
                await self._begin()
            worker = self._least_busy()
            if worker is None and is_long and not self._is_closed:
                return _internal_error(fetched, "no process could be started to read it")
            if worker is None or not (is_long or self._has_time(worker)):
                return None
            try:
                reading = await worker.read(fetched, is_long=is_long)
            except ParsingStoppedError as stopped:
                logger.warning("%s was not read: %s", fetched.url, stopped.detail)
                return Failed(fetched.url, stopped.kind, fetched.status, stopped.detail)
            except _PageLostError:
                if not is_long:
                    return None
            except HandlerError as error:
                logger.error("%s could not be read: %s", fetched.url, error)
                return _internal_error(fetched, str(error)[:200])
            else:
                self._failed_starts = 0
                self.read += 1
                if isinstance(reading, ParsedPage):
                    self.seconds += sum(reading.seconds.values())
                return reading
        return None

    def _least_busy(self) -> _ParserProcess | None:
        """The process for the next page; those that ended are forgotten."""
        gone = [worker for worker in self._workers if worker.is_gone]
        if gone:
            self._workers = [worker for worker in self._workers if not worker.is_gone]
            self._failed_starts += sum(not worker.is_ready for worker in gone)
        return min(self._workers, key=lambda each: (each.is_slow, each.waiting), default=None)

    def _has_time(self, worker: _ParserProcess) -> bool:
        # On one core it would take the time from the crawl itself.
        if not (self._relieve or self._at_once) or not self._judges or worker.is_slow:
            return False
        return worker.waiting < MIN_WAITING_PAGES or (
            worker.waiting < MAX_WAITING_PAGES and not self._is_idle()
        )

    def close(self) -> None:
        """End all processes for good; what they were reading is given up by who waits for it."""
        self._is_closed = True
        self.classifier_swapped()

    def classifier_swapped(self) -> None:
        """Another classifier took office: who judges by the old one ends, others begin when it pays."""
        self._beginning = None
        for worker in self._workers:
            worker.end()
        self._workers.clear()

    def _begin(self) -> asyncio.Future[None]:
        """Begin all processes; once they began, those that take the place of lost ones."""
        self._least_busy()
        begun = self._beginning
        if begun is None or (begun.done() and len(self._workers) < self._most):
            begun = self._beginning = asyncio.ensure_future(self._begun())
        return begun

    async def _begun(self) -> None:
        if self._is_closed or self._failed_starts >= _MAX_FAILED_STARTS:
            return
        reader = self._pickled_reader()
        while len(self._workers) < self._most:
            try:
                worker = await _ParserProcess.begun(reader, self._limits)
            except OSError as error:
                logger.error("no process could be started to read pages: %s", error)
                return
            if (
                self._beginning is not asyncio.current_task()
            ):  # closed, or another classifier judges
                worker.end()
                return
            self._workers.append(worker)
        if len(self._workers) > self.max_running:
            self.max_running = len(self._workers)
            logger.info("%d processes read pages from now on", self.max_running)

    def _pickled_reader(self) -> bytes:
        reader = self._reader()
        try:
            message = pickled(ReadingHandler(reader), self._limits)
        except Exception as error:  # whatever a classifier of the user's own may raise
            if self._judges:
                logger.warning("pages are judged in the crawl's own process: %r", error)
            self._judges = False
            return pickled(ReadingHandler(reader.without_classifier()), self._limits)
        self._judges = True
        return message


def _internal_error(fetched: Fetched, detail: str) -> Failed:
    return Failed(fetched.url, FailureKind.INTERNAL_ERROR, fetched.status, detail)
