"""Find feeds, and use what sitemaps and feeds say: visit changed pages first, learn trust.

The trust in a host's sitemaps and feeds is stored by host; the caller commits.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from focused.crawl.revisits.change_signals import (
    ChangeSignal,
    SignalSource,
    SignalTrust,
    read_change_signals,
)
from focused.crawl.revisits.collection import Collection
from focused.crawl.revisits.page_records import KnownPage
from focused.crawl.revisits.versions import VersionChecker
from focused.storage.rows import pack
from focused.storage.tables import Tables
from focused.web.page import Fetched, Page
from focused.web.urls import host_of

_decode_trust = msgspec.msgpack.Decoder(SignalTrust).decode
MAX_FEEDS_PER_HOST = 3
"""Feeds that pages of a host name are fetched up to this number."""
_MIN_GAIN = 1.5
"""A page is visited sooner if its signal raises the probability of a change by this factor."""


class Announcements:
    """Reads the change signals of sitemaps and feeds for pages of the collection."""

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
        trust = self._trust(host)
        if trust.feeds < MAX_FEEDS_PER_HOST and self._queue_feed(page.feed, now):
            trust.feeds += 1
            self._put_trust(host, trust)

    def read(self, fetched: Fetched, now: float) -> float:
        """Move the pages that a sitemap or feed says have changed to the front.

        Return the expected relevant content of their visits. Most entries of a sitemap are the same
        as the last time; they are not written again.
        """
        expected = 0.0
        trusts: dict[str, SignalTrust] = {}  # most signals of a sitemap are for one host
        clock_offset_s = self._versions.clock_offset_s(fetched.url)
        for signal in read_change_signals(fetched, clock_offset_s):
            number = self._collection.records.number_of(signal.url)
            record = None if number is None else self._collection.records.get(number)
            if number is None or record is None:
                continue
            host = host_of(signal.url)
            if host not in trusts:
                trusts[host] = self._trust(host)
                trusts[host].record_read(signal.source, now)
            if record.signal is None or not signal.equals(record.signal):
                known = self._collection.records.load(number)
                expected += self._apply(signal, known, trusts[host], now)
        for host, trust in trusts.items():
            self._put_trust(host, trust)
        return expected

    def learn(
        self, known: KnownPage, previous_at: float, now: float, *, changed: bool, prior: float
    ) -> None:
        """Compare the signal for a page with what its visit found.

        A sitemap lists the page the next time too; its signal is kept to notice a new one.
        """
        signal, known.record.signalled = known.record.signal, 0.0
        if signal is None:
            return
        trust = self._trust(known.row.host)
        if trust.was_read(signal.source, previous_at):
            trust.record(signal, previous_at, now, changed=changed, prior=prior)
            self._put_trust(known.row.host, trust)
        if signal.source is SignalSource.FEED:
            known.record.signal = None

    def _apply(
        self, signal: ChangeSignal, known: KnownPage, trust: SignalTrust, now: float
    ) -> float:
        record, previous_at = known.record, known.history.seen_at
        prior = self._collection.change_probability(known.row.seq, now)
        estimate = trust.estimate(signal, previous_at, now, prior)
        record.signal, record.signalled = signal, estimate.probability
        self._collection.records.put(known)
        gains = estimate.probability > _MIN_GAIN * prior
        if not (signal.says_changed(previous_at) and gains):
            return 0.0
        self._collection.visit_soon(known.row.seq)
        return record.weight * estimate.probability

    def _trust(self, host: str) -> SignalTrust:
        raw = self._tables.get("signal_trust", host.encode())
        return SignalTrust() if raw is None else _decode_trust(raw)

    def _put_trust(self, host: str, trust: SignalTrust) -> None:
        self._tables.put("signal_trust", host.encode(), pack(trust))
