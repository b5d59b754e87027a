"""Find feeds, and pass on what lists state of the pages of the collection.

A list is a sitemap, a feed or a web server's listing of a directory. How far its change signals are
believed: :mod:`focused.revisit.signalled_policy`.

The pages that each list names are stored, so that a page that it names no more is noticed; the
caller commits.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable, Mapping
from collections.abc import Collection as Pages

import xxhash

from focused.crawl.revisits.collection import Collection
from focused.crawl.revisits.versions import VersionChecker
from focused.durations import DAY_S
from focused.storage.tables import Tables
from focused.web.feeds import parse_feed_entries, read_directory_listing
from focused.web.page import Fetched, Page
from focused.web.urls import host_of

MAX_FEEDS_PER_HOST = 3
"""Feeds that pages of a host name are fetched up to this number."""
_NUMBER = struct.Struct(">Q")
_MAX_AHEAD_S = DAY_S


SITEMAP, FEED, LISTING = "sitemap", "feed", "listing"
"""Kinds of lists."""


def read_change_signals(
    fetched: Fetched, clock_offset_of: Callable[[str], float]
) -> tuple[str, Mapping[str, float | None]]:
    """Return the kind of a list, and what each entry says of a URL: when it changed, or None.

    Without entries for pages that are no lists. ``clock_offset_of`` returns how far the clock of a
    URL's host is ahead of ours; it is called for lists alone. Times that are then more than a day
    in the future are ignored. The latest time counts where a URL has several. Never raises.
    """
    parsed = parse_feed_entries(fetched)
    if parsed is None:
        kind, entries = LISTING, read_directory_listing(fetched)
    else:
        kind, entries = parsed
        kind = SITEMAP if kind in ("urlset", "sitemapindex", "text") else FEED
    if not entries:
        return kind, {}
    latest = fetched.received_at + clock_offset_of(fetched.url) + _MAX_AHEAD_S
    found: dict[str, float | None] = {}
    for entry in entries:
        at, known = entry.changed_at, found.get(entry.target)
        if at is not None and at > latest:
            at = None
        found[entry.target] = at if known is None else max(at or 0.0, known)
    return kind, found


class Announcements:
    """Reads the change signals of lists for pages of the collection."""

    def __init__(
        self,
        tables: Tables,
        collection: Collection,
        versions: VersionChecker,
        queue_feed: Callable[[str, float], bool],
    ) -> None:
        """``queue_feed`` takes a URL and the time, and returns whether the URL is new."""
        self._tables = tables
        self._collection = collection
        self._versions = versions
        self._queue_feed = queue_feed

    def find_feed(self, page: Page, now: float) -> None:
        """Queue the feed that a relevant page names, if it is on the page's own host.

        Only the first one: on a blog that is the site's, and others are of comments and tags.
        """
        host = host_of(page.url)
        if page.feed is None or host_of(page.feed) != host:
            return
        feeds = int.from_bytes(self._tables.get("host_feeds", host.encode()) or b"")
        if feeds < MAX_FEEDS_PER_HOST and self._queue_feed(page.feed, now):
            self._tables.put("host_feeds", host.encode(), bytes([feeds + 1]))

    def read(self, fetched: Fetched, list_page: int, now: float) -> None:
        """Pass on what a new version of a list states; other pages have no effect.

        ``list_page`` is its own number. The pages that it says have changed get a new due time.
        Feeds show their latest items only, so their silence is no news.
        """
        kind, signals = read_change_signals(fetched, self._versions.clock_offset_s)
        if not signals:
            return
        clock_offset_s = self._versions.clock_offset_s(fetched.url)
        found: dict[int, float] = {}
        for url, stated_at in signals.items():
            number = self._collection.records.number_of(url)
            if number is not None and number != list_page and stated_at is not None:
                found[number] = stated_at
        policy = self._collection.signals
        policy.add_list(
            list_page,
            xxhash.xxh32_intdigest(f"{kind} {host_of(fetched.url)}".encode()) or 1,
            len(signals),
            now,
            is_page=True,
            is_complete=kind != FEED,
        )
        for number in self._replace_listed(list_page, found):
            policy.unlist(number, list_page)
            self._collection.reschedule(number)
        for number, stated_at in found.items():
            visited_at = 0.0
            if policy.signal(number) is None:
                visited_at = self._collection.records.load(number).record.seen_at
            if policy.state(number, list_page, visited_at, stated_at, now, clock_offset_s):
                self._collection.reschedule(number)

    def _replace_listed(self, list_page: int, listed: Pages[int]) -> list[int]:
        """Store the pages that a list names; return those that it names no more."""
        key, stored, now = _NUMBER.pack(list_page), array("I"), array("I", sorted(listed))
        stored.frombytes(self._tables.get("listed_pages", key) or b"")
        if stored != now:
            self._tables.put("listed_pages", key, now.tobytes())
        return sorted(set(stored) - set(listed))
