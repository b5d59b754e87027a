"""Parse sitemaps, RSS, Atom feeds and OAI-PMH lists as pages of links.

Each link has the entry's title as anchor and its summary as context.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from focused.web.decoding import (
    CONTINUATION_PATH,
    FEED_ROOT,
    decode,
    feed_kind,
    gunzip,
)
from focused.web.feed_entries import FeedEntry, read_entries
from focused.web.page import Fetched, Link, Page
from focused.web.robots.robots_tags import parse_robots_directives
from focused.web.urls import normalize_url

MAX_FEED_LINKS = 50_000  # as many as a sitemap may have
MAX_FEED_BYTES = 50_000_000  # uncompressed; likewise
CONTEXT_WORDS = 40

_MAX_TEXT_CHARS = 500_000


def parse_feed(fetched: Fetched, max_links: int = MAX_FEED_LINKS, robot: str = "") -> Page | None:
    """Return a sitemap (XML or text, gzipped or not), RSS, Atom feed or OAI-PMH list as a page.

    None if it is none of these. Never raises: a truncated feed gives the entries before the break.
    A sitemap has links and no text. ``robot`` is the product token that X-Robots-Tag may name.
    """
    kind = feed_kind(fetched)
    if kind is None:
        return None
    channel = FeedEntry()
    return _feed_page(fetched, kind, channel, _entries(fetched, kind, channel), max_links, robot)


def parse_feed_entries(
    fetched: Fetched, max_entries: int = MAX_FEED_LINKS
) -> tuple[str, list[FeedEntry]] | None:
    """Return the kind of a sitemap or feed and its entries with a URL, in order.

    The kind is the root element's name (``urlset``, ``sitemapindex``, ``rss``, ``feed``, ``RDF``,
    ``OAI-PMH``), or ``text`` for a list of URLs. None if it is none of these. Never raises.
    """
    kind = feed_kind(fetched)
    if kind is None:
        return None
    entries = (each for each in _entries(fetched, kind, FeedEntry()) if each.target)
    return kind, list(islice(entries, max_entries))


def _entries(fetched: Fetched, kind: str, channel: FeedEntry) -> Iterator[FeedEntry]:
    text = decode(gunzip(fetched.body, MAX_FEED_BYTES), fetched.headers)[0]
    if kind == "text":
        return (FeedEntry(normalize_url(line.strip()) or "") for line in text.split("\n"))
    root = FEED_ROOT.match(text)
    # Entity declarations before the root are skipped.
    xml = text[root.start("root") :] if root else text
    if kind == "OAI-PMH":
        from focused.web.oai_pmh import read_oai_entries  # few feeds are

        return read_oai_entries(xml, fetched.url)
    return read_entries(xml, channel, fetched.url)


def _feed_page(
    fetched: Fetched,
    kind: str,
    channel: FeedEntry,
    entries: Iterator[FeedEntry],
    max_links: int,
    robot: str,
) -> Page:
    found: dict[str, FeedEntry] = {}
    own_url = normalize_url(fetched.url)
    cut = 0
    for entry in entries:
        target = entry.target
        if len(found) >= max_links:
            cut += bool(target)
        elif target and target != own_url:
            found.setdefault(target, entry)
    last = max(1, len(found) - 1)
    links = tuple(
        Link(
            target,
            entry.title,
            _truncate_texts(entry.summary),
            CONTINUATION_PATH if entry.continues_list else f"{kind}/entry",
            i / last,
        )
        for i, (target, entry) in enumerate(found.items())
    )
    texts = [channel.title, channel.summary]
    texts += [text for entry in found.values() for text in (entry.title, entry.summary)]
    text = " ".join(" ".join(texts).split())[:_MAX_TEXT_CHARS]
    tags = parse_robots_directives(fetched.headers.get("x-robots-tag", ""), (), robot)
    return Page(
        url=fetched.url,
        title=channel.title,
        description=channel.summary,
        text=text,
        links=links,
        links_over_limit=cut,
        noindex=tags.noindex,
        nofollow=tags.nofollow,
        unavailable_after=tags.unavailable_after,
    )


def _truncate_texts(summary: str) -> str:
    return " ".join(summary.split()[:CONTEXT_WORDS])
