"""A recorded web over real HTTP: one loopback port answers for all its hosts.

A request says which host it means by its Host header (or an absolute URI, as
proxies get them) and which scheme by ``X-Focused-Scheme`` (http unless told):
https pages travel as plain HTTP over the loopback, without certificates.

A page that was not recorded is a 404. A host that was not recorded does not
exist: the answer is a 502 with ``X-Focused-Fault: unknown-host``, and the
client's side turns it into the error that a failed DNS look-up gives. Faults
(:mod:`focused.recorded.faults`) are added on request; the access log, JSON
lines, says when each request came and when its last byte had been written.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from aiohttp import web

from focused.errors import ConfigurationError, RecordedWebError
from focused.recorded.faults import Effects, Fault, FaultKind, FaultPlan
from focused.recorded.replay_headers import FAULT_HEADER, SCHEME_HEADER, UNKNOWN_HOST
from focused.recorded.wire import headers_to_pass_on, send

if TYPE_CHECKING:
    from focused.recorded.source import WebSource


@dataclass(frozen=True, slots=True)
class Access:
    """One line of the access log.

    ``time`` is seconds since the epoch; ``start`` and ``end`` are on the
    monotonic clock, in seconds, comparable between processes of one machine.
    ``status`` is 0 when the connection was dropped before a status went out.
    """

    time: float
    start: float
    end: float
    method: str
    scheme: str
    host: str
    path: str
    status: int
    user_agent: str
    fault: str


@dataclass(frozen=True, slots=True)
class _Asked:
    scheme: str
    host: str
    path: str

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.host}{self.path}"


class ReplayServer:
    """Serves one recorded web. ``start`` once, ``stop`` once, in one event loop.

    ``clock`` tells the time of day for the access log (seconds since the
    epoch); ``access_log`` gets a line of JSON for each request.
    """

    def __init__(
        self,
        source: WebSource,
        *,
        clock: Callable[[], float],
        faults: FaultPlan | None = None,
        access_log: TextIO | None = None,
    ) -> None:
        self._source = source
        self._hosts = frozenset(source.hosts)
        self._faults = faults or FaultPlan()
        self._attempts: Counter[str] = Counter()
        self._access_log = access_log
        self._clock = clock
        self._runner: web.ServerRunner | None = None

    async def start(self, host: str = "127.0.0.1", port: int = 0) -> int:
        """Listen; return the port, which the system chooses when 0 is asked for.

        Raises RecordedWebError when the port cannot be had.
        """
        # The recorded error pages are answers, not accidents: no log of aiohttp's own.
        server = web.Server(self._answer, access_log=None)
        self._runner = web.ServerRunner(server, shutdown_timeout=0.1)
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, host, port, backlog=1024).start()
        except OSError as error:
            await self._runner.cleanup()
            raise RecordedWebError(
                f"cannot listen on {host}:{port}: {error.strerror}; choose another --port"
            ) from error
        return int(self._runner.addresses[0][1])

    async def stop(self) -> None:
        """Close the port and all connections."""
        if self._runner is not None:
            await self._runner.cleanup()

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        start = asyncio.get_running_loop().time()
        asked = _asked(request)
        effects = self._effects(asked)
        if effects.latency_s:
            await asyncio.sleep(effects.latency_s)
        response = self._respond(request, asked, effects.fault)
        try:
            sent = await send(request, response, effects.fault)
        except ConnectionError:
            sent = response  # the client went away, or we dropped it: the log line is still due
        if self._access_log is not None:
            self._log(request, asked, response, effects, start)
        return sent

    def _effects(self, asked: _Asked) -> Effects:
        if not self._faults.faults or asked.host not in self._hosts:
            return Effects()
        self._attempts[asked.url] += 1
        return self._faults.effects(asked.host, asked.path, self._attempts[asked.url])

    def _respond(
        self, request: web.BaseRequest, asked: _Asked, fault: Fault | None
    ) -> web.Response:
        if asked.host not in self._hosts:
            return web.Response(status=502, headers={FAULT_HEADER: UNKNOWN_HOST})
        if fault is not None and fault.status is not None:
            seconds = fault.retry_after_s
            retry = {} if seconds is None else {"Retry-After": str(seconds)}
            return _plain(fault.status, f"Fault {fault}", {FAULT_HEADER: "status", **retry})
        if request.method not in ("GET", "HEAD"):
            return _plain(405, "A recorded web is read-only", {"Allow": "GET, HEAD"})
        try:
            recorded = self._source.get(asked.url)
        except RecordedWebError as error:
            return _plain(500, str(error), {FAULT_HEADER: "unreadable"})
        if recorded is None:
            return _plain(404, f"Not recorded: {asked.url}")
        headers = headers_to_pass_on(recorded.headers)
        return web.Response(status=recorded.status, headers=headers, body=recorded.body)

    def _log(
        self,
        request: web.BaseRequest,
        asked: _Asked,
        response: web.StreamResponse,
        effects: Effects,
        start: float,
    ) -> None:
        fault = effects.fault
        dropped = fault is not None and fault.kind is FaultKind.DROP_HEADERS
        access = Access(
            time=self._clock(),
            start=start,
            end=asyncio.get_running_loop().time(),
            method=request.method,
            scheme=asked.scheme,
            host=asked.host,
            path=asked.path,
            status=0 if dropped else response.status,
            user_agent=request.headers.get("User-Agent", ""),
            fault="" if fault is None else str(fault.kind),
        )
        assert self._access_log is not None
        self._access_log.write(json.dumps(asdict(access)) + "\n")
        self._access_log.flush()


def _asked(request: web.BaseRequest) -> _Asked:
    scheme, host, path = request.headers.get(SCHEME_HEADER, "http").lower(), "", request.raw_path
    if path.startswith(("http://", "https://")):
        scheme, _, rest = path.partition("://")
        host, _, path = rest.partition("/")
        path = "/" + path
    else:
        host = request.headers.get("Host", "")
    own_port = {"http": ":80", "https": ":443"}.get(scheme, "")
    return _Asked(scheme, host.lower().removesuffix(own_port), path.partition("#")[0])


def _plain(status: int, text: str, headers: Mapping[str, str] | None = None) -> web.Response:
    return web.Response(status=status, text=text + "\n", headers=headers)


def serve_forever(
    folder: Path,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    faults: FaultPlan | None = None,
    access_log: Path | None = None,
    on_ready: Callable[[int], None] = lambda port: None,
    stop: Callable[[], None] | None = None,
) -> None:
    """Serve a recorded web until SIGINT or SIGTERM, or until ``stop`` returns.

    ``on_ready`` is told the port; ``stop`` runs in a thread of its own. The
    access log is appended to. Raises RecordedWebError when the folder is no
    recorded web or the port cannot be had, ConfigurationError when the access
    log cannot be written.
    """
    # Here, so that serving any other source does not load the WARC reader.
    from focused.recorded.store import RecordedWeb

    with contextlib.ExitStack() as stack:
        log = None
        if access_log is not None:
            log = stack.enter_context(_open_to_append(access_log))
        source = stack.enter_context(RecordedWeb.open(folder))
        asyncio.run(_serve(source, host, port, faults, log, on_ready, stop))


def _open_to_append(path: Path) -> TextIO:
    try:
        return path.open("a", encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(
            f"{path}: the access log cannot be written: {error.strerror}"
        ) from error


async def _serve(
    source: WebSource,
    host: str,
    port: int,
    faults: FaultPlan | None,
    access_log: TextIO | None,
    on_ready: Callable[[int], None],
    stop: Callable[[], None] | None,
) -> None:
    loop, stopped = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        # Not on Windows, nor off the main thread: there Ctrl-C raises by itself.
        with contextlib.suppress(NotImplementedError, RuntimeError):
            loop.add_signal_handler(number, stopped.set)
    server = ReplayServer(source, clock=time.time, faults=faults, access_log=access_log)
    on_ready(await server.start(host, port))
    if stop is not None:
        threading.Thread(
            target=lambda: (stop(), loop.call_soon_threadsafe(stopped.set)), daemon=True
        ).start()
    await stopped.wait()
    await server.stop()
