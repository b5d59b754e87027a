"""Which earlier page a fetched page repeats, but for a few words.

Each page leaves a sketch of its shingles, filed under its smallest hashes. A new page
is held against the few earlier ones with which it shares most of those. What stands on
several pages of a host is that host's boilerplate (Bar-Yossef and Rajagopalan 2002,
"Template detection via data mining and its applications") and counts on neither side,
whichever of the two came first.

A page that looks like another of its own host is the same page only if it bears the
same title, numbers aside, and when the host's boilerplate is known: pages of one template
with few words of their own look alike, and are what a reference consists of. Pages that
are too short for a sample are never near-duplicates.
"""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec
import numpy as np

from focused.frontier.rows import pack
from focused.frontier.tables import Tables
from focused.web.page import Page
from focused.web.shingles import Hashes, Sketch, resemblance, sketch, without
from focused.web.url import host_of

RESEMBLANCE = 0.85
MIN_SHINGLES = 30
MAX_PAGES = 1_000_000

_TOLD_FROM = 0.5
_FILED = 8
_LOOKED_UP = 64
_PAGES_A_HASH = 4
_COMPARED = 4
_RECENT = 8
_PAGES_OF_BOILERPLATE = 3
_MAX_BOILERPLATE = 1_024
_FEW_NEWS = 4
_NUMBERS = "near_duplicates"
_NUMBER = struct.Struct(">I")
_PAGE = struct.Struct("=I")
_HASH = np.dtype(">u8")
_DIGITS_AND_SPACE = re.compile(r"[\W\d_]+")


class _Filed(msgspec.Struct, frozen=True, array_like=True):
    """One earlier page: what it is held against."""

    url: str
    title: str
    up_to: int
    hashes: bytes

    @property
    def sketch(self) -> Sketch:
        return Sketch(np.frombuffer(self.hashes, np.uint64), self.up_to)


class _HostRow(msgspec.Struct, array_like=True):
    """The numbers of a host's latest pages, and the shingles found on several of them.

    ``quiet`` counts the latest pages in a row that added next to none of these.
    """

    recent: list[int]
    boilerplate: bytes = b""
    quiet: int = 0

    @property
    def is_known(self) -> bool:
        """Whether what the host's pages have in common is known, mostly."""
        return self.quiet > _PAGES_OF_BOILERPLATE


@dataclass(frozen=True, slots=True)
class Sketched:
    """A page's different shingles, those of its host's boilerplate left out of ``own``.

    ``boilerplate`` is the host's as it was known then, ``host_known`` whether that is all of it.
    """

    url: str
    title: str
    own: Sketch
    boilerplate: Hashes
    host_known: bool


_filed_in = msgspec.msgpack.Decoder(_Filed).decode
_host_in = msgspec.msgpack.Decoder(_HostRow).decode


class NearDuplicates:
    """The sketches of a crawl's last :data:`MAX_PAGES` pages, durable; the caller commits.

    A page takes 1.5 kB at most, a host 8.3 kB once its boilerplate is known.
    """

    def __init__(
        self, tables: Tables, *, threshold: float = RESEMBLANCE, most: int = MAX_PAGES
    ) -> None:
        """``threshold`` in (0, 1] is the least resemblance of a near-duplicate."""
        self._tables = tables
        self._threshold = threshold
        self._least_common = min(threshold, _TOLD_FROM) * MIN_SHINGLES
        self._most = most
        self._next = int(tables.get_meta(_NUMBERS) or 0)

    def sketched(self, page: Page, hashes: Hashes) -> Sketched:
        """What :meth:`like` and :meth:`add` take of a page; ``hashes`` are its shingles.

        Of those the smallest do: a sketch's, and as many as may be boilerplate.
        """
        row = self._host_row(host_of(page.url).encode())
        boilerplate = np.frombuffer(row.boilerplate, np.uint64)
        own = sketch(without(hashes, boilerplate))
        if len(boilerplate) == _MAX_BOILERPLATE:
            # Only up to there it is known which shingles are the host's.
            own = own.until(int(boilerplate[-1]))
        return Sketched(page.url, _plain(page.title), own, boilerplate, row.is_known)

    def like(self, page: Sketched) -> str | None:
        """The URL of the earlier page that ``page`` repeats; None when it is new, or too short."""
        share, url = self.nearest(page)
        return url if share >= self._threshold else None

    def nearest(self, page: Sketched) -> tuple[float, str]:
        """The resemblance to the most alike earlier page, in [0, 1], and its URL; 0 without any.

        One below a half, and below the threshold, may be told as 0.
        """
        best = (0.0, "")
        if len(page.own.hashes) < MIN_SHINGLES:
            return best
        for filed in self._alike(page.own):
            if not self._may_resemble(page.own.hashes, filed.sketch.hashes):
                continue
            share, number = self._resemblance(page, filed)
            if number >= MIN_SHINGLES:
                best = max(best, (share, filed.url))
        return best

    def add(self, page: Sketched) -> None:
        """File a page that repeats none; the oldest is forgotten when there are too many."""
        own = page.own
        if len(own.hashes) < MIN_SHINGLES:
            return
        host = host_of(page.url).encode()
        row = self._host_row(host)
        self._learn_boilerplate(row, own)
        row.recent = [*row.recent[1 - _RECENT :], self._next]
        self._tables.put("host_shingles", host, pack(row))
        filed = _Filed(page.url, page.title, own.up_to, own.hashes.tobytes())
        self._tables.put("sketches", _NUMBER.pack(self._next), pack(filed), last=True)
        keys = _keys(own.hashes[:_FILED])
        pages, this = dict(self._tables.get_many("shingles", keys)), _PAGE.pack(self._next)
        for key in keys:
            filed_last = (pages.get(key, b"") + this)[-_PAGES_A_HASH * _PAGE.size :]
            self._tables.put("shingles", key, filed_last)
        self._next += 1
        self._tables.put_meta(_NUMBERS, self._next)
        if self._next > self._most:
            self._forget(self._next - self._most - 1)

    def _may_resemble(self, own: Hashes, filed: Hashes) -> bool:
        """Whether so much is common that enough of it may be left without boilerplate."""
        return len(own) - len(without(own, filed)) >= self._least_common

    def _resemblance(self, page: Sketched, filed: _Filed) -> tuple[float, int]:
        """The resemblance of what is left of two pages without either host's boilerplate."""
        mine, host = page.boilerplate, host_of(filed.url)
        if host != host_of(page.url):
            theirs = self._boilerplate(host)
            return resemblance(page.own.without(theirs), filed.sketch.without(mine).without(theirs))
        if not page.host_known or filed.title != page.title:
            return 0.0, 0
        return resemblance(page.own, filed.sketch.without(mine))

    def _alike(self, own: Sketch) -> Iterator[_Filed]:
        """The pages that share most of the smallest hashes, most first."""
        found = self._tables.get_many("shingles", _keys(own.hashes[:_LOOKED_UP]))
        shared = Counter(_unpacked(b"".join([value for _, value in found])))
        for number, _ in shared.most_common(_COMPARED):
            raw = self._tables.get("sketches", _NUMBER.pack(number))
            if raw is not None:
                yield _filed_in(raw)

    def _learn_boilerplate(self, row: _HostRow, own: Sketch) -> None:
        """Add what the host's latest pages and this one have in common."""
        found = [own.hashes]
        recent = self._tables.get_many("sketches", [_NUMBER.pack(each) for each in row.recent])
        found += [np.frombuffer(_filed_in(raw).hashes, np.uint64) for _, raw in recent]
        hashes = np.concatenate(found)
        hashes.sort()
        # Each page has a shingle once: so many in a row are of as many pages.
        others = _PAGES_OF_BOILERPLATE - 1
        common = hashes[others:][hashes[others:] == hashes[:-others]]
        known = np.frombuffer(row.boilerplate, np.uint64)
        new = np.unique(without(common, known)) if len(common) else common
        if len(new):
            together = np.sort(np.concatenate((known, new)))[:_MAX_BOILERPLATE]
            new = without(together, known)
            row.boilerplate = together.tobytes()
        row.quiet = row.quiet + 1 if len(new) <= _FEW_NEWS else 0

    def _forget(self, number: int) -> None:
        key = _NUMBER.pack(number)
        raw = self._tables.get("sketches", key)
        if raw is None:
            return
        filed = _filed_in(raw)
        self._tables.delete("sketches", key)
        for each in _keys(filed.sketch.hashes[:_FILED]):
            left = [other for other in self._pages_with(each) if other != number]
            if left:
                self._tables.put("shingles", each, _packed(left))
            else:
                self._tables.delete("shingles", each)
        host = host_of(filed.url).encode()
        if self._host_row(host).recent[-1:] == [number]:
            self._tables.delete("host_shingles", host)

    def _pages_with(self, key: bytes) -> list[int]:
        return _unpacked(self._tables.get("shingles", key) or b"")

    def _boilerplate(self, host: str) -> Hashes:
        return np.frombuffer(self._host_row(host.encode()).boilerplate, np.uint64)

    def _host_row(self, host: bytes) -> _HostRow:
        raw = self._tables.get("host_shingles", host)
        return _HostRow([]) if raw is None else _host_in(raw)


def _plain(title: str) -> str:
    """A title in lower case, without numbers, punctuation and white space."""
    return _DIGITS_AND_SPACE.sub("", title.lower())[:100]


def _keys(hashes: Hashes) -> list[bytes]:
    raw = hashes.astype(_HASH).tobytes()
    return [raw[i : i + 8] for i in range(0, len(raw), 8)]


def _packed(numbers: list[int]) -> bytes:
    return np.array(numbers, np.uint32).tobytes()


def _unpacked(raw: bytes) -> list[int]:
    numbers: list[int] = np.frombuffer(raw, np.uint32).tolist()
    return numbers
