"""Replay a recorded web over HTTP: one loopback port answers for all its hosts.

The Host header (or an absolute URI, as sent to proxies) names the host, ``X-Focused-Scheme`` the
scheme: https pages are sent as plain HTTP over loopback. A page that was not recorded is a 404. For
a host that was not recorded the response is a 502 with ``X-Focused-Fault: unknown-host``, which the
client turns into a DNS error. Conditional requests are answered with 304 if the response's ETag or
Last-Modified allows it. The access log has one JSON line for each request.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TextIO

from aiohttp import web
from multidict import CIMultiDict

from focused.errors import ConfigurationError, RecordedWebError
from focused.recorded_web import FAULT_HEADER, SCHEME_HEADER, UNKNOWN_HOST
from focused_lab.recorded_web.conditional_requests import headers_of_not_modified, http_date
from focused_lab.recorded_web.replay_faults import (
    SOFT_404_PAGE,
    Fault,
    FaultEffects,
    FaultKind,
    FaultPlan,
    answers_not_modified,
    lie,
)

if TYPE_CHECKING:
    from focused_lab.recorded_web.recorded_web import RecordedWeb, WebSource
    from focused_lab.recorded_web.replay_clock import ReplayClock


@dataclass(frozen=True, slots=True)
class AccessLogEntry:
    """One line of the access log.

    ``time`` is in seconds since the epoch by the server's clock; ``start`` (arrival) and ``end``
    are seconds of the monotonic clock, comparable between processes of one machine. ``end`` is
    when a fault had sent its last byte, and when any other answer was about to be sent: a busy
    server notices the end of sending after the client has the answer. ``status`` is 0 if the
    connection was dropped before the status was sent.
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
class _RequestedUrl:
    scheme: str
    host: str
    path: str

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.host}{self.path}"


class ReplayServer:
    """Serves one recorded web; call ``start`` and ``stop`` once, in one event loop.

    ``clock`` returns seconds since the epoch for the Date header and the access log.
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
        """Listen; return the port, which the system chooses for 0.

        Raises RecordedWebError if the port cannot be bound.
        """
        # aiohttp's own log would report recorded error pages.
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
        requested = _requested_url(request)
        effects = self._effects(requested)
        if effects.latency_s:
            await asyncio.sleep(effects.latency_s)
        response = self._respond(request, requested, effects.fault)
        response.headers.setdefault("Date", http_date(self._clock()))
        end = asyncio.get_running_loop().time()
        try:
            sent = await send_response(request, response, effects.fault)
        except ConnectionError:
            sent = response  # the client closed, or a fault did: log the request anyway
        if effects.fault is not None:
            end = asyncio.get_running_loop().time()
        if self._access_log is not None:
            self._log(request, requested, response, effects, start, end)
        return sent

    def _effects(self, requested: _RequestedUrl) -> FaultEffects:
        if not self._faults.faults or requested.host not in self._hosts:
            return FaultEffects()
        self._attempts[requested.url] += 1
        return self._faults.effects(requested.host, requested.path, self._attempts[requested.url])

    def _respond(
        self, request: web.BaseRequest, requested: _RequestedUrl, fault: Fault | None
    ) -> web.Response:
        if requested.host not in self._hosts:
            return web.Response(status=502, headers={FAULT_HEADER: UNKNOWN_HOST})
        if fault is not None and fault.status is not None:
            seconds = fault.retry_after_s
            retry = {} if seconds is None else {"Retry-After": str(seconds)}
            return _text_response(fault.status, f"Fault {fault}", {FAULT_HEADER: "status", **retry})
        if request.method not in ("GET", "HEAD"):
            return _text_response(405, "A recorded web is read-only", {"Allow": "GET, HEAD"})
        try:
            recorded = self._source.get(requested.url)
        except RecordedWebError as error:
            return _text_response(500, str(error), {FAULT_HEADER: "unreadable"})
        if recorded is None:
            return _not_recorded(requested.url, fault)
        recorded = lie(recorded, fault, self._clock())
        asked = {name.lower(): value for name, value in request.headers.items()}
        if answers_not_modified(asked, recorded, fault):
            return web.Response(status=304, headers=headers_of_not_modified(recorded.headers))
        headers = end_to_end_headers(recorded.headers)
        return web.Response(status=recorded.status, headers=headers, body=recorded.body)

    def _log(
        self,
        request: web.BaseRequest,
        requested: _RequestedUrl,
        response: web.StreamResponse,
        effects: FaultEffects,
        start: float,
        end: float,
    ) -> None:
        fault = effects.fault
        dropped = fault is not None and fault.kind is FaultKind.DROP_HEADERS
        access = AccessLogEntry(
            time=self._clock(),
            start=start,
            end=end,
            method=request.method,
            scheme=requested.scheme,
            host=requested.host,
            path=requested.path,
            status=0 if dropped else response.status,
            user_agent=request.headers.get("User-Agent", ""),
            fault="" if fault is None else str(fault.kind),
        )
        assert self._access_log is not None
        self._access_log.write(json.dumps(asdict(access)) + "\n")
        self._access_log.flush()


def _requested_url(request: web.BaseRequest) -> _RequestedUrl:
    scheme, host, path = request.headers.get(SCHEME_HEADER, "http").lower(), "", request.raw_path
    if path.startswith(("http://", "https://")):
        scheme, _, rest = path.partition("://")
        host, _, path = rest.partition("/")
        path = "/" + path
    else:
        host = request.headers.get("Host", "")
    own_port = {"http": ":80", "https": ":443"}.get(scheme, "")
    return _RequestedUrl(scheme, host.lower().removesuffix(own_port), path.partition("#")[0])


def _text_response(
    status: int, text: str, headers: Mapping[str, str] | None = None
) -> web.Response:
    return web.Response(status=status, text=text + "\n", headers=headers)


def _not_recorded(url: str, fault: Fault | None) -> web.Response:
    if fault is not None and fault.kind is FaultKind.SOFT_404:
        return web.Response(body=SOFT_404_PAGE, content_type="text/html")
    return _text_response(404, f"Not recorded: {url}")


class SourceOnClock(Protocol):
    """Serves a recorded web as another one by a clock of its own; it must be picklable."""

    def open(
        self, web: RecordedWeb, real_time: Callable[[], float]
    ) -> tuple[WebSource, ReplayClock]:
        """Return what answers, and the clock that begins now."""


def serve_forever(
    folder: Path,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    faults: FaultPlan | None = None,
    access_log: Path | None = None,
    changing: SourceOnClock | None = None,
    on_clock: Callable[[ReplayClock], None] = lambda clock: None,
    on_ready: Callable[[int], None] = lambda port: None,
    stop: Callable[[], None] | None = None,
) -> None:
    """Serve a recorded web until SIGINT or SIGTERM, or until ``stop`` returns.

    ``changing`` makes its pages change; ``on_clock`` then receives the clock, which starts when the
    server does. ``on_ready`` receives the port; ``stop`` runs in its own thread. The access log is
    appended to. Raises RecordedWebError if there is no readable web or the port cannot be bound,
    ConfigurationError if the access log cannot be written or a change history cannot be read.
    """
    # Other sources do not need the WARC reader.
    from focused_lab.recorded_web.recorded_web import RecordedWeb

    with contextlib.ExitStack() as stack:
        log = None
        if access_log is not None:
            log = stack.enter_context(_open_to_append(access_log))
        recorded = stack.enter_context(RecordedWeb.open(folder))
        source: WebSource = recorded
        clock: Callable[[], float] = time.time
        if changing is not None:
            source, replay_clock = changing.open(recorded, time.time)
            clock = replay_clock
            on_clock(replay_clock)
        asyncio.run(_serve(source, clock, host, port, faults, log, on_ready, stop))


def _open_to_append(path: Path) -> TextIO:
    try:
        return path.open("a", encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(
            f"{path}: the access log cannot be written: {error.strerror}"
        ) from error


async def _serve(
    source: WebSource,
    clock: Callable[[], float],
    host: str,
    port: int,
    faults: FaultPlan | None,
    access_log: TextIO | None,
    on_ready: Callable[[int], None],
    stop: Callable[[], None] | None,
) -> None:
    loop, stopped = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        # Not available on Windows and outside of the main thread, where Ctrl-C raises.
        with contextlib.suppress(NotImplementedError, RuntimeError):
            loop.add_signal_handler(number, stopped.set)
    server = ReplayServer(source, clock=clock, faults=faults, access_log=access_log)
    on_ready(await server.start(host, port))
    if stop is not None:
        threading.Thread(
            target=lambda: (stop(), loop.call_soon_threadsafe(stopped.set)), daemon=True
        ).start()
    await stopped.wait()
    await server.stop()


# Hop-by-hop headers (RFC 9110, section 7.6.1), and two that describe the encoded body.
_HOP_BY_HOP_HEADERS = frozenset(
    {
        "connection",
        "proxy-connection",
        "keep-alive",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "proxy-authenticate",
        "content-length",
        "content-encoding",
    }
)
_SLOW_INTERVAL_S = 0.05
_CONTROL_CHARACTERS = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")  # aiohttp refuses to send them


def end_to_end_headers(recorded: Mapping[str, str]) -> CIMultiDict[str]:
    """Return the recorded headers that apply to a decoded body on a new connection."""
    headers = CIMultiDict(
        {name: _CONTROL_CHARACTERS.sub(" ", value) for name, value in recorded.items()}
    )
    gone = {name.strip().lower() for name in headers.get("Connection", "").split(",")}
    for name in {name.lower() for name in headers} & (_HOP_BY_HOP_HEADERS | gone):
        headers.popall(name)
    # Empty: aiohttp's default would be application/octet-stream.
    headers.setdefault("Content-Type", "")
    return headers


async def send_response(
    request: web.BaseRequest, response: web.Response, fault: Fault | None
) -> web.StreamResponse:
    """Send the response with the fault's effect."""
    kind = None if fault is None else fault.kind
    if kind is FaultKind.DROP_HEADERS and request.transport is not None:
        request.transport.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/ht")
        request.transport.close()
    elif kind in (FaultKind.DROP_BODY, FaultKind.SLOW) and request.method != "HEAD":
        assert fault is not None and isinstance(response.body, bytes)
        return await _send_in_pieces(request, response, response.body, fault.bytes_per_s)
    else:
        await response.prepare(request)
        await response.write_eof()
    return response


async def _send_in_pieces(
    request: web.BaseRequest, response: web.Response, body: bytes, bytes_per_s: float | None
) -> web.StreamResponse:
    """Send the body slowly or, without a rate, half of it before closing."""
    pieces = web.StreamResponse(status=response.status, headers=response.headers)
    pieces.content_length = len(body)
    await pieces.prepare(request)
    if bytes_per_s is None:
        await pieces.write(body[: len(body) // 2])
        if request.transport is not None:
            request.transport.close()
        return pieces
    step = max(1, int(bytes_per_s * _SLOW_INTERVAL_S))
    for at in range(0, len(body), step):
        piece = body[at : at + step]
        await asyncio.sleep(len(piece) / bytes_per_s)
        await pieces.write(piece)
    await pieces.write_eof()
    return pieces
