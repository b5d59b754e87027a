"""Sitemaps, RSS and Atom as pages of links, so that any of them can be a seed.

XML is read as a stream: no network, no entities of its own, and what is
broken is skipped. A feed becomes a :class:`~focused.web.page.Page` whose
links carry the entries' titles as anchors and their summaries as context.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator

from focused.web.decode import content_type_of, decode
from focused.web.feed_entries import Entry, read_entries
from focused.web.page import Fetched, Link, Page
from focused.web.robots_tags import read_tags
from focused.web.url import normalise

MAX_FEED_LINKS = 50_000  # as many as a sitemap may have
MAX_FEED_BYTES = 50_000_000  # uncompressed; likewise
CONTEXT_WORDS = 40

_START_BYTES = 4_096
_MAX_TEXT_CHARS = 500_000
_GZIP = b"\x1f\x8b"
_ROOT = re.compile(
    r"\ufeff?\s*+(?>(?:<\?[^>]*+>|<!--.{0,2000}?-->|<![^>\[]*+(?:\[[^\]]*+\])?+[^>]*+>)\s*+)*+"
    r"(?P<root><)(?:[A-Za-z][\w.-]*:)?(urlset|sitemapindex|rss|feed|RDF)[\s>/]",
    re.DOTALL,
)
_URL_LINE = re.compile(r"https?://\S+", re.IGNORECASE)


def is_feed(fetched: Fetched) -> bool:
    """Tell, from its beginning, whether a response is a sitemap or a feed."""
    return _kind(fetched, _unpack(fetched.body, _START_BYTES)) is not None


def parse_feed(fetched: Fetched, max_links: int = MAX_FEED_LINKS, robot: str = "") -> Page | None:
    """Return a sitemap (XML or text, gzipped or not), RSS or Atom feed as a page.

    None when it is nothing of the kind. Never raises: a feed that breaks off
    gives the entries before the break. A sitemap has links and no text.
    ``robot`` is the product token that X-Robots-Tag may speak to.
    """
    kind = _kind(fetched, _unpack(fetched.body, _START_BYTES))
    if kind is None:
        return None
    text = decode(_unpack(fetched.body, MAX_FEED_BYTES), fetched.headers)[0]
    if kind == "text":
        lines = (Entry(normalise(line.strip()) or "") for line in text.split("\n"))
        return _page(fetched, kind, Entry(), lines, max_links, robot)
    channel = Entry()
    root = _ROOT.match(text)
    # What declares entities stands before the root, and is not read.
    xml = text[root.start("root") :] if root else text
    entries = read_entries(xml, channel, fetched.url)
    return _page(fetched, kind, channel, entries, max_links, robot)


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
        return root[2]
    if content_type_of(fetched.headers) == "text/html":
        return None
    lines = text.split("\n")[:-1] if len(start) >= _START_BYTES else text.split("\n")
    lines = [line.strip() for line in lines if line.strip()]
    return "text" if lines and all(map(_URL_LINE.fullmatch, lines)) else None


def _page(
    fetched: Fetched,
    kind: str,
    channel: Entry,
    entries: Iterator[Entry],
    max_links: int,
    robot: str,
) -> Page:
    found: dict[str, Entry] = {}
    own_url = normalise(fetched.url)
    cut = 0
    for entry in entries:
        target = entry.url or entry.fallback_url
        if len(found) >= max_links:
            cut += bool(target)
        elif target and target != own_url:
            found.setdefault(target, entry)
    last = max(1, len(found) - 1)
    links = tuple(
        Link(target, entry.title, _words(entry.summary), f"{kind}/entry", i / last)
        for i, (target, entry) in enumerate(found.items())
    )
    says = [channel.title, channel.summary]
    says += [text for entry in found.values() for text in (entry.title, entry.summary)]
    text = " ".join(" ".join(says).split())[:_MAX_TEXT_CHARS]
    tags = read_tags(fetched.headers.get("x-robots-tag", ""), (), robot)
    return Page(
        url=fetched.url,
        title=channel.title,
        description=channel.summary,
        text=text,
        links=links,
        links_cut=cut,
        noindex=tags.noindex,
        nofollow=tags.nofollow,
        unavailable_after=tags.unavailable_after,
    )


def _words(summary: str) -> str:
    return " ".join(summary.split()[:CONTEXT_WORDS])
