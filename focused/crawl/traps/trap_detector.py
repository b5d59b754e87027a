"""Detect crawl traps: URL patterns, directories, hosts and domains that bring nothing.

Two things count against a pattern: duplicates of earlier pages of the site, and unproductive pages
in a row, off topic or none at all. Duplicates are rare among written pages and the rule among
generated ones, so few close a pattern; off-topic pages are normal in a crawl, so only many do. Each
good page earns its pattern more of both. Narrow patterns close sooner than wide ones: a trap is
closed, its host stays open.
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
"""How many more pages a good page earns its pattern, and how many more hosts a good host its
domain.
"""
MAX_UNPRODUCTIVE_HOSTS = 100
"""How many hosts of a domain may bring nothing before one of them does."""
_COUNTS_ROW = struct.Struct(">IIIIIII")


class PageVerdict(Enum):
    """What a fetched page means for its URL patterns."""

    GOOD = "good"
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

    ``told``: pages that narrower closed patterns account for. Of a domain, ``hosts`` were requested
    and ``good_hosts`` were productive.
    """

    pages: int = 0
    good: int = 0
    unproductive: int = 0
    copies: int = 0
    told: int = 0
    hosts: int = 0
    good_hosts: int = 0

    def take(self, verdict: PageVerdict) -> None:
        self.pages += 1
        if verdict is PageVerdict.GOOD:
            self.good += 1
            self.unproductive = 0
        else:
            self.unproductive += 1
            self.copies += verdict is PageVerdict.DUPLICATE

    def packed(self) -> bytes:
        return _COUNTS_ROW.pack(
            self.pages, self.good, self.unproductive, self.copies,
            self.told, self.hosts, self.good_hosts,
        )  # fmt: skip


class TrapDetector:
    """Persistent; the caller commits.

    A page adds at most six rows of 28 bytes. Closed patterns, which cost 15 pages or more each, are
    held in memory.
    """

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._chosen: set[str] = set()
        self._closed: dict[bytes, ClosedPattern] = {}
        self._closed_sites: set[str] = set()
        for key, raw in tables.scan("trap_closed"):
            self._closed[key] = ClosedPattern(*unpack(raw))
            self._closed_sites.add(self._closed[key].site)

    def choose(self, seeds: Iterable[str]) -> None:
        """Allow more pages to the patterns of these seeds."""
        self._chosen.update(place.name for url in seeds for place in patterns_of_url(url))

    def closed(self, url: str) -> ClosedPattern | None:
        """Return the narrowest closed pattern of a normalised URL, or None."""
        if not self._closed_sites or not self.has_closed_patterns(host_of(url)):
            return None
        for place in patterns_of_url(url):
            found = self._closed.get(_pattern_key(place.name))
            if found is None:
                continue
            # Productive hosts are not among a domain's generated ones.
            if place.kind is UrlPatternKind.DOMAIN and self._is_productive(host_of(url)):
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
        places = patterns_of_url(url)
        keys = [_pattern_key(place.name) for place in places]
        rows = dict(self._tables.get_many("trap_places", keys))
        accounts = [
            _PatternCounts(*_COUNTS_ROW.unpack(rows[key])) if key in rows else _PatternCounts()
            for key in keys
        ]
        before = accounts[-2]
        new_host, newly_good = not before.pages, not before.good and verdict is PageVerdict.GOOD
        domain = accounts[-1]
        domain.hosts += new_host
        domain.good_hosts += newly_good
        for account in accounts:
            account.take(verdict)
        closed = []
        # A good page closes nothing.
        for number, key in enumerate(keys if verdict is not PageVerdict.GOOD else ()):
            found = self._close(places[number], key, accounts[number])
            if found is not None:
                closed.append(found)
                for wider in accounts[number + 1 :]:
                    wider.told += found.pages
        packed = [account.packed() for account in accounts]
        self._tables.put_many("trap_places", list(zip(keys, packed, strict=True)))
        return closed

    def _close(
        self, place: UrlPattern, key: bytes, account: _PatternCounts
    ) -> ClosedPattern | None:
        lost = max(account.unproductive, account.copies, account.hosts - account.good_hosts)
        if lost < _SMALLEST_BUDGET or key in self._closed:
            return None
        reason, pages = self._reason_to_close(place, account)
        if reason is None:
            return None
        site = place.name.partition("/")[0]
        found = ClosedPattern(site, reason, max(0, pages - account.told))
        self._closed[key] = found
        self._closed_sites.add(site)
        self._tables.put("trap_closed", key, pack([found.site, found.reason, found.pages]))
        return found

    def _reason_to_close(
        self, place: UrlPattern, account: _PatternCounts
    ) -> tuple[str | None, int]:
        """Return why to close a pattern, or None, and the pages that it cost."""
        patience = PATTERN_BUDGETS[place.kind]
        copies = patience.copies + PAGES_PER_GOOD_PAGE * account.good
        if account.copies >= copies and 2 * account.copies >= account.pages:
            return REPEATED_PAGE, account.copies
        times = _SEED_BUDGET_FACTOR if place.name in self._chosen else 1
        granted = times * patience.unproductive + PAGES_PER_GOOD_PAGE * account.good
        hosts = MAX_UNPRODUCTIVE_HOSTS + PAGES_PER_GOOD_PAGE * account.good_hosts
        if account.unproductive >= granted or account.hosts - account.good_hosts >= hosts:
            return _REASONS[place.kind], account.unproductive
        return None, 0

    def _account(self, place: UrlPattern) -> _PatternCounts:
        raw = self._tables.get("trap_places", _pattern_key(place.name))
        return _PatternCounts() if raw is None else _PatternCounts(*_COUNTS_ROW.unpack(raw))

    def _is_productive(self, host: str) -> bool:
        if host in self._chosen:
            return True
        return self._account(UrlPattern(UrlPatternKind.HOST, host)).good > 0


def _pattern_key(name: str) -> bytes:
    return xxhash.xxh3_128_digest(name.encode())
