"""Parse pages in parser processes, while the reactor does other work.

Parser processes start when the crawl's process is busy, or when a page comes that may take long
(:func:`focused.web.html.parse.needs_parser_process`). Such a page is parsed only in another
process, which can be killed. Other pages are parsed by the crawl itself if all processes are busy,
so that no core is idle. A page that exceeds a time or memory limit fails, and a new process
replaces the old one. If a process dies for another reason, its page is parsed again, and fails with
the third process that dies over it.
"""

from __future__ import annotations

import asyncio
import logging
import subprocess
import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from focused.crawl.page_parser import (
    EarlyResult,
    PageParser,
    ParsedPage,
    ParsingHandler,
    decode_reply,
    encode_request,
    parsing_cpu_s,
)
from focused.parser_process import (
    GRACE_S,
    LENGTH,
    MAX_PROCESSES_PER_PAGE,
    START_S,
    HandlerError,
    ParsingLimits,
    ParsingStoppedError,
    cores,
    framed,
    pickled,
    result_of,
    start_process,
)
from focused.web.page import Failed, FailureKind, Fetched
from focused.web.robots.robots_rules import RobotsFile

TICK_S = 1.0
_START_TICKS = int(START_S)
_SLOW_TICKS = int(GRACE_S)
_MAX_FAILED_STARTS = 3
START_AGAIN_S = 30.0
"""Seconds until processes are started again after so many that ended before they were ready."""

MAX_WAITING_PAGES = 32
"""Pages that wait for one process at most; with fewer it would be idle while the crawl settles."""
MIN_WAITING_PAGES = 8
"""Enough for a process not to be idle; then an idle crawl parses pages itself."""

_MAX_DEFAULT_PROCESSES = 4
_STREAM_LIMIT_BYTES = 4_000_000
"""Buffer for replies, until which a process need not wait."""

logger = logging.getLogger(__name__)


def default_process_count(cores: int) -> int:
    """Return the number of parser processes for so many cores."""
    return max(1, min(_MAX_DEFAULT_PROCESSES, cores - 1))


class _PageLostError(Exception):
    """A page was not parsed, for a reason other than the page."""


class _PendingPage(NamedTuple):
    answer: asyncio.Future[bytes]
    needs_parser_process: bool


class _ParserProcess:
    """A process, its socket, and the pages that wait for replies."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        stream: asyncio.StreamReader,
        out: asyncio.StreamWriter,
        limits: ParsingLimits,
        tick_s: float,
    ) -> None:
        self.is_ready = False
        """Whether it has loaded its parser."""
        self.has_ended = False
        self._process = process
        self._stream = stream
        self._out = out
        self._limits = limits
        self._tick_s = tick_s
        self._pending: deque[_PendingPage] = deque()
        self._outgoing: list[bytes] = []
        self._ticks = 0
        self._is_late = False
        self._receiving = asyncio.ensure_future(self._receive())
        self._timer = asyncio.get_running_loop().call_later(tick_s, self._tick)

    @classmethod
    async def start(cls, parser: bytes, limits: ParsingLimits, tick_s: float) -> _ParserProcess:
        process, ours = start_process()
        stream, out = await asyncio.open_connection(sock=ours, limit=_STREAM_LIMIT_BYTES)
        out.write(framed(parser))
        return cls(process, stream, out, limits, tick_s)

    @property
    def waiting(self) -> int:
        """Number of pages that wait."""
        return len(self._pending)

    @property
    def is_slow(self) -> bool:
        """Whether it has been parsing one page for seconds."""
        return self.is_ready and self._ticks >= _SLOW_TICKS

    async def ask(self, request: bytes, *, is_long: bool) -> bytes:
        """Return the handler's result for one response.

        Raises _PageLostError if the process ends, or keeps a page waiting that is not long.
        """
        loop = asyncio.get_running_loop()
        answer = loop.create_future()
        self._pending.append(_PendingPage(answer, is_long))
        if not self._outgoing:
            loop.call_soon(self._send)
        self._outgoing += (LENGTH.pack(len(request)), request)
        return result_of(await answer)

    def _send(self) -> None:
        """Send the requests of one turn together: each write wakes the other process."""
        messages, self._outgoing = self._outgoing, []
        if self.has_ended:
            self._fail_pending()
        else:
            self._out.writelines(messages)

    async def _receive(self) -> None:
        """Receive replies, which come in the order of the requests.

        One task receives all replies; one for each page would cost a turn of the reactor each.
        """
        try:
            await self._stream.readexactly(LENGTH.size)
            self.is_ready, self._ticks = True, 0
            while True:
                length = LENGTH.unpack(await self._stream.readexactly(LENGTH.size))[0]
                answer = await self._stream.readexactly(length)
                future = self._pending.popleft().answer
                self._ticks = 0
                if not future.done():
                    future.set_result(answer)
        except (OSError, asyncio.IncompleteReadError):
            self._end()
            self._fail_pending(self._failure_reason() if self.is_ready else None)

    def _tick(self) -> None:
        """Count seconds of one page, and kill a process that its own timers did not end.

        Ticks do not pass while the crawl itself is suspended.
        """
        self._timer = asyncio.get_running_loop().call_later(self._tick_s, self._tick)
        if self.is_ready and not self._pending:
            return
        self._ticks += 1
        page_ticks = self._limits.elapsed_s / self._tick_s + _SLOW_TICKS
        if self._ticks > (page_ticks if self.is_ready else _START_TICKS):
            self._is_late = True
            self._process.kill()
        elif self.is_slow:
            for pending in self._pending:
                if not pending.needs_parser_process and not pending.answer.done():
                    pending.answer.set_exception(_PageLostError())

    def _failure_reason(self) -> ParsingStoppedError:
        """Return why the process ended over its page."""
        status = self._process.returncode
        return ParsingStoppedError.of_status(status, self._limits, is_late=self._is_late)

    def _fail_pending(self, first_error: Exception | None = None) -> None:
        while self._pending:
            future = self._pending.popleft().answer
            if not future.done():
                future.set_exception(first_error or _PageLostError())
            first_error = None

    def end(self) -> None:
        self._receiving.cancel()
        self._end()
        self._fail_pending()

    def _end(self) -> None:
        self.has_ended = True
        self._timer.cancel()
        self._out.close()
        self._process.kill()
        self._process.wait()


class ParserPool:
    """The parser processes of one crawl."""

    def __init__(
        self,
        processes: int | None,
        parser: Callable[[], PageParser],
        *,
        limits: ParsingLimits | None = None,
        is_idle: Callable[[], bool] = lambda: False,
        charge: Callable[[str, float], object] = lambda url, cpu_s: None,
        tick_s: float = TICK_S,
        core_count: int | None = None,
    ) -> None:
        """Start ``processes`` processes with the first page; None: when the crawl is busy.

        With 0 there is one process, for pages that may take long. ``limits`` are those of one page;
        ``is_idle`` tells whether this process has no page to settle or parse. ``charge`` takes a
        URL and the CPU seconds that its response took; one that ends its process is charged the
        limit of CPU time. ``tick_s`` is the interval at which processes are looked after,
        ``core_count`` the number of cores; None: those of this machine.
        """
        if core_count is None:
            core_count = cores()
        self._start_at_once = bool(processes)
        self._offload = processes is None and core_count > 1
        self._max_processes = (
            default_process_count(core_count) if processes is None else processes
        ) or 1
        self._limits = limits or ParsingLimits()
        self._tick_s = tick_s
        self._parser = parser
        self._classify = True
        """Whether the processes also classify pages."""
        self._workers: list[_ParserProcess] = []
        self._starting: asyncio.Future[None] | None = None
        self._failed_starts = 0
        self._failed_at = 0.0
        self._is_closed = False
        self._is_idle = is_idle
        self._charge = charge
        self.max_running = 0
        """Largest number of processes so far."""
        self.parsed_count = 0
        """Number of pages that they parsed."""
        self.seconds = 0.0
        """Seconds that this took."""

    def __len__(self) -> int:
        return len(self._workers)

    def start(self) -> None:
        """Start processes if there is a core for them: the crawl's process is busy."""
        if self._offload:
            self._start_processes()

    async def parse(
        self, fetched: Fetched, robots_token: str | None = None, *, is_long: bool
    ) -> EarlyResult:
        """Parse a page in a process; None: the crawl itself must parse it, or ends.

        With ``robots_token`` it is a robots.txt, to parse for this product token.
        """
        deaths = 0
        while not self._is_closed:
            if is_long or self._start_at_once:
                await self._start_processes()
            worker = self._least_busy()
            if worker is None and is_long and not self._is_closed:
                return _internal_error(fetched, "no parser process could be started")
            if worker is None or not (is_long or self._has_time(worker)):
                return None
            try:
                request = encode_request(fetched, robots_token)
                result = await worker.ask(request, is_long=is_long)
            except ParsingStoppedError as stopped:
                self._charge(fetched.url, self._limits.cpu_s)
                detail = stopped.detail
                if stopped.kind is FailureKind.PARSE_CRASH:
                    deaths += 1
                    if deaths < MAX_PROCESSES_PER_PAGE:
                        logger.warning("%s is parsed again: %s", fetched.url, detail)
                        continue
                    detail = f"{deaths} processes died over it; {detail}"
                logger.warning("%s was not parsed: %s", fetched.url, detail)
                return Failed(fetched.url, stopped.kind, fetched.status, detail)
            except _PageLostError:
                if not is_long:
                    return None
            except HandlerError as error:
                logger.error("%s could not be parsed: %s", fetched.url, error)
                return _internal_error(fetched, str(error)[:200])
            else:
                self._failed_starts = 0
                self._charge(fetched.url, parsing_cpu_s(result))
                parsed = decode_reply(result)
                if not isinstance(parsed, RobotsFile):
                    self.parsed_count += 1
                if isinstance(parsed, ParsedPage):
                    self.seconds += sum(parsed.seconds.values())
                return parsed
        return None

    def _least_busy(self) -> _ParserProcess | None:
        """Return the process for the next page, after removing those that ended."""
        ended = [worker for worker in self._workers if worker.has_ended]
        if ended:
            self._workers = [worker for worker in self._workers if not worker.has_ended]
            failed_starts = sum(not worker.is_ready for worker in ended)
            if failed_starts:
                self._failed_starts += failed_starts
                self._failed_at = time.monotonic()
        return min(self._workers, key=lambda each: (each.is_slow, each.waiting), default=None)

    def _has_time(self, worker: _ParserProcess) -> bool:
        # On one core it would compete with the crawl.
        if not (self._offload or self._start_at_once) or not self._classify or worker.is_slow:
            return False
        return worker.waiting < MIN_WAITING_PAGES or (
            worker.waiting < MAX_WAITING_PAGES and not self._is_idle()
        )

    def close(self) -> None:
        """End all processes; pending pages fail."""
        self._is_closed = True
        self.classifier_swapped()

    def classifier_swapped(self) -> None:
        """End the processes with the old classifier."""
        self._starting = None
        for worker in self._workers:
            worker.end()
        self._workers.clear()

    def _start_processes(self) -> asyncio.Future[None]:
        """Start all processes, later those that replace ended ones."""
        self._least_busy()
        starting = self._starting
        if starting is None or (starting.done() and len(self._workers) < self._max_processes):
            starting = self._starting = asyncio.ensure_future(self._start_missing())
        return starting

    async def _start_missing(self) -> None:
        if self._is_closed:
            return
        if self._failed_starts >= _MAX_FAILED_STARTS:
            # What prevented the starts, such as a lack of memory, may be over.
            if time.monotonic() - self._failed_at < START_AGAIN_S:
                return
            self._failed_starts = 0
        parser = self._parser_message()
        while len(self._workers) < self._max_processes:
            try:
                worker = await _ParserProcess.start(parser, self._limits, self._tick_s)
            except OSError as error:
                logger.error("no parser process could be started: %s", error)
                return
            # Closed, or the classifier was swapped.
            if self._starting is not asyncio.current_task():
                worker.end()
                return
            self._workers.append(worker)
        if len(self._workers) > self.max_running:
            self.max_running = len(self._workers)
            logger.info("started %d parser processes", self.max_running)

    def _parser_message(self) -> bytes:
        parser = self._parser()
        try:
            message = pickled(ParsingHandler(parser), self._limits)
        except Exception as error:  # a custom classifier may raise anything
            if self._classify:
                logger.warning("pages are classified in the crawl's own process: %r", error)
            self._classify = False
            return pickled(ParsingHandler(parser.without_classifier()), self._limits)
        self._classify = True
        return message


def _internal_error(fetched: Fetched, detail: str) -> Failed:
    return Failed(fetched.url, FailureKind.INTERNAL_ERROR, fetched.status, detail)
