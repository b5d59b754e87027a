"""Parse sitemaps, RSS, Atom feeds and OAI-PMH lists as pages of links; read directory listings.

Each link has the entry's title as anchor and its summary as context.

Apache, nginx and lighttpd list a directory as HTML with the title "Index of ..." and the local time
of each file's last modification.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from html import unescape
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


MAX_LISTING_BYTES = 5_000_000
_HEAD_BYTES = 2_000
_TITLE = re.compile(rb"<title>index of ", re.IGNORECASE)
_LINK_OR_TIME = re.compile(
    r'href="(?P<href>[^"<>\s]{1,2000})"'
    r"|\b(?:(?P<year>\d{4})-(?P<month>\w{2,3})-(?P<day>\d\d)|(?P<nginx>\d\d-\w{3}-\d{4}))"
    r" (?P<hour>\d\d):(?P<minute>\d\d)",
    re.ASCII,
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


def is_directory_listing(fetched: Fetched) -> bool:
    """Whether a page is a web server's listing of a directory."""
    path = fetched.url.partition("?")[0]
    return path.endswith("/") and _TITLE.search(fetched.body[:_HEAD_BYTES]) is not None


def read_directory_listing(fetched: Fetched, max_entries: int = MAX_FEED_LINKS) -> list[FeedEntry]:
    """Return the files of a directory listing with their times, in order; never raises.

    Subdirectories are left out: their times don't tell of changes of the files in them. Times count
    as UTC. Empty for other pages.
    """
    if not is_directory_listing(fetched):
        return []
    text = decode(fetched.body[:MAX_LISTING_BYTES], fetched.headers)[0]
    return list(islice(_files(text, fetched.url), max_entries))


def _files(text: str, url: str) -> Iterator[FeedEntry]:
    directory = url.partition("?")[0]
    href: str | None = None
    for match in _LINK_OR_TIME.finditer(text):
        if match["href"] is not None:
            href = match["href"]
            continue
        changed_at = _time(match)
        if href is None or changed_at is None:
            continue
        target = normalize_url(unescape(href), url)
        href = None
        if target is None or not target.startswith(directory):
            continue
        name = target.removeprefix(directory)
        if name and "/" not in name and "?" not in name:
            yield FeedEntry(target, changed_at=changed_at)


def _time(match: re.Match[str]) -> float | None:
    year, month, day = match["year"], match["month"], match["day"]
    if match["nginx"] is not None:
        day, month, year = match["nginx"].split("-")
    try:
        number = int(month) if month.isdecimal() else _MONTHS.index(month.lower()) + 1
        when = datetime(
            int(year), number, int(day), int(match["hour"]), int(match["minute"]), tzinfo=UTC
        )
    except ValueError:
        return None
    return when.timestamp()
