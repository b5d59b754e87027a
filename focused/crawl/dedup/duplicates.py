"""Pages that were met before under another URL: word for word, nearly so, or as they say."""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

import msgspec
import numpy as np

from focused.crawl.dedup.signatures import load_signature
from focused.crawl.page_parser import ParsedPage
from focused.storage.rows import pack
from focused.storage.tables import Tables
from focused.text.content_signatures import (
    NO_BAG_HASH,
    ShingleHashes,
    Sketch,
    bag_of_words_hash,
    estimate_resemblance,
    hashes_not_in,
    make_sketch,
)
from focused.web.page import Page
from focused.web.urls import host_of

MIN_CANONICAL_RESEMBLANCE = 0.5
"""So alike are a page and the one that it says it is, to be taken for the same."""


class DuplicateKind(StrEnum):
    """How a page repeats an earlier one. The value is what archives hold."""

    EXACT = "exact"
    NEAR = "near"
    CANONICAL = "canonical"


@dataclass(frozen=True, slots=True)
class DuplicateMatch:
    """What is known of a page's content: ``of`` is the page it repeats, None when it is new.

    ``key`` stands for the content, ``page_sketch`` for what it is made of. ``exact_duplicate_of`` is the first
    page that is the same word for word, which may be a near-duplicate of ``of``.
    """

    key: bytes
    of: str | None = None
    kind: DuplicateKind | None = None
    page_sketch: PageSketch | None = None
    exact_duplicate_of: str | None = None


class DuplicateDetector:
    """The contents that a crawl has met, durable over its tables; the caller commits."""

    def __init__(self, tables: Tables, *, near: bool) -> None:
        """``near`` False: pages must be the same word for word."""
        self._tables = tables
        self._near = NearDuplicateIndex(tables) if near else None

    def find_duplicate(self, reading: ParsedPage) -> DuplicateMatch:
        """Find the page that a page repeats, itself no copy; changes nothing."""
        page, key = reading.page, reading.content
        same = self._tables.get("content", key)
        if same is not None:
            original, _, near = same.decode().partition(" ")
            return DuplicateMatch(
                key, original, DuplicateKind.EXACT, exact_duplicate_of=near or original
            )
        page_sketch = self._sketched(reading)
        if self._is_copy_of_canonical(page):
            return DuplicateMatch(key, page.canonical, DuplicateKind.CANONICAL, page_sketch)
        if self._near is None or page_sketch is None:
            return DuplicateMatch(key)
        share, like = self._near.nearest(page_sketch)
        if share >= MIN_RESEMBLANCE:
            return DuplicateMatch(key, like, DuplicateKind.NEAR, page_sketch)
        if like == page.canonical and share >= MIN_CANONICAL_RESEMBLANCE:
            return DuplicateMatch(key, like, DuplicateKind.CANONICAL, page_sketch)
        return DuplicateMatch(key, page_sketch=page_sketch)

    def _sketched(self, reading: ParsedPage) -> PageSketch | None:
        if self._near is None or reading.shingles is None:
            return None
        return self._near.page_sketch(reading.page, reading.shingles)

    def _is_copy_of_canonical(self, page: Page) -> bool:
        """Whether the page that it names came, with the same words in another order."""
        if page.canonical is None or page.canonical == page.url:
            return False
        there = load_signature(self._tables, page.canonical)
        return (
            there is not None and there.bag != NO_BAG_HASH and there.bag == bag_of_words_hash(page)
        )

    def keep(self, page: Page, looked: DuplicateMatch) -> None:
        """Remember the content of a page that was looked up."""
        if looked.kind is DuplicateKind.EXACT:
            return
        first = page.url if looked.of is None else f"{looked.of} {page.url}"
        self._tables.put("content", looked.key, first.encode())
        if self._near is not None and looked.of is None and looked.page_sketch is not None:
            self._near.add(looked.page_sketch)


MIN_RESEMBLANCE = 0.85
MIN_SHINGLES = 30
MAX_PAGES = 1_000_000

_MIN_REPORTED_RESEMBLANCE = 0.5
_INDEXED_HASHES = 8
_QUERIED_HASHES = 64
_MAX_PAGES_PER_HASH = 4
_MAX_COMPARED_PAGES = 4
_RECENT_PAGES = 8
_MIN_BOILERPLATE_PAGES = 3
_MAX_BOILERPLATE = 1_024
_MAX_NEW_SHINGLES = 4
_NEXT_PAGE_META = "near_duplicates"
_PAGE_KEY = struct.Struct(">I")
_PAGE = struct.Struct("=I")
_HASH = np.dtype(">u8")
_DIGITS_AND_SPACE = re.compile(r"[\W\d_]+")


class _IndexedPage(msgspec.Struct, frozen=True, array_like=True):
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
        return self.quiet > _MIN_BOILERPLATE_PAGES


@dataclass(frozen=True, slots=True)
class PageSketch:
    """A page's different shingles, those of its host's boilerplate left out of ``own``.

    ``boilerplate`` is the host's as it was known then, ``host_known`` whether that is all of it.
    """

    url: str
    title: str
    own: Sketch
    boilerplate: ShingleHashes
    host_known: bool


_decode_page = msgspec.msgpack.Decoder(_IndexedPage).decode
_decode_host = msgspec.msgpack.Decoder(_HostRow).decode


class NearDuplicateIndex:
    """The sketches of a crawl's last :data:`MAX_PAGES` pages, durable; the caller commits.

    A page takes 1.5 kB at most, a host 8.3 kB once its boilerplate is known.
    """

    def __init__(
        self, tables: Tables, *, threshold: float = MIN_RESEMBLANCE, most: int = MAX_PAGES
    ) -> None:
        """``threshold`` in (0, 1] is the least resemblance of a near-duplicate."""
        self._tables = tables
        self._threshold = threshold
        self._min_common_hashes = min(threshold, _MIN_REPORTED_RESEMBLANCE) * MIN_SHINGLES
        self._most = most
        self._next = int(tables.get_meta(_NEXT_PAGE_META) or 0)

    def page_sketch(self, page: Page, hashes: ShingleHashes) -> PageSketch:
        """What :meth:`like` and :meth:`add` take of a page; ``hashes`` are its shingles.

        Of those the smallest do: a sketch's, and as many as may be boilerplate.
        """
        row = self._host_row(host_of(page.url).encode())
        boilerplate = np.frombuffer(row.boilerplate, np.uint64)
        own = make_sketch(hashes_not_in(hashes, boilerplate))
        if len(boilerplate) == _MAX_BOILERPLATE:
            # Only up to there it is known which shingles are the host's.
            own = own.until(int(boilerplate[-1]))
        return PageSketch(page.url, _normalise_title(page.title), own, boilerplate, row.is_known)

    def like(self, page: PageSketch) -> str | None:
        """The URL of the earlier page that ``page`` repeats; None when it is new, or too short."""
        share, url = self.nearest(page)
        return url if share >= self._threshold else None

    def nearest(self, page: PageSketch) -> tuple[float, str]:
        """The resemblance to the most alike earlier page, in [0, 1], and its URL; 0 without any.

        One below a half, and below the threshold, may be told as 0.
        """
        best = (0.0, "")
        if len(page.own.hashes) < MIN_SHINGLES:
            return best
        for filed in self._alike(page.own):
            if not self._may_reach_threshold(page.own.hashes, filed.sketch.hashes):
                continue
            share, number = self._resemblance(page, filed)
            if number >= MIN_SHINGLES:
                best = max(best, (share, filed.url))
        return best

    def add(self, page: PageSketch) -> None:
        """File a page that repeats none; the oldest is forgotten when there are too many."""
        own = page.own
        if len(own.hashes) < MIN_SHINGLES:
            return
        host = host_of(page.url).encode()
        row = self._host_row(host)
        self._update_boilerplate(row, own)
        row.recent = [*row.recent[1 - _RECENT_PAGES :], self._next]
        self._tables.put("host_shingles", host, pack(row))
        filed = _IndexedPage(page.url, page.title, own.up_to, own.hashes.tobytes())
        self._tables.put("sketches", _PAGE_KEY.pack(self._next), pack(filed), last=True)
        keys = _hash_keys(own.hashes[:_INDEXED_HASHES])
        pages, this = dict(self._tables.get_many("shingles", keys)), _PAGE.pack(self._next)
        for key in keys:
            filed_last = (pages.get(key, b"") + this)[-_MAX_PAGES_PER_HASH * _PAGE.size :]
            self._tables.put("shingles", key, filed_last)
        self._next += 1
        self._tables.put_meta(_NEXT_PAGE_META, self._next)
        if self._next > self._most:
            self._forget(self._next - self._most - 1)

    def _may_reach_threshold(self, own: ShingleHashes, filed: ShingleHashes) -> bool:
        """Whether so much is common that enough of it may be left without boilerplate."""
        return len(own) - len(hashes_not_in(own, filed)) >= self._min_common_hashes

    def _resemblance(self, page: PageSketch, filed: _IndexedPage) -> tuple[float, int]:
        """The resemblance of what is left of two pages without either host's boilerplate."""
        mine, host = page.boilerplate, host_of(filed.url)
        if host != host_of(page.url):
            theirs = self._boilerplate(host)
            return estimate_resemblance(
                page.own.without(theirs), filed.sketch.without(mine).without(theirs)
            )
        if not page.host_known or filed.title != page.title:
            return 0.0, 0
        return estimate_resemblance(page.own, filed.sketch.without(mine))

    def _alike(self, own: Sketch) -> Iterator[_IndexedPage]:
        """The pages that share most of the smallest hashes, most first."""
        found = self._tables.get_many("shingles", _hash_keys(own.hashes[:_QUERIED_HASHES]))
        shared = Counter(_unpack_numbers(b"".join([value for _, value in found])))
        for number, _ in shared.most_common(_MAX_COMPARED_PAGES):
            raw = self._tables.get("sketches", _PAGE_KEY.pack(number))
            if raw is not None:
                yield _decode_page(raw)

    def _update_boilerplate(self, row: _HostRow, own: Sketch) -> None:
        """Add what the host's latest pages and this one have in common."""
        found = [own.hashes]
        recent = self._tables.get_many("sketches", [_PAGE_KEY.pack(each) for each in row.recent])
        found += [np.frombuffer(_decode_page(raw).hashes, np.uint64) for _, raw in recent]
        hashes = np.concatenate(found)
        hashes.sort()
        # Each page has a shingle once: so many in a row are of as many pages.
        others = _MIN_BOILERPLATE_PAGES - 1
        common = hashes[others:][hashes[others:] == hashes[:-others]]
        known = np.frombuffer(row.boilerplate, np.uint64)
        new = np.unique(hashes_not_in(common, known)) if len(common) else common
        if len(new):
            together = np.sort(np.concatenate((known, new)))[:_MAX_BOILERPLATE]
            new = hashes_not_in(together, known)
            row.boilerplate = together.tobytes()
        row.quiet = row.quiet + 1 if len(new) <= _MAX_NEW_SHINGLES else 0

    def _forget(self, number: int) -> None:
        key = _PAGE_KEY.pack(number)
        raw = self._tables.get("sketches", key)
        if raw is None:
            return
        filed = _decode_page(raw)
        self._tables.delete("sketches", key)
        for each in _hash_keys(filed.sketch.hashes[:_INDEXED_HASHES]):
            left = [other for other in self._pages_with(each) if other != number]
            if left:
                self._tables.put("shingles", each, _pack_numbers(left))
            else:
                self._tables.delete("shingles", each)
        host = host_of(filed.url).encode()
        if self._host_row(host).recent[-1:] == [number]:
            self._tables.delete("host_shingles", host)

    def _pages_with(self, key: bytes) -> list[int]:
        return _unpack_numbers(self._tables.get("shingles", key) or b"")

    def _boilerplate(self, host: str) -> ShingleHashes:
        return np.frombuffer(self._host_row(host.encode()).boilerplate, np.uint64)

    def _host_row(self, host: bytes) -> _HostRow:
        raw = self._tables.get("host_shingles", host)
        return _HostRow([]) if raw is None else _decode_host(raw)


def _normalise_title(title: str) -> str:
    """A title in lower case, without numbers, punctuation and white space."""
    return _DIGITS_AND_SPACE.sub("", title.lower())[:100]


def _hash_keys(hashes: ShingleHashes) -> list[bytes]:
    raw = hashes.astype(_HASH).tobytes()
    return [raw[i : i + 8] for i in range(0, len(raw), 8)]


def _pack_numbers(numbers: list[int]) -> bytes:
    return np.array(numbers, np.uint32).tobytes()


def _unpack_numbers(raw: bytes) -> list[int]:
    numbers: list[int] = np.frombuffer(raw, np.uint32).tolist()
    return numbers
