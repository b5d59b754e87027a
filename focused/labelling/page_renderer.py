"""Views of pages for the label page, made in a parser process that is ended at its deadline.

After ``deadline_s`` the beginning of the page is tried, which is too short to take long.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import Literal

import msgspec

from focused.archive.warc_files import WarcPosition
from focused.labelling import page_views
from focused.labelling.crawled_pages import CrawledPage, FetchedPages
from focused.parser_process import HandlerError, ParserProcess, ParsingLimits, ParsingStoppedError
from focused.web.page import Fetched

DEADLINE_S = 3.0
FALLBACK_BYTES = 20_000
"""Tried when the whole page took too long."""

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
    """Prepares the text and the sanitised HTML of crawled pages, with a cache of the latest.

    Thread-safe; callers wait for each other. A call takes at most twice ``deadline_s`` plus the
    start of a process. Usable as a context manager.
    """

    def __init__(self, deadline_s: float = DEADLINE_S) -> None:
        self._limits = ParsingLimits(cpu_s=deadline_s, elapsed_s=deadline_s)
        self._parser = ParserProcess(_prepare, self._limits)
        self._lock = threading.Lock()
        self._kept: OrderedDict[_CacheKey, RenderedPage] = OrderedDict()

    def text(self, crawled: FetchedPages, page: CrawledPage) -> RenderedPage:
        """The page's main text."""
        return self._prepare("readable_text", crawled, page)

    def original(self, crawled: FetchedPages, page: CrawledPage) -> RenderedPage:
        """The page's sanitised HTML."""
        return self._prepare("sanitised_html", crawled, page)

    def close(self) -> None:
        """End the process."""
        self._parser.close()

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
        bounds = f"{self._limits.elapsed_s:g} s and {self._limits.memory_mb / 1000:g} GB of memory"
        shown = "nothing" if beginning is None else f"only its first {FALLBACK_BYTES // 1000} kB"
        return RenderedPage(
            beginning or "",
            f"This page could not be prepared within {bounds}: {shown} can be shown here.",
        )

    def _ask(self, view: ViewKind, fetched: Fetched) -> str | None:
        """Return what the process answers; None when it took too long, failed or died."""
        try:
            return self._parser.ask(_packed((view, fetched))).decode()
        except (HandlerError, ParsingStoppedError, UnicodeDecodeError):
            return None


_packed = msgspec.msgpack.Encoder().encode
_unpacked = msgspec.msgpack.Decoder(tuple[ViewKind, Fetched]).decode


def _prepare(message: bytes) -> bytes:
    """Make the view of a page that ``message`` asks for; runs in the parser process."""
    view, fetched = _unpacked(message)
    make = page_views.readable_text if view == "readable_text" else page_views.sanitised_html
    return make(fetched).encode("utf-8", "replace")
