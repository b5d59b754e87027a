"""Change signals: what sitemaps, feeds and directory listings state of the changes of URLs.

How far they are believed: :mod:`focused.revisit.signalled_policy`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from focused.durations import DAY_S
from focused.web.directory_listings import read_directory_listing
from focused.web.feeds import MAX_FEED_LINKS, parse_feed_entries
from focused.web.page import Fetched

_MAX_AHEAD_S = DAY_S


class SignalSource(StrEnum):
    """Where a signal comes from."""

    SITEMAP = "sitemap"
    FEED = "feed"
    LISTING = "listing"


@dataclass(frozen=True, slots=True)
class ChangeSignal:
    """What one entry says of a URL: when it changed, as the source states it, or None."""

    url: str
    source: SignalSource
    stated_at: float | None = None


def read_change_signals(
    fetched: Fetched, clock_offset_s: float = 0.0, max_entries: int = MAX_FEED_LINKS
) -> tuple[ChangeSignal, ...]:
    """Return the signals of a sitemap (or sitemap index), feed or directory listing.

    Empty for other pages.

    ``clock_offset_s`` is how far the host's clock is ahead of ours: times that are then more than a
    day in the future are ignored. The latest time counts where a URL has several. Never raises.
    """
    parsed = parse_feed_entries(fetched, max_entries)
    if parsed is None:
        source, entries = SignalSource.LISTING, read_directory_listing(fetched, max_entries)
    else:
        kind, entries = parsed
        is_sitemap = kind in ("urlset", "sitemapindex", "text")
        source = SignalSource.SITEMAP if is_sitemap else SignalSource.FEED
    found: dict[str, ChangeSignal] = {}
    for entry in entries:
        at = entry.changed_at
        if at is not None and at - clock_offset_s > fetched.received_at + _MAX_AHEAD_S:
            at = None
        known = found.get(entry.target)
        if known is not None and known.stated_at is not None:
            at = max(at or 0.0, known.stated_at)
        found[entry.target] = ChangeSignal(entry.target, source, at)
    return tuple(found.values())
