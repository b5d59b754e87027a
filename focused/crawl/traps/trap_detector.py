"""Detect crawl traps: URL patterns, directories, hosts and domains that bring nothing.

Two things count against a pattern: duplicates of earlier pages of the site, and unproductive pages
in a row, off topic or none at all. Duplicates are rare among written pages and the rule among
generated ones, so few close a pattern; off-topic pages are normal in a crawl, so only many do. Each
good page earns its pattern more of both. Narrow patterns close sooner than wide ones: a trap is
closed, its host stays open. :mod:`focused.web.scope_filter` knows traps by the shape of one URL.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

import xxhash

from focused.storage.rows import pack, unpack
from focused.storage.tables import Tables
from focused.web.host_names import registered_domain
from focused.web.url_patterns import UrlPattern, UrlPatternKind, patterns_of_url
from focused.web.urls import host_of

_SEED_BUDGET_FACTOR = 10
PAGES_PER_GOOD_PAGE = 10
"""The pages that a good page earns its pattern, and the hosts that a good host earns its domain."""
MAX_UNPRODUCTIVE_HOSTS = 100
"""How many hosts of a domain may bring nothing before one of them does."""
_COUNTS_ROW = struct.Struct(">IIIIIII")


class PageVerdict(Enum):
    """What a fetched page means for its URL patterns."""

    GOOD = "good"
    DOUBTFUL = "doubtful"  # off topic, but perhaps wrongly
    UNPRODUCTIVE = "unproductive"
    DUPLICATE = "copy"


@dataclass(frozen=True, slots=True)
class PatternBudget:
    """How many pages a kind of pattern may cost before any was good.

    ``unproductive`` pages in a row; ``copies`` in all, if they are half of the pages.
    """

    unproductive: int
    copies: int


PATTERN_BUDGETS: Mapping[UrlPatternKind, PatternBudget] = {
    UrlPatternKind.CALENDAR: PatternBudget(50, 15),
    UrlPatternKind.QUERY: PatternBudget(300, 15),
    UrlPatternKind.NUMBERED: PatternBudget(300, 15),
    UrlPatternKind.SCRIPT: PatternBudget(500, 30),
    UrlPatternKind.DIRECTORY: PatternBudget(1_000, 40),
    UrlPatternKind.HOST: PatternBudget(1_000, 60),
    UrlPatternKind.DOMAIN: PatternBudget(2_000, 60),
}
"""A seed's patterns are allowed ten times as many unproductive pages."""
_WIDE_KINDS = frozenset({UrlPatternKind.DIRECTORY, UrlPatternKind.HOST, UrlPatternKind.DOMAIN})
"""They hold pages of all kinds, so that the relevance of their pages decides."""
_SMALLEST_BUDGET = min(
    MAX_UNPRODUCTIVE_HOSTS,
    *(min(each.unproductive, each.copies) for each in PATTERN_BUDGETS.values()),
)
"""No pattern is closed for less."""

_REASONS: Mapping[UrlPatternKind, str] = {
    UrlPatternKind.CALENDAR: "trap: calendar",
    UrlPatternKind.QUERY: "trap: endless parameters",
    UrlPatternKind.NUMBERED: "trap: endless numbers",
    UrlPatternKind.SCRIPT: "trap: endless parameters",
    UrlPatternKind.DIRECTORY: "trap: endless directory",
    UrlPatternKind.HOST: "trap: endless host",
    UrlPatternKind.DOMAIN: "trap: endless hosts",
}
REPEATED_PAGE = "trap: repeated page"
SPAM_SITE = "trap: spam site"
NO_NEW_CONTENT = "trap: no new content"
_SITE_REASONS = frozenset({SPAM_SITE, NO_NEW_CONTENT})
"""Why all hosts of a domain are refused, productive ones too."""
CLOSED_REASONS = _SITE_REASONS | {REPEATED_PAGE, *_REASONS.values()}
"""Why links to closed patterns are refused: their pages were not fetched under another URL."""


@dataclass(frozen=True, slots=True)
class ClosedPattern:
    """A closed pattern: the host, or ``*.`` and the domain, and the reason.

    ``pages`` is what it cost, without the cost of narrower closed patterns.
    """

    site: str
    reason: str
    pages: int


@dataclass(slots=True)
class _PatternCounts:
    """The pages of a pattern; ``unproductive`` ones in a row.

    ``counted_elsewhere``: pages of narrower closed patterns. Of a domain, ``hosts`` were requested
    and ``good_hosts`` were productive.
    """

    pages: int = 0
    good: int = 0
    unproductive: int = 0
    copies: int = 0
    counted_elsewhere: int = 0
    hosts: int = 0
    good_hosts: int = 0

    def take(self, verdict: PageVerdict, *, is_wide: bool) -> None:
        """Count a page; a doubtful one says nothing of a wide pattern."""
        self.pages += 1
        if verdict is PageVerdict.GOOD:
            self.good += 1
            self.unproductive = 0
        elif verdict is not PageVerdict.DOUBTFUL or not is_wide:
            self.unproductive += 1
            self.copies += verdict is PageVerdict.DUPLICATE

    def packed(self) -> bytes:
        return _COUNTS_ROW.pack(
            self.pages, self.good, self.unproductive, self.copies,
            self.counted_elsewhere, self.hosts, self.good_hosts,
        )  # fmt: skip


class TrapDetector:
    """Counts pages by URL pattern and closes patterns; persistent, the caller commits.

    A page adds at most six rows of 28 bytes. Closed patterns, which cost 15 pages or more each, are
    held in memory.
    """

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._seed_patterns: set[str] = set()
        self._closed: dict[bytes, ClosedPattern] = {}
        self._closed_sites: set[str] = set()
        for key, raw in tables.scan("closed_patterns"):
            self._closed[key] = ClosedPattern(*unpack(raw))
            self._closed_sites.add(self._closed[key].site)

    def choose(self, seeds: Iterable[str]) -> None:
        """Allow more pages to the patterns of these seeds."""
        self._seed_patterns.update(
            pattern.name for url in seeds for pattern in patterns_of_url(url)
        )

    def closed(self, url: str) -> ClosedPattern | None:
        """Return the narrowest closed pattern of a normalised URL, or None."""
        if not self._closed_sites or not self.has_closed_patterns(host_of(url)):
            return None
        for pattern in patterns_of_url(url):
            found = self._closed.get(_pattern_key(pattern.name))
            if found is None:
                continue
            if found.reason == NO_NEW_CONTENT and pattern.name in self._seed_patterns:
                continue
            # Productive hosts are not among a domain's generated ones.
            if (
                pattern.kind is UrlPatternKind.DOMAIN
                and found.reason not in _SITE_REASONS
                and self._is_productive(host_of(url))
            ):
                continue
            return found
        return None

    def has_closed_patterns(self, host: str) -> bool:
        """Whether a pattern of the host or of its domain is closed."""
        return bool(self._closed_sites) and (
            host in self._closed_sites or f"*.{registered_domain(host)}" in self._closed_sites
        )

    def take(self, url: str, verdict: PageVerdict) -> list[ClosedPattern]:
        """Count a page's verdict; return the patterns that this closes."""
        patterns = patterns_of_url(url)
        keys = [_pattern_key(pattern.name) for pattern in patterns]
        rows = dict(self._tables.get_many("trap_patterns", keys))
        all_counts = [
            _PatternCounts(*_COUNTS_ROW.unpack(rows[key])) if key in rows else _PatternCounts()
            for key in keys
        ]
        before = all_counts[-2]
        new_host, newly_good = not before.pages, not before.good and verdict is PageVerdict.GOOD
        domain = all_counts[-1]
        domain.hosts += new_host
        domain.good_hosts += newly_good
        for pattern, counts in zip(patterns, all_counts, strict=True):
            counts.take(verdict, is_wide=pattern.kind in _WIDE_KINDS)
        closed = []
        # A good page closes nothing.
        for number, key in enumerate(keys if verdict is not PageVerdict.GOOD else ()):
            found = self._close(patterns[number], key, all_counts[number])
            if found is not None:
                closed.append(found)
                for wider in all_counts[number + 1 :]:
                    wider.counted_elsewhere += found.pages
        packed = [counts.packed() for counts in all_counts]
        self._tables.put_many("trap_patterns", list(zip(keys, packed, strict=True)))
        return closed

    def close_site(self, host: str, reason: str) -> ClosedPattern | None:
        """Close all hosts of a host's domain; return what that closes, None if it is closed."""
        pattern = UrlPattern(UrlPatternKind.DOMAIN, f"*.{registered_domain(host)}")
        key = _pattern_key(pattern.name)
        found = self._closed.get(key)
        if found is not None and found.reason in _SITE_REASONS:
            return None
        counts = self._load_counts(pattern)
        return self._add_closed(key, pattern.name, reason, counts.pages - counts.counted_elsewhere)

    def _close(
        self, pattern: UrlPattern, key: bytes, counts: _PatternCounts
    ) -> ClosedPattern | None:
        lost = max(counts.unproductive, counts.copies, counts.hosts - counts.good_hosts)
        if lost < _SMALLEST_BUDGET or key in self._closed:
            return None
        reason, pages = self._reason_to_close(pattern, counts)
        if reason is None:
            return None
        site = pattern.name.partition("/")[0]
        return self._add_closed(key, site, reason, pages - counts.counted_elsewhere)

    def _add_closed(self, key: bytes, site: str, reason: str, pages: int) -> ClosedPattern:
        found = ClosedPattern(site, reason, max(0, pages))
        self._closed[key] = found
        self._closed_sites.add(site)
        self._tables.put("closed_patterns", key, pack([found.site, found.reason, found.pages]))
        return found

    def _reason_to_close(
        self, pattern: UrlPattern, counts: _PatternCounts
    ) -> tuple[str | None, int]:
        """Return why to close a pattern, or None, and the pages that it cost."""
        budget = PATTERN_BUDGETS[pattern.kind]
        copies = budget.copies + PAGES_PER_GOOD_PAGE * counts.good
        if counts.copies >= copies and 2 * counts.copies >= counts.pages:
            return REPEATED_PAGE, counts.copies
        times = _SEED_BUDGET_FACTOR if pattern.name in self._seed_patterns else 1
        allowed = times * budget.unproductive + PAGES_PER_GOOD_PAGE * counts.good
        hosts = MAX_UNPRODUCTIVE_HOSTS + PAGES_PER_GOOD_PAGE * counts.good_hosts
        if counts.unproductive >= allowed or counts.hosts - counts.good_hosts >= hosts:
            return _REASONS[pattern.kind], counts.unproductive
        return None, 0

    def _load_counts(self, pattern: UrlPattern) -> _PatternCounts:
        raw = self._tables.get("trap_patterns", _pattern_key(pattern.name))
        return _PatternCounts() if raw is None else _PatternCounts(*_COUNTS_ROW.unpack(raw))

    def _is_productive(self, host: str) -> bool:
        if host in self._seed_patterns:
            return True
        return self._load_counts(UrlPattern(UrlPatternKind.HOST, host)).good > 0


def _pattern_key(name: str) -> bytes:
    return xxhash.xxh3_128_digest(name.encode())
