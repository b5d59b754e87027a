"""Places of a web that are asked no more: patterns of URLs, directories, hosts, domains.

Two things speak against a place. *Copies*: pages that an earlier one of the
site had already, word for word or but for what a trap makes anew. And
*barren* pages in a row: off topic, or none at all. Copies are rare where
pages are written and the rule where they are made up, so few close a place;
that pages are off topic is what a crawl lives with, so only many do. Each page
that was worth it buys its place more of either.

Narrow places are closed sooner than wide ones: a trap goes, its host stays.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

import xxhash

from focused.frontier.rows import pack, unpack
from focused.frontier.tables import Tables
from focused.web.domain import registered_domain
from focused.web.url import host_of
from focused.web.url_patterns import Place, PlaceKind, places_of

_TIMES_FOR_SEEDS = 10
GOOD_BUYS = 10
"""So many more pages each good one buys its place; so many hosts a good one its domain."""
MAX_BARREN_HOSTS = 100
"""So many hosts of a domain may bring nothing, before one of it does."""
_ROW = struct.Struct(">IIIIIII")


class Verdict(Enum):
    """What a page was to the place it stands in."""

    GOOD = "good"
    BARREN = "barren"
    COPY = "copy"


@dataclass(frozen=True, slots=True)
class Patience:
    """How many pages a kind of place may cost before any of it was good.

    ``barren`` pages in a row; ``copies`` in all, where these are half of the pages.
    """

    barren: int
    copies: int


PATIENCE: Mapping[PlaceKind, Patience] = {
    PlaceKind.CALENDAR: Patience(50, 15),
    PlaceKind.QUERY: Patience(300, 15),
    PlaceKind.NUMBERED: Patience(300, 15),
    PlaceKind.SCRIPT: Patience(500, 30),
    PlaceKind.DIRECTORY: Patience(1_000, 40),
    PlaceKind.HOST: Patience(1_000, 60),
    PlaceKind.DOMAIN: Patience(2_000, 60),
}
"""A place where a seed stands has ten times as many barren pages: somebody chose it."""
_FEWEST = min(MAX_BARREN_HOSTS, *(min(each.barren, each.copies) for each in PATIENCE.values()))
"""No place is closed for less."""

_REASONS: Mapping[PlaceKind, str] = {
    PlaceKind.CALENDAR: "trap: calendar",
    PlaceKind.QUERY: "trap: endless parameters",
    PlaceKind.NUMBERED: "trap: endless numbers",
    PlaceKind.SCRIPT: "trap: endless parameters",
    PlaceKind.DIRECTORY: "trap: endless directory",
    PlaceKind.HOST: "trap: endless host",
    PlaceKind.DOMAIN: "trap: endless hosts",
}
COPIES = "trap: the same page again"


@dataclass(frozen=True, slots=True)
class Closed:
    """A place that is closed: on which host, or ``*.`` and which domain, and why.

    ``pages`` is what it had cost by then, without what narrower places within had.
    """

    site: str
    reason: str
    pages: int


@dataclass(slots=True)
class _Account:
    """A place's pages. ``barren`` in a row; ``told``: those lost to places within that are closed.

    Of a domain, ``hosts`` were asked, and ``good_hosts`` of them brought something.
    """

    pages: int = 0
    good: int = 0
    barren: int = 0
    copies: int = 0
    told: int = 0
    hosts: int = 0
    good_hosts: int = 0

    def take(self, verdict: Verdict) -> None:
        self.pages += 1
        if verdict is Verdict.GOOD:
            self.good += 1
            self.barren = 0
        else:
            self.barren += 1
            self.copies += verdict is Verdict.COPY

    def packed(self) -> bytes:
        return _ROW.pack(
            self.pages, self.good, self.barren, self.copies,
            self.told, self.hosts, self.good_hosts,
        )  # fmt: skip


class BarrenPlaces:
    """Durable, over :class:`Tables`; the caller commits.

    On disk a page adds some six rows of 28 bytes at most; in memory are the places
    that are closed, each of which cost 15 pages or more.
    """

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._chosen: set[str] = set()
        self._closed: dict[bytes, Closed] = {}
        self._touched: set[str] = set()
        for key, raw in tables.scan("trap_closed"):
            self._closed[key] = Closed(*unpack(raw))
            self._touched.add(self._closed[key].site)

    def choose(self, seeds: Iterable[str]) -> None:
        """Have more patience with the places where these normalised URLs stand."""
        self._chosen.update(place.name for url in seeds for place in places_of(url))

    def closed(self, url: str) -> Closed | None:
        """The narrowest closed place that a normalised URL stands in, or None."""
        if not self._touched or not self.are_closed_at(host_of(url)):
            return None
        for place in places_of(url):
            found = self._closed.get(_key(place.name))
            if found is None:
                continue
            # Hosts that brought something are no part of a domain's made-up ones.
            if place.kind is PlaceKind.DOMAIN and self._is_proven(host_of(url)):
                continue
            return found
        return None

    def are_closed_at(self, host: str) -> bool:
        """Whether a place on the host is closed, or of its domain."""
        return bool(self._touched) and (
            host in self._touched or f"*.{registered_domain(host)}" in self._touched
        )

    def take(self, url: str, verdict: Verdict) -> list[Closed]:
        """Take in what the page of a normalised URL was; return the places that this closes."""
        places = places_of(url)
        keys = [_key(place.name) for place in places]
        rows = dict(self._tables.get_many("trap_places", keys))
        accounts = [
            _Account(*_ROW.unpack(rows[key])) if key in rows else _Account() for key in keys
        ]
        before = accounts[-2]
        new_host, newly_good = not before.pages, not before.good and verdict is Verdict.GOOD
        domain = accounts[-1]
        domain.hosts += new_host
        domain.good_hosts += newly_good
        for account in accounts:
            account.take(verdict)
        closed = []
        # Nothing is closed by a good page.
        for number, key in enumerate(keys if verdict is not Verdict.GOOD else ()):
            found = self._close(places[number], key, accounts[number])
            if found is not None:
                closed.append(found)
                for wider in accounts[number + 1 :]:
                    wider.told += found.pages
        packed = [account.packed() for account in accounts]
        self._tables.put_many("trap_places", list(zip(keys, packed, strict=True)))
        return closed

    def _close(self, place: Place, key: bytes, account: _Account) -> Closed | None:
        lost = max(account.barren, account.copies, account.hosts - account.good_hosts)
        if lost < _FEWEST or key in self._closed:
            return None
        reason, pages = self._sentence(place, account)
        if reason is None:
            return None
        site = place.name.partition("/")[0]
        found = Closed(site, reason, max(0, pages - account.told))
        self._closed[key] = found
        self._touched.add(site)
        self._tables.put("trap_closed", key, pack([found.site, found.reason, found.pages]))
        return found

    def _sentence(self, place: Place, account: _Account) -> tuple[str | None, int]:
        """Why a place is to be closed, None when it is not; the pages that it cost."""
        patience = PATIENCE[place.kind]
        copies = patience.copies + GOOD_BUYS * account.good
        if account.copies >= copies and 2 * account.copies >= account.pages:
            return COPIES, account.copies
        times = _TIMES_FOR_SEEDS if place.name in self._chosen else 1
        granted = times * patience.barren + GOOD_BUYS * account.good
        hosts = MAX_BARREN_HOSTS + GOOD_BUYS * account.good_hosts
        if account.barren >= granted or account.hosts - account.good_hosts >= hosts:
            return _REASONS[place.kind], account.barren
        return None, 0

    def _account(self, place: Place) -> _Account:
        raw = self._tables.get("trap_places", _key(place.name))
        return _Account() if raw is None else _Account(*_ROW.unpack(raw))

    def _is_proven(self, host: str) -> bool:
        if host in self._chosen:
            return True
        return self._account(Place(PlaceKind.HOST, host)).good > 0


def _key(name: str) -> bytes:
    return xxhash.xxh3_128_digest(name.encode())
