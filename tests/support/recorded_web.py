"""A tiny recorded web in memory, and a context manager that serves it on loopback."""

import io
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha1
from itertools import pairwise
from pathlib import Path

from focused.web.warc_records import format_digest
from focused_lab.recorded_web.recorded_web import (
    RecordedResponse,
    RecordedWeb,
    RecordedWebWriter,
    WebSource,
)
from focused_lab.recorded_web.replay_faults import FaultPlan
from focused_lab.recorded_web.replay_server import AccessLogEntry, ReplayServer
from tests.support.access_rules import Access
from tests.support.serving import loop_in_thread


def assert_digest_holds(fields: Mapping[str, str], block: bytes) -> None:
    """Check the payload digest in the fields of a WARC record of a response."""
    if fields["WARC-Type"] == "response":
        payload = block.partition(b"\r\n\r\n")[2]
        assert fields["WARC-Payload-Digest"] == format_digest(sha1(payload).digest())


def html(title: str = "", *links: str, text: str = "") -> bytes:
    """A page with a title, a text and links whose anchors are their addresses."""
    anchors = "".join(f'<p><a href="{link}">{link}</a></p>' for link in links)
    page = f"<!doctype html><title>{title}</title><h1>{title}</h1><p>{text}</p>{anchors}"
    return page.encode()


def page(url: str, body: bytes | str, **headers: str) -> RecordedResponse:
    """A page that answers 200, as HTML unless ``content_type`` tells another type."""
    return answer(url, 200, body, **{"content_type": "text/html; charset=utf-8", **headers})


def redirect(url: str, location: str, status: int = 301) -> RecordedResponse:
    return answer(url, status, b"", location=location)


def answer(url: str, status: int, body: bytes | str = b"", **headers: str) -> RecordedResponse:
    """Any answer; a header's underscores stand for hyphens."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return RecordedResponse(url, status, named, body.encode() if isinstance(body, str) else body)


class MemoryWeb:
    """A recorded web in memory; knows exactly the URLs it was given."""

    def __init__(self, *responses: RecordedResponse) -> None:
        self._responses: Mapping[str, RecordedResponse] = {each.url: each for each in responses}
        self.hosts = frozenset(url.split("/")[2] for url in self._responses)

    def get(self, url: str) -> RecordedResponse | None:
        return self._responses.get(url)


@dataclass(frozen=True, slots=True)
class Served:
    """A web that is served: where, and what was asked of it.

    The line of a request is written after its last byte: read ``accesses``
    when the serving has ended, then none is missing.
    """

    address: str
    log: io.StringIO

    @property
    def accesses(self) -> list[AccessLogEntry]:
        return [AccessLogEntry(**json.loads(line)) for line in self.log.getvalue().splitlines()]


def response_of(web: WebSource, url: str) -> RecordedResponse:
    """The response that is recorded for ``url``."""
    response = web.get(url)
    assert response is not None, url
    return response


def body(web: WebSource, url: str) -> str:
    """The text of the page that is recorded for ``url``."""
    return response_of(web, url).body.decode()


def record_web(
    folder: Path,
    *responses: RecordedResponse,
    labels: Iterable[tuple[str, str]] = (),
    name: str = "web",
) -> Path:
    """Record responses at ``folder``, which is returned."""
    with RecordedWebWriter(folder, name, "test") as writer:
        for each in responses:
            writer.add(each.url, each.status, each.headers, each.body)
        writer.finish(labels)
    return folder


@contextmanager
def recorded(
    folder: Path, *responses: RecordedResponse, labels: Iterable[tuple[str, str]] = ()
) -> Iterator[RecordedWeb]:
    """Record responses at ``folder``, and open the web."""
    with RecordedWeb.open(record_web(folder, *responses, labels=labels)) as web:
        yield web


@contextmanager
def served(
    web: WebSource, faults: FaultPlan | None = None, clock: Callable[[], float] = time.time
) -> Iterator[Served]:
    """Serve a web on a free loopback port, from a thread with an event loop of its own."""
    log = io.StringIO()
    server = ReplayServer(web, clock=clock, faults=faults, access_log=log)
    with loop_in_thread() as run:
        try:
            yield Served(f"127.0.0.1:{run(server.start())}", log)
        finally:
            run(server.stop())


def impolite(
    accesses: Iterable[AccessLogEntry | Access],
    delay_s: float,
    *,
    from_end: bool = True,
    slack_s: float = 0.002,
) -> list[str]:
    """Requests that came too soon after the last answer, or the last request, of their host."""
    by_host: dict[str, list[AccessLogEntry | Access]] = {}
    for access in sorted(accesses, key=lambda access: access.start):
        by_host.setdefault(access.host, []).append(access)
    found = []
    for asked in by_host.values():
        for before, after in pairwise(asked):
            pause_s = after.start - (before.end if from_end else before.start)
            if pause_s < delay_s - slack_s:
                found.append(f"{after.host}{after.path} {pause_s:.3f} s after {before.path}")
    return found
