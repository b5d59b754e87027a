"""Views of a crawled page, its main text and its sanitised HTML, made in a parser process.

``nh3`` keeps an allowlist of text elements. It drops all attributes that can hold a URL, style or
script, and all elements whose content is not ordinary HTML (SVG, MathML, raw text), so that every
HTML parser understands the result alike. HTML parsers take quadratic time for some input: after
``deadline_s`` the process is ended and the beginning of the page is tried.
"""

from __future__ import annotations

import html
import re
import threading
from dataclasses import dataclass, replace
from typing import Literal

import msgspec
import nh3
from cachetools import LRUCache
from resiliparse.extract.html2text import extract_plain_text

from focused.archive.archive import PageRow
from focused.documents.convert import to_html
from focused.labelling.labelling_task import FetchedPages
from focused.parser_process import HandlerError, ParserProcess, ParsingLimits, ParsingStoppedError
from focused.web.decoding import MAX_PARSED_BYTES, decode, limit_markup
from focused.web.page import Failed, Fetched

MAX_TEXT_CHARS = 20_000
"""More than anybody reads to answer."""

MAX_ORIGINAL_CHARS = 2_000_000
"""Limit of the sanitised HTML; escaping can make input five times as long."""

ORIGINAL_STYLE = (
    "html{background:#fff;color:#222;font:16px/1.5 system-ui,sans-serif}"
    "body{margin:1rem;overflow-wrap:anywhere}pre{white-space:pre-wrap}"
    "table{border-collapse:collapse}td,th{padding:.1em .5em;text-align:start;vertical-align:top}"
)
"""The only style sheet of an original, allowed by its hash."""

# fmt: off
_ALLOWED_ELEMENTS = {
    "abbr", "address", "article", "aside", "b", "bdi", "bdo", "blockquote", "br", "caption", "cite",
    "code", "dd", "del", "details", "dfn", "div", "dl", "dt", "em", "figcaption", "figure",
    "footer", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hgroup", "hr", "i", "ins", "kbd",
    "li", "main", "mark", "nav", "ol", "p", "pre", "q", "rp", "rt", "ruby", "s", "samp", "section",
    "small", "span", "strong", "sub", "summary", "sup", "table", "tbody", "td", "tfoot", "th",
    "thead", "time", "tr", "u", "ul", "var", "wbr",
}
_DROPPED_WITH_CONTENT = {
    "applet", "audio", "canvas", "datalist", "embed", "iframe", "noembed", "noframes", "noscript",
    "object", "script", "select", "style", "svg", "template", "textarea", "title", "video",
}
# fmt: on
_CLEANER = nh3.Cleaner(
    tags=_ALLOWED_ELEMENTS,
    clean_content_tags=_DROPPED_WITH_CONTENT,
    attributes={"*": {"dir", "lang"}, "td": {"colspan", "rowspan"}, "th": {"colspan", "rowspan"}},
    url_schemes=set(),
    link_rel=None,
)


def readable_text(fetched: Fetched) -> str:
    """The main text with paragraphs, at most :data:`MAX_TEXT_CHARS`; may be empty."""
    markup = _decode_html(fetched)
    text = extract_plain_text(markup, main_content=True, alt_texts=False)
    if len(text) < 200:  # no article found: take all visible text
        text = extract_plain_text(markup, main_content=False, alt_texts=False)
    text = "\n".join(line.rstrip() for line in text.split("\n"))
    text = re.sub(r"\n{3,}", "\n\n", text).strip()
    return text if len(text) <= MAX_TEXT_CHARS else f"{text[:MAX_TEXT_CHARS]} …"


def sanitised_html(fetched: Fetched) -> str:
    """The page's HTML without scripts, resources and links, for :func:`original_document`."""
    return _CLEANER.clean(_decode_html(fetched))[:MAX_ORIGINAL_CHARS]


def original_document(sanitised: str, problem: str = "") -> bytes:
    """The document that shows ``sanitised`` HTML below ``problem``."""
    warning = f"<p role=alert><strong>{html.escape(problem)}</strong></p>" if problem else ""
    head = f"<!doctype html><meta charset=utf-8><title>Original</title><style>{ORIGINAL_STYLE}"
    return f"{head}</style><body>{warning}{sanitised}".encode("utf-8", "replace")


def _decode_html(fetched: Fetched) -> str:
    text, _ = decode(fetched.body[:MAX_PARSED_BYTES], fetched.headers)
    return limit_markup(text)


LIMITS = ParsingLimits(cpu_s=3.0, elapsed_s=3.0)
FALLBACK_BYTES = 20_000
"""Tried when the whole page took too long."""

_CACHE_SIZE = 8

ViewKind = Literal["readable_text", "sanitised_html"]
_CacheKey = tuple[ViewKind, str, str | None, int | None]


@dataclass(frozen=True, slots=True)
class RenderedPage:
    """A view of a page. ``problem`` says what is missing from ``content``, and why."""

    content: str
    problem: str = ""


_UNREADABLE = RenderedPage("", "This page cannot be read from the crawl's WARC file.")


class PageRenderer:
    """Prepares the text and the sanitised HTML of crawled pages, with a cache of the latest.

    Thread-safe; callers wait for each other. A call takes at most twice the time of ``limits``
    plus the start of a process. Usable as a context manager.
    """

    def __init__(self, limits: ParsingLimits = LIMITS) -> None:
        self._limits = limits
        self._parser = ParserProcess(_prepare, self._limits)
        self._lock = threading.Lock()
        self._kept: LRUCache[_CacheKey, RenderedPage] = LRUCache(_CACHE_SIZE)

    def text(self, crawled: FetchedPages, page: PageRow) -> RenderedPage:
        """The page's main text."""
        return self._prepare("readable_text", crawled, page)

    def original(self, crawled: FetchedPages, page: PageRow) -> RenderedPage:
        """The page's sanitised HTML."""
        return self._prepare("sanitised_html", crawled, page)

    def close(self) -> None:
        """End the process."""
        self._parser.close()

    def __enter__(self) -> PageRenderer:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _prepare(self, view: ViewKind, crawled: FetchedPages, page: PageRow) -> RenderedPage:
        key = (view, page.url, page.warc_file, page.warc_offset)
        with self._lock:
            found = self._kept.get(key)
            if found is None:
                fetched = crawled.response(page)
                found = self._bounded(view, fetched) if fetched else _UNREADABLE
                self._kept[key] = found
            return found

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
        """Send a request to the process; None when it took too long, failed or died."""
        try:
            return self._parser.ask(_packed((view, fetched))).decode()
        except (HandlerError, ParsingStoppedError, UnicodeDecodeError):
            return None


_packed = msgspec.msgpack.Encoder().encode
_unpacked = msgspec.msgpack.Decoder(tuple[ViewKind, Fetched]).decode


def _prepare(message: bytes) -> bytes:
    """Make the view of a page that ``message`` asks for; runs in the parser process."""
    view, fetched = _unpacked(message)
    converted = to_html(fetched)
    if isinstance(converted, Failed):
        return f"{converted.kind}: {converted.detail}".encode("utf-8", "replace")
    make = readable_text if view == "readable_text" else sanitised_html
    return make(converted).encode("utf-8", "replace")
