"""Two sites that hold the same pages at the same paths; what one has is not asked of the other.

Found from what a crawl fetches anyway. Bharat and Broder ("Mirror, mirror on the Web", 1999)
take paths of one site at random and look whether the other has the same content there; Cho,
Shivakumar and Garcia-Molina ("Finding replicated web collections", 2000) grow collections from
single copies. Here each copy that stands at the path of its original is a hit for the two
sites, each page that is no such copy though the other site's page at its path was settled, a
miss: with :data:`_HITS` hits among the last :data:`_TRIED` they are mirrors.

A site is scheme and host, so that http and https are two that often mirror each other. The
site whose pages came first stays the preferred one, unless it is the http of the other's https.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from focused.frontier.frontier import Known
from focused.frontier.queued import link_key
from focused.frontier.rows import pack
from focused.frontier.store import StateStore
from focused.web.url import host_of

_HITS, _TRIED = 5, 6
# Of the mirrors of a site: a bound on the time that one link takes.
_ASKED = 4
_TABLE = "mirrors"

KnownAmong = Callable[[Sequence[tuple[str, bytes]]], Known]


class _Pair(msgspec.Struct, array_like=True):
    """A site's likeness to ``other``: its latest tries; ``found`` when it was enough of them."""

    other: str
    tries: list[bool]
    found: bool = False


_pair_in = msgspec.msgpack.Decoder(_Pair).decode


class Mirrors:
    """The mirrors of a crawl, durable over its store; the caller commits.

    One row of some 100 bytes for each site that ever had a copy at its original's path.
    """

    def __init__(
        self, store: StateStore, known_among: KnownAmong, given_up: Callable[[str], bool]
    ) -> None:
        """``given_up`` tells by its host whether a site is asked no more."""
        self._store = store
        self._known_among = known_among
        self._given_up = given_up
        self._preferred: dict[str, str] = {}
        self._less: dict[str, list[str]] = {}
        for site, raw in store.scan(_TABLE):
            pair = _pair_in(raw)
            if pair.found:
                self._pair(site.decode(), pair.other)

    @property
    def pairs(self) -> Mapping[str, str]:
        """The preferred site of each mirror."""
        return self._preferred

    def fetched(self, url: str, duplicate_of: str | None) -> None:
        """Take in that a page came, and which earlier page it repeats."""
        site, path = _split(url)
        if duplicate_of is not None:
            other, there = _split(duplicate_of)
            if other != site and there == path:
                self._hit(site, other)
                return
        pair = self._row(site)
        if pair is not None and not pair.found and self._is_settled(pair.other + path):
            self._note(site, pair, hit=False)

    def instead_of(self, url: str) -> str | None:
        """The preferred site's URL that a queued ``url`` need not be fetched for, or None.

        That page was settled, or waits; a site that was given up stands for none.
        """
        if not self._preferred:
            return None
        site, path = _split(url)
        preferred = self._preferred.get(site)
        return preferred + path if preferred and self._is_known(preferred + path) else None

    def has(self, url: str) -> bool:
        """Whether the page of a newly found ``url`` is known from a site of the same pages."""
        if not self._preferred:
            return False
        site, path = _split(url)
        preferred = self._preferred.get(site)
        others = self._less.get(site, [])[:_ASKED] if preferred is None else [preferred]
        return any(self._is_known(other + path) for other in others)

    def _hit(self, site: str, other: str) -> None:
        for one, another in ((site, other), (other, site)):
            pair = self._row(one)
            if pair is not None and pair.other == another:
                self._note(one, pair, hit=True)
                return
        waiting = self._row(site)
        if waiting is None or not waiting.found:
            self._note(site, _Pair(other, []), hit=True)

    def _note(self, site: str, pair: _Pair, *, hit: bool) -> None:
        if pair.found:
            return
        pair.tries = [*pair.tries[1 - _TRIED :], hit]
        if sum(pair.tries) >= _HITS:
            self._store.delete(_TABLE, site.encode())
            site, pair.other = self._in_order(site, pair.other)
            pair.found = site != pair.other
            if pair.found:
                self._pair(site, pair.other)
        self._store.put(_TABLE, site.encode(), pack(pair))

    def _in_order(self, site: str, other: str) -> tuple[str, str]:
        """The mirror and the preferred site."""
        if other == site.replace("https:", "http:", 1):
            site, other = other, site
        while other in self._preferred and other != site:
            other = self._preferred[other]
        return site, other

    def _pair(self, site: str, preferred: str) -> None:
        self._preferred[site] = preferred
        self._less.setdefault(preferred, []).append(site)

    def _is_settled(self, url: str) -> bool:
        key = link_key(url)
        return key in self._known_among([(host_of(url), key)]).settled

    def _is_known(self, url: str) -> bool:
        host, key = host_of(url), link_key(url)
        if self._given_up(host):
            return False
        known = self._known_among([(host, key)])
        return key in known.settled or key in known.waiting

    def _row(self, site: str) -> _Pair | None:
        raw = self._store.get(_TABLE, site.encode())
        return None if raw is None else _pair_in(raw)


def _split(url: str) -> tuple[str, str]:
    """Site, and path with query, of a normalised URL."""
    end = url.index("/", url.index("//") + 2)
    return url[:end], url[end:]
