"""Which prefixes of URLs hold the same pages: pairs, learned from copies and from their absence.

Bottom-up, from single copies (Cho, Shivakumar and Garcia-Molina 2000, "Finding replicated
web collections"): a copy whose URL ends as its original's does is a hit for the prefixes
before; that both are whole sites is Bharat and Broder's case ("Mirror, mirror on the Web", 1999).
A page that is no copy of what stands at its counterpart is a miss.

Versions of one manual share most pages, mirrors share all. So a miss takes back all hits,
copies word for word and copies at the same path of two sites weigh more than near ones, and
what a pair is taken for is doubted: pages that could be spared are still tried now and then,
and a pair that fails twice among its last tries is dissolved, and needs more hits to be
found again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec
import xxhash

from focused.frontier.rows import pack
from focused.frontier.tables import Tables

NEEDED = 20
"""Hits in a row that make a pair, where each weighs 1."""
STRONG = 4
"""What an exact copy weighs, and one at the same path of another site."""
MAX_PAIRS = 10_000
_NEEDED_AGAIN = 4
TRIED = 16
"""The tries of a pair that was found that count: two misses among them end it."""
_MISSES = 2
_CANDIDATES = 3
# Rows of candidates; prefixes that share one forget each other.
_ROWS = 1 << 16
_LESSER_LOOKED_AT = 4
_TABLE = "mirrors"
_FOUND, _CANDIDATE = b"found ", b"candidate "


class _Candidate(msgspec.Struct, array_like=True):
    other: str
    hits: int = 0
    needed: int = NEEDED


class _Row(msgspec.Struct, array_like=True):
    prefix: str
    candidates: list[_Candidate]


class _Found(msgspec.Struct, array_like=True):
    other: str
    tries: list[bool]
    needed: int


_row_in = msgspec.msgpack.Decoder(_Row).decode
_found_in = msgspec.msgpack.Decoder(_Found).decode


class MirrorPairs:
    """Pairs of a lesser prefix and the preferred one; durable, the caller commits.

    Memory and disk are bounded: :data:`MAX_PAIRS` pairs and 65,536 rows of candidates.
    """

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._found: dict[str, _Found] = {}
        self._preferred: dict[str, str] = {}
        self._lesser: dict[str, list[str]] = {}
        for key, raw in tables.scan(_TABLE, _FOUND):
            self._take(key[len(_FOUND) :].decode(), _found_in(raw))

    @property
    def preferred(self) -> Mapping[str, str]:
        """The preferred prefix by the lesser one."""
        return self._preferred

    def lesser(self, preferred: str) -> Sequence[str]:
        """Some prefixes that hold the same pages as the preferred one."""
        return self._lesser.get(preferred, ())[:_LESSER_LOOKED_AT]

    def others(self, prefix: str) -> Iterator[str]:
        """All that ``prefix`` is or may be paired with."""
        yield from self.lesser(prefix)
        if prefix in self._preferred:
            yield self._preferred[prefix]
            return
        row = self._row(prefix)
        yield from [] if row is None else [each.other for each in row.candidates]

    def tries(self, lesser: str) -> Sequence[bool]:
        """The latest tries of a pair that was found, True for hits."""
        return self._found[lesser].tries

    def hit(self, prefix: str, other: str, weight: int) -> None:
        """A page under ``prefix`` repeats what stands at its counterpart under ``other``."""
        for one, another in ((prefix, other), (other, prefix)):
            if self._preferred.get(one) == another:
                self._try(one, True)
                return
        if prefix in self._preferred:
            return
        row, candidate = self._candidate(other, prefix)
        if candidate is None:
            row, candidate = self._candidate(prefix, other)
        if candidate is None:
            candidate = _Candidate(other)
            row = row if row is not None and row.prefix == prefix else _Row(prefix, [])
            row.candidates = [*row.candidates[1 - _CANDIDATES :], candidate]
        assert row is not None
        candidate.hits += weight
        if candidate.hits >= candidate.needed and len(self._found) < MAX_PAIRS:
            row.candidates.remove(candidate)
            self._find(row.prefix, candidate)
        self._tables.put(_TABLE, _slot(row.prefix), pack(row))

    def miss(self, prefix: str, other: str) -> str | None:
        """A page under ``prefix`` is another than its counterpart under ``other``.

        Returns the lesser prefix when that ends a pair.
        """
        for one, another in ((prefix, other), (other, prefix)):
            if self._preferred.get(one) == another:
                return one if self._try(one, False) else None
            row, candidate = self._candidate(one, another)
            if row is not None and candidate is not None:
                candidate.hits = 0
                self._tables.put(_TABLE, _slot(one), pack(row))
        return None

    def _find(self, prefix: str, candidate: _Candidate) -> None:
        lesser, preferred = self._in_order(prefix, candidate.other)
        if lesser == preferred:
            return
        for below in [*self._lesser.get(lesser, ()), lesser]:
            if below != preferred:
                self._keep(below, _Found(preferred, [], candidate.needed))

    def _in_order(self, one: str, other: str) -> tuple[str, str]:
        """The lesser and the preferred prefix: https, the shorter of two nested, the first."""
        if other == one.replace("https:", "http:", 1) or other.startswith(one + "/"):
            one, other = other, one
        return one, self._preferred.get(other, other)

    def _keep(self, lesser: str, found: _Found) -> None:
        self._take(lesser, found)
        self._tables.put(_TABLE, _FOUND + lesser.encode(), pack(found))

    def _take(self, lesser: str, found: _Found) -> None:
        before = self._preferred.get(lesser)
        if before is not None:
            self._lesser[before].remove(lesser)
        self._found[lesser] = found
        self._preferred[lesser] = found.other
        self._lesser.setdefault(found.other, []).append(lesser)

    def _try(self, lesser: str, hit: bool) -> bool:
        """Note one try of a found pair; True when it ended the pair."""
        found = self._found[lesser]
        found.tries = [*found.tries[1 - TRIED :], hit]
        if found.tries.count(False) < _MISSES:
            self._tables.put(_TABLE, _FOUND + lesser.encode(), pack(found))
            return False
        del self._found[lesser], self._preferred[lesser]
        self._lesser[found.other].remove(lesser)
        self._tables.delete(_TABLE, _FOUND + lesser.encode())
        again = _Candidate(found.other, 0, found.needed * _NEEDED_AGAIN)
        self._tables.put(_TABLE, _slot(lesser), pack(_Row(lesser, [again])))
        return True

    def _candidate(self, prefix: str, other: str) -> tuple[_Row | None, _Candidate | None]:
        row = self._row(prefix)
        found = row and next((each for each in row.candidates if each.other == other), None)
        return row, found or None

    def _row(self, prefix: str) -> _Row | None:
        raw = self._tables.get(_TABLE, _slot(prefix))
        row = None if raw is None else _row_in(raw)
        return row if row is not None and row.prefix == prefix else None


def _slot(prefix: str) -> bytes:
    return _CANDIDATE + (xxhash.xxh3_64_intdigest(prefix.encode()) % _ROWS).to_bytes(2, "big")
