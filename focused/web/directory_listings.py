"""Read when the files of a directory were modified, from the listing of a web server.

Apache, nginx and lighttpd list a directory as HTML with the title "Index of ..." and the local time
of each file's last modification.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from html import unescape
from itertools import islice

from focused.web.decoding import decode
from focused.web.feed_entries import FeedEntry
from focused.web.feeds import MAX_FEED_LINKS
from focused.web.page import Fetched
from focused.web.urls import normalize_url

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
