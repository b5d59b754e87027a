"""Change signals: what sitemaps and feeds say of known URLs, and how far to believe it.

A sitemap's ``lastmod`` or the time of a feed's item may tell that a page has changed since its last
visit. Many sitemaps give the time of their own creation for all pages, or never change. Each host's
signals are therefore compared with what revisits find: precision and recall with decayed counts,
and Beta priors while there is little evidence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from math import exp, isfinite

import msgspec

from focused.crawl.revisits.validators import MAX_CLOCK_ERROR_S
from focused.durations import DAY_S, HOUR_S, WEEK_S
from focused.web.feeds import MAX_FEED_LINKS, parse_feed_entries
from focused.web.page import Fetched

_MAX_AHEAD_S = DAY_S
_PERIODS_S: Mapping[str, float] = {
    "always": HOUR_S,
    "hourly": HOUR_S,
    "daily": DAY_S,
    "weekly": WEEK_S,
    "monthly": 30 * DAY_S,
    "yearly": 365 * DAY_S,
}


class SignalSource(StrEnum):
    """Where a signal comes from."""

    SITEMAP = "sitemap"
    FEED = "feed"


class ChangeSignal(msgspec.Struct, frozen=True, array_like=True):
    """What one entry says of a URL; ``changed_at`` is on our clock.

    ``period_s`` is the mean time between changes by a sitemap's ``changefreq``; None without one
    and for ``never``.
    """

    url: str
    source: SignalSource
    changed_at: float | None = None
    period_s: float | None = None

    def says_changed(self, since: float) -> bool | None:
        """Whether the page has changed after ``since``, as the entry says; None without a time."""
        return None if self.changed_at is None else self.changed_at > since

    def equals(self, other: ChangeSignal) -> bool:
        """Whether both say the same; times may differ by the error of the host's clock."""
        if (self.source, self.period_s) != (other.source, other.period_s):
            return False
        if self.changed_at is None or other.changed_at is None:
            return self.changed_at == other.changed_at
        return abs(self.changed_at - other.changed_at) <= MAX_CLOCK_ERROR_S


def read_change_signals(
    fetched: Fetched, clock_offset_s: float = 0.0, max_entries: int = MAX_FEED_LINKS
) -> tuple[ChangeSignal, ...]:
    """Return the signals of a sitemap (or sitemap index), RSS or Atom feed; empty for others.

    ``clock_offset_s`` is how far the host's clock is ahead of ours. Times in the future are limited
    to the time of receipt, and ignored beyond a day. The latest time counts where a URL has
    several. Never raises.
    """
    parsed = parse_feed_entries(fetched, max_entries)
    if parsed is None:
        return ()
    kind, entries = parsed
    sitemap = kind in ("urlset", "sitemapindex", "text")
    source = SignalSource.SITEMAP if sitemap else SignalSource.FEED
    found: dict[str, ChangeSignal] = {}
    for entry in entries:
        at = entry.changed_at
        if at is not None:
            at -= clock_offset_s
            in_time = at <= fetched.received_at + _MAX_AHEAD_S
            at = min(at, fetched.received_at) if in_time else None
        known = found.get(entry.target)
        if known is not None and known.changed_at is not None:
            at = max(at or 0.0, known.changed_at)
        period_s = _PERIODS_S.get(entry.change_frequency)
        found[entry.target] = ChangeSignal(entry.target, source, at, period_s)
    return tuple(found.values())


_DECAY = 0.98  # per page said to have changed: half after 34
_SILENCE_DECAY = 0.998  # per other page: they are many, and few have changed
_PRIOR = 2.0  # observations
_SILENCE_PRIOR = 1.0  # expected changes
_PRIOR_PRECISION = 0.7
_PRIOR_RECALL = 0.5
_MIN_PRECISION_FOR_TIMES = 0.5


class SignalRecord(msgspec.Struct, array_like=True):
    """How one source's signals of a host compare with what revisits found; decayed counts.

    ``hits`` were said to have changed and had, ``false_alarms`` had not; ``misses`` had changed
    though not said, ``rests`` had not. ``expected_misses`` sums the probabilities of change that
    were assumed for the last two without the signal.
    """

    hits: float = 0.0
    false_alarms: float = 0.0
    misses: float = 0.0
    rests: float = 0.0
    expected_misses: float = 0.0

    @property
    def precision(self) -> float:
        """The estimated share of pages said to have changed that had."""
        said = self.hits + self.false_alarms
        return (self.hits + _PRIOR * _PRIOR_PRECISION) / (said + _PRIOR)

    @property
    def recall(self) -> float:
        """The estimated share of changes that were said."""
        changed = self.hits + self.misses
        return (self.hits + _PRIOR * _PRIOR_RECALL) / (changed + _PRIOR)

    def record(self, said: bool | None, *, changed: bool, prior: float) -> None:
        """Learn from a revisit; ``prior`` is the probability of change without the signal."""
        if said is None:
            return
        if said:
            self.hits = _DECAY * self.hits + changed
            self.false_alarms = _DECAY * self.false_alarms + (not changed)
        else:
            self.misses = _SILENCE_DECAY * self.misses + changed
            self.rests = _SILENCE_DECAY * self.rests + (not changed)
            expected = min(1.0, max(0.0, prior))
            self.expected_misses = _SILENCE_DECAY * self.expected_misses + expected

    def probability(self, said: bool | None, prior: float) -> float:
        """Return the probability that a page has changed, given what is said of it.

        Precision holds for pages said to have changed, but never less than ``prior`` does where the
        signal says nothing useful. For others the prior is multiplied by the observed share of
        expected changes. Both condition on what was said, so that visiting by signals does not
        distort them.
        """
        if said is None:
            return prior
        silence = (self.misses + _SILENCE_PRIOR) / (self.expected_misses + _SILENCE_PRIOR)
        if not said:
            return prior * min(1.0, silence)
        observed = self.hits + self.false_alarms
        # With evidence, a source that is wrong more often than chance loses its effect.
        floor = prior * _PRIOR / (observed + _PRIOR)
        return max(self.precision, floor)


class PeriodRecord(msgspec.Struct, array_like=True):
    """How a host's ``changefreq`` compares with what revisits found; decayed counts."""

    changes: float = 0.0
    expected: float = 0.0

    def record(self, period_s: float, elapsed_s: float, *, changed: bool) -> None:
        """Learn from a revisit ``elapsed_s`` after the visit before."""
        self.changes = _DECAY * self.changes + changed
        self.expected = _DECAY * self.expected + _share_changed(elapsed_s / period_s)

    def probability(self, period_s: float, elapsed_s: float) -> float:
        """Return the probability that a page has changed since its last visit."""
        factor = (self.changes + _PRIOR) / (self.expected + _PRIOR)
        return min(1.0, factor * _share_changed(elapsed_s / period_s))


def _share_changed(periods: float) -> float:
    return 1.0 - exp(-max(0.0, periods)) if isfinite(periods) else 1.0


@dataclass(frozen=True, slots=True)
class ChangeEstimate:
    """The probability that a page has changed since its last visit, and when, if that is known."""

    url: str
    changed_at: float | None
    probability: float


class SignalTrust(msgspec.Struct, array_like=True):
    """How far the change signals of a host can be trusted; some 120 bytes.

    ``feeds`` counts the feeds that the crawl found on the host's pages. ``sitemap_read_at`` and
    ``feed_read_at`` tell when a new version of one was last read.
    """

    sitemap: SignalRecord = msgspec.field(default_factory=SignalRecord)
    feed: SignalRecord = msgspec.field(default_factory=SignalRecord)
    periods: PeriodRecord = msgspec.field(default_factory=PeriodRecord)
    feeds: int = 0
    sitemap_read_at: float = 0.0
    feed_read_at: float = 0.0

    def record_read(self, source: SignalSource, at: float) -> None:
        """Note that the signals of a sitemap or feed were read."""
        if source is SignalSource.SITEMAP:
            self.sitemap_read_at = at
        else:
            self.feed_read_at = at

    def was_read(self, source: SignalSource, since: float) -> bool:
        """Whether signals of the source were read after ``since``."""
        read_at = self.sitemap_read_at if source is SignalSource.SITEMAP else self.feed_read_at
        return read_at > since

    def of(self, source: SignalSource) -> SignalRecord:
        """Return the record of one source."""
        return self.sitemap if source is SignalSource.SITEMAP else self.feed

    def estimate(
        self, signal: ChangeSignal, previous_at: float, at: float, prior: float | None = None
    ) -> ChangeEstimate:
        """Return what a signal means at ``at`` for a page last visited at ``previous_at``.

        ``prior`` is the revisit policy's probability of change; None takes it from ``changefreq``,
        else a half. The time is given only by sources that are right more often than not.
        """
        if prior is None:
            period_s = signal.period_s
            elapsed_s = at - previous_at
            prior = 0.5 if period_s is None else self.periods.probability(period_s, elapsed_s)
        record = self.of(signal.source)
        said = signal.says_changed(previous_at)
        is_precise = record.precision >= _MIN_PRECISION_FOR_TIMES
        changed_at = signal.changed_at if said and is_precise else None
        return ChangeEstimate(signal.url, changed_at, record.probability(said, prior))

    def record(
        self,
        signal: ChangeSignal,
        previous_at: float,
        at: float,
        *,
        changed: bool,
        prior: float = 0.5,
    ) -> None:
        """Learn from a revisit at ``at`` of a page with a signal that came before it.

        ``prior`` is the revisit policy's probability of change without the signal.
        """
        said = signal.says_changed(previous_at)
        self.of(signal.source).record(said, changed=changed, prior=prior)
        if signal.period_s is not None:
            self.periods.record(signal.period_s, at - previous_at, changed=changed)
