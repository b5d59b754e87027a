"""Sitemaps, RSS and Atom as pages of links, so that any of them can be a seed.

XML is read as a stream: no network, no entities of its own, and what is
broken is skipped. A feed becomes a :class:`~focused.web.page.Page` whose
links carry the entries' titles as anchors and their summaries as context.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from html import unescape
from io import BytesIO

from lxml import etree

from focused.web.decode import content_type_of, decode
from focused.web.page import Fetched, Link, Page
from focused.web.url import normalise

MAX_FEED_LINKS = 50_000  # as many as a sitemap may have
MAX_FEED_BYTES = 50_000_000  # uncompressed; likewise
MAX_TITLE_CHARS = 300
CONTEXT_WORDS = 40

_START_BYTES = 4_096
_SUMMARY_CHARS = 2_000
_MAX_TEXT_CHARS = 500_000
_GZIP = b"\x1f\x8b"
_ROOT = re.compile(
    r"\ufeff?\s*+(?>(?:<\?[^>]*+>|<!--.{0,2000}?-->|<![^>\[]*+(?:\[[^\]]*+\])?+[^>]*+>)\s*+)*+"
    r"<(?:[A-Za-z][\w.-]*:)?(urlset|sitemapindex|rss|feed|RDF)[\s>/]",
    re.DOTALL,
)
_URL_LINE = re.compile(r"https?://\S+", re.IGNORECASE)
_ENTRIES = frozenset({"url", "sitemap", "item", "entry"})
_SUMMARIES = frozenset({"description", "summary", "content", "encoded"})
_MARKUP = re.compile(r"<[^<>]{0,1000}>")


@dataclass(slots=True)
class _Entry:
    """What one entry of a feed says; ``url`` as it stands there."""

    url: str = ""
    permalink: str = ""
    title: str = ""
    summary: str = ""


def is_feed(fetched: Fetched) -> bool:
    """Tell, from its beginning, whether a response is a sitemap or a feed."""
    return _kind(fetched, _unpack(fetched.body, _START_BYTES)) is not None


def parse_feed(fetched: Fetched, max_links: int = MAX_FEED_LINKS) -> Page | None:
    """Return a sitemap (XML or text, gzipped or not), RSS or Atom feed as a page.

    None when it is nothing of the kind. Never raises: a feed that breaks off
    gives the entries before the break. A sitemap has links and no text.
    """
    kind = _kind(fetched, _unpack(fetched.body, _START_BYTES))
    if kind is None:
        return None
    body = _unpack(fetched.body, MAX_FEED_BYTES)
    if kind == "text":
        lines = decode(body, fetched.headers)[0].split("\n")
        entries = (_Entry(line.strip()) for line in lines)
        return _page(fetched.url, kind, _Entry(), entries, max_links)
    channel = _Entry()
    return _page(fetched.url, kind, channel, _entries(body, channel), max_links)


def _unpack(body: bytes, max_bytes: int) -> bytes:
    """Return at most ``max_bytes`` of a body, gunzipped when it is gzip."""
    if not body.startswith(_GZIP):
        return body[:max_bytes]
    try:
        return zlib.decompressobj(wbits=31).decompress(body, max_bytes)
    except zlib.error:
        return b""


def _kind(fetched: Fetched, start: bytes) -> str | None:
    """Return the root's name, ``"text"`` for a list of URLs, or None."""
    text = decode(start[:_START_BYTES], {})[0]
    root = _ROOT.match(text)
    if root:
        return root[1]
    if content_type_of(fetched.headers) not in ("", "text/plain", "application/gzip"):
        return None
    lines = text.split("\n")[:-1] if len(start) >= _START_BYTES else text.split("\n")
    lines = [line.strip() for line in lines if line.strip()]
    return "text" if lines and all(map(_URL_LINE.fullmatch, lines)) else None


def _page(url: str, kind: str, channel: _Entry, entries: Iterator[_Entry], max_links: int) -> Page:
    found: dict[str, _Entry] = {}
    own_url = normalise(url)
    for entry in entries:
        href = entry.url or entry.permalink
        target = normalise(href, url) if href else None
        if target is not None and target != own_url:
            found.setdefault(target, entry)
        if len(found) >= max_links:
            break
    last = max(1, len(found) - 1)
    links = tuple(
        Link(target, entry.title, _words(entry.summary), f"{kind}/entry", i / last)
        for i, (target, entry) in enumerate(found.items())
    )
    says = [channel.title, channel.summary]
    says += [text for entry in found.values() for text in (entry.title, entry.summary)]
    text = " ".join(" ".join(says).split())[:_MAX_TEXT_CHARS]
    return Page(url, title=channel.title, description=channel.summary, text=text, links=links)


def _entries(body: bytes, channel: _Entry) -> Iterator[_Entry]:
    """Yield the entries in order; what stands outside of them goes to ``channel``."""
    entry: _Entry | None = None
    events = etree.iterparse(
        BytesIO(body),
        events=("start", "end"),
        recover=True,
        huge_tree=False,
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        remove_comments=True,
        remove_pis=True,
    )
    try:
        for event, element in events:
            name = _local(element.tag)
            if event == "start":
                entry = _Entry() if name in _ENTRIES else entry
                continue
            _read(element, name, channel if entry is None else entry)
            if name in _ENTRIES and entry is not None:
                yield entry
                entry = None
                _forget(element)
    except etree.XMLSyntaxError:
        return


def _read(element: etree._Element, name: str, into: _Entry) -> None:
    text = (element.text or "").strip()
    if name == "loc" or (name == "link" and text):
        into.url = into.url or text
    elif name == "link" and element.get("rel", "alternate") == "alternate":
        into.url = into.url or str(element.get("href", ""))
    elif name == "guid" and element.get("isPermaLink") != "false":
        into.permalink = text
    elif name == "title":
        into.title = into.title or _plain("".join(element.itertext()))[:MAX_TITLE_CHARS]
    elif name in _SUMMARIES:
        into.summary = into.summary or _plain(_inner_text(element))


def _inner_text(element: etree._Element) -> str:
    return " ".join(str(text) for text in element.itertext())[: 2 * _SUMMARY_CHARS]


def _forget(element: etree._Element) -> None:
    """Free an entry and what stands before it: a long sitemap is not kept as a tree."""
    element.clear()
    parent = element.getparent()
    while parent is not None and element.getprevious() is not None:
        del parent[0]


def _local(tag: object) -> str:
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def _plain(markup: str) -> str:
    """Return the text of an entry's title or summary, which may be escaped HTML."""
    text = _MARKUP.sub(" ", unescape(markup[: 2 * _SUMMARY_CHARS]))
    return " ".join(text.split())[:_SUMMARY_CHARS]


def _words(summary: str) -> str:
    return " ".join(summary.split()[:CONTEXT_WORDS])
