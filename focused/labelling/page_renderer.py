"""Prepares pages for display in a process that is killed when it takes too long.

Parsers of HTML are quadratic for some input, and a thread that runs one cannot be stopped.
So text extraction and sanitising run in a child process with a memory limit. After
``deadline_s`` the child is killed and the beginning of the page is tried, which is too short to
take long. The child answers in plain UTF-8: what a page makes of it cannot run code here.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import subprocess
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from typing import Literal

from focused.archive.warc_files import WarcPosition
from focused.labelling import page_views
from focused.labelling.crawled_pages import CrawledPage, FetchedPages
from focused.web.page import Fetched

DEADLINE_S = 3.0
FALLBACK_BYTES = 20_000
"""Tried when the whole page took too long."""

_START_TIMEOUT_S = 60.0
_MAX_MEMORY_BYTES = 1 << 30
_MAX_ANSWER_BYTES = 4 * page_views.MAX_ORIGINAL_CHARS + 1_000
_CACHE_SIZE = 8

ViewKind = Literal["readable_text", "sanitised_html"]
_CacheKey = tuple[ViewKind, str, WarcPosition]


@dataclass(frozen=True, slots=True)
class RenderedPage:
    """A view of a page. ``problem`` says what is missing from ``content``, and why."""

    content: str
    problem: str = ""


_UNREADABLE = RenderedPage("", "This page cannot be read from the crawl's WARC file.")


class PageRenderer:
    """Prepares the text and the sanitised original of crawled pages, and keeps the latest.

    Thread-safe; callers wait for each other. A call takes twice ``deadline_s`` at most, the
    start of a process not counted. Usable as a context manager.
    """

    def __init__(self, deadline_s: float = DEADLINE_S) -> None:
        self._deadline_s = deadline_s
        self._lock = threading.Lock()
        self._kept: OrderedDict[_CacheKey, RenderedPage] = OrderedDict()
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None

    def text(self, crawled: FetchedPages, page: CrawledPage) -> RenderedPage:
        """The page's main text."""
        return self._prepare("readable_text", crawled, page)

    def original(self, crawled: FetchedPages, page: CrawledPage) -> RenderedPage:
        """The page's sanitised HTML."""
        return self._prepare("sanitised_html", crawled, page)

    def close(self) -> None:
        """Kill the process."""
        with self._lock:
            self._kill()

    def __enter__(self) -> PageRenderer:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _prepare(self, view: ViewKind, crawled: FetchedPages, page: CrawledPage) -> RenderedPage:
        key = (view, page.url, page.place)
        with self._lock:
            if key not in self._kept:
                fetched = crawled.response(page)
                self._kept[key] = self._bounded(view, fetched) if fetched else _UNREADABLE
            self._kept.move_to_end(key)
            while len(self._kept) > _CACHE_SIZE:
                self._kept.popitem(last=False)
            return self._kept[key]

    def _bounded(self, view: ViewKind, fetched: Fetched) -> RenderedPage:
        whole = self._ask(view, fetched)
        if whole is not None:
            return RenderedPage(whole)
        beginning = self._ask(view, replace(fetched, body=fetched.body[:FALLBACK_BYTES]))
        bounds = f"{self._deadline_s:g} s and {_MAX_MEMORY_BYTES >> 30} GB of memory"
        shown = "nothing" if beginning is None else f"only its first {FALLBACK_BYTES // 1000} kB"
        return RenderedPage(
            beginning or "",
            f"This page could not be prepared within {bounds}: {shown} can be shown here.",
        )

    def _ask(self, view: ViewKind, fetched: Fetched) -> str | None:
        """What the process answers; None when it took too long, failed or died."""
        try:
            connection = self._connection or self._start()
            connection.send((view, fetched))
            if connection.poll(self._deadline_s):
                answer = connection.recv_bytes(_MAX_ANSWER_BYTES)
                return answer[1:].decode() if answer[:1] == b"+" else None
        except (OSError, EOFError, UnicodeDecodeError):
            pass
        self._kill()
        return None

    def _start(self) -> Connection:
        ours, theirs = multiprocessing.Pipe()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__, str(theirs.fileno()), str(self._deadline_s)],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
        self._connection = ours
        if not ours.poll(_START_TIMEOUT_S):
            raise TimeoutError(f"the page reader did not start within {_START_TIMEOUT_S:g} s")
        ours.recv_bytes(_MAX_ANSWER_BYTES)
        return ours

    def _kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        if self._connection is not None:
            self._connection.close()
        self._process = self._connection = None


def _serve_requests(connection: Connection, deadline_s: float) -> None:
    """Answer questions until the other end is closed; the child's main function."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    with suppress(OSError, ValueError):  # some systems have no such limit, or a lower one
        resource.setrlimit(resource.RLIMIT_AS, (_MAX_MEMORY_BYTES, _MAX_MEMORY_BYTES))
    views: dict[ViewKind, Callable[[Fetched], str]] = {
        "readable_text": page_views.readable_text,
        "sanitised_html": page_views.sanitised_html,
    }
    connection.send_bytes(b"ready")
    with suppress(EOFError, OSError):
        while True:
            view, fetched = connection.recv()
            _limit_cpu(deadline_s)
            try:
                answer = b"+" + views[view](fetched).encode("utf-8", "replace")
            except Exception:  # a page may bring any parser to raise; the next one is another page
                answer = b"-"
            connection.send_bytes(answer)


def _limit_cpu(deadline_s: float) -> None:
    """End this process if it outlives its parent in an endless question."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    soft = int(used.ru_utime + used.ru_stime + deadline_s) + 2
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CPU, (soft, resource.getrlimit(resource.RLIMIT_CPU)[1]))


if __name__ == "__main__":
    _serve_requests(Connection(int(sys.argv[1])), float(sys.argv[2]))
