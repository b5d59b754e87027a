"""Detect duplicates: pages with exactly or nearly the content of an earlier one.

Near-duplicates: each page's sketch of shingles is indexed by its smallest hashes. A new page is
compared with the few earlier pages that share most of these. Shingles that occur on several pages
of a host are its boilerplate (Bar-Yossef and Rajagopalan 2002, "Template detection via data mining
and its applications") and don't count on either side.

Pages of one host are near-duplicates only with the same title, except for numbers, and only once
the host's boilerplate is known, because short pages of one template look alike. Pages that are too
short are never near-duplicates.

A document (:mod:`focused.documents`) and a page of HTML, or documents of two formats, share less
of their text, and no template: they are one work from a lower resemblance, also on one host.

A crawl of many partitions shares the contents of its pages on topic: a page that is new to its own
partition may be known to another.
"""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Protocol

import msgspec
import numpy as np

from focused.crawl.dedup.url_aliases import load_signature
from focused.crawl.page_parser import ParsedPage
from focused.frontier.queued_link import link_key
from focused.storage.rows import pack
from focused.storage.tables import Tables
from focused.text.content_signatures import NO_BAG_HASH, bag_of_words_hash
from focused.text.shingles import (
    ShingleHashes,
    Sketch,
    count_common_hashes,
    estimate_containment,
    estimate_resemblance,
    hashes_not_in,
    make_sketch,
    unique_hashes,
)
from focused.web.host_names import registered_domain
from focused.web.page import Page
from focused.web.urls import host_of

MIN_CANONICAL_RESEMBLANCE = 0.5
"""The resemblance from which a page duplicates the page that it names as canonical."""
MIN_CONTAINMENT = 0.5
"""The share of the shorter page from which it and a page of another site have common text."""
MIN_COPIED_SHINGLES = 100
"""Shorter pages of honest sites share half of their shingles by their menus alone."""


class DuplicateKind(StrEnum):
    """How a page duplicates another; the archive stores the value."""

    EXACT = "exact"
    NEAR = "near"
    CANONICAL = "canonical"


@dataclass(frozen=True, slots=True)
class DuplicateMatch:
    """The result of a lookup; ``of`` is the original, None for new content.

    ``key`` identifies the content. ``exact_duplicate_of`` is the first page with the same text,
    which may itself be a near-duplicate of ``of``. A better page ``replaces`` the original; one
    whose original vanished ``succeeds`` it.
    """

    key: bytes
    of: str | None = None
    kind: DuplicateKind | None = None
    page_sketch: PageSketch | None = None
    exact_duplicate_of: str | None = None
    replaces: str | None = None
    succeeds: str | None = None

    def as_original(self) -> DuplicateMatch:
        """Return the match of a page that takes the place of the one that it duplicates."""
        return DuplicateMatch(self.key, replaces=self.of)


class SharedContents(Protocol):
    """The contents of the pages of all partitions of a crawl.

    No method raises: without an answer nothing is known of other partitions.
    """

    def claim(self, key: bytes, url: str, sketch: PageSketch | None) -> DuplicateMatch | None:
        """Return the page of another URL with this content, or nearly; None makes it ours."""

    def is_original(self, url: str) -> bool:
        """Whether another partition fetched ``url`` and its page was new."""


class DuplicateDetector:
    """The contents of all fetched pages; persistent, the caller commits."""

    def __init__(self, tables: Tables, *, near: bool, shared: SharedContents | None = None) -> None:
        """With ``near`` False only exact duplicates are detected."""
        self._tables = tables
        self._near = NearDuplicateIndex(tables) if near else None
        self._shared = shared

    def can_replace(self, match: DuplicateMatch) -> bool:
        """Whether the page could take the place of the one that it duplicates.

        Not where it names the other as canonical, nor in a crawl of many partitions, whose
        originals may be elsewhere.
        """
        return self._shared is None and match.kind in (DuplicateKind.EXACT, DuplicateKind.NEAR)

    def find_duplicate(self, parsed: ParsedPage, *, is_kept: bool = True) -> DuplicateMatch:
        """Find the original that a page duplicates; writes nothing into the tables.

        A page on topic that is new here is looked up in the shared contents, and claimed there,
        if it ``is_kept``.
        """
        match = self._find_own(parsed)
        shares = is_kept and parsed.classification.on_topic
        if self._shared is None or match.of is not None or not shares:
            return match
        return self._shared.claim(match.key, parsed.page.url, match.page_sketch) or match

    def _find_own(self, parsed: ParsedPage) -> DuplicateMatch:
        page, key = parsed.page, parsed.content
        same = self._tables.get("content", key)
        if same is not None:
            original, _, near = same.decode().partition(" ")
            first = near or original
            return self._of_current(
                DuplicateMatch(key, original, DuplicateKind.EXACT, exact_duplicate_of=first)
            )
        page_sketch = self._sketched(parsed)
        found = DuplicateMatch(key, page_sketch=page_sketch)
        if self._is_copy_of_canonical(page):
            return self._of_current(replace(found, of=page.canonical, kind=DuplicateKind.CANONICAL))
        if self._near is None or page_sketch is None:
            return found
        share, url_of_match, least = self._near.nearest(page_sketch)
        if share >= least:
            return self._of_current(replace(found, of=url_of_match, kind=DuplicateKind.NEAR))
        if url_of_match == page.canonical and share >= MIN_CANONICAL_RESEMBLANCE:
            return self._of_current(replace(found, of=url_of_match, kind=DuplicateKind.CANONICAL))
        return found

    def _of_current(self, match: DuplicateMatch) -> DuplicateMatch:
        """Return the match of the page that took the place of the original, if one did."""
        assert match.of is not None
        of = self._current_original(match.of)
        if self._has_vanished(of):
            return DuplicateMatch(match.key, succeeds=of)
        return replace(match, of=of)

    def common_text(self, match: DuplicateMatch) -> Sequence[str]:
        """Return pages of other sites with which new content has much of its text in common.

        One of each site, the closest first; the match is not kept yet.
        """
        if self._near is None or match.page_sketch is None or match.of is not None:
            return ()
        return [self._current_original(url) for url in self._near.common_text(match.page_sketch)]

    def replace_original(self, of: str, url: str) -> None:
        """Make ``url`` the original of the content of ``of``."""
        self._tables.put("content", _replacement_key(of), url.encode())

    def vacate(self, url: str) -> None:
        """Note that a page vanished: the next one with its content takes its place."""
        self._tables.put("content", _replacement_key(url), _VANISHED)

    def occupy(self, url: str) -> None:
        """Note that a page that had vanished is back; it stays replaced if another page was."""
        if self.is_vacant(url):
            self._tables.delete("content", _replacement_key(url))

    def is_vacant(self, url: str) -> bool:
        """Whether a page, or the one that took its place, vanished."""
        return self._has_vanished(self._current_original(url))

    def _has_vanished(self, url: str) -> bool:
        return self._tables.get("content", _replacement_key(url)) == _VANISHED

    def _current_original(self, url: str) -> str:
        """Return the page that took the place of ``url``, or ``url``."""
        for _ in range(_MAX_REPLACEMENTS):
            later = self._tables.get("content", _replacement_key(url))
            if later is None or later == _VANISHED:
                break
            url = later.decode()
        return url

    def _sketched(self, parsed: ParsedPage) -> PageSketch | None:
        if self._near is None or parsed.shingles is None:
            return None
        return self._near.page_sketch(parsed.page, parsed.shingles)

    def _is_copy_of_canonical(self, page: Page) -> bool:
        """Whether the page it names was fetched and has the same words in any order."""
        if page.canonical is None or page.canonical == page.url:
            return False
        there = load_signature(self._tables, page.canonical)
        return (
            there is not None and there.bag != NO_BAG_HASH and there.bag == bag_of_words_hash(page)
        )

    def keep(self, page: Page, match: DuplicateMatch) -> None:
        """Store the content of a page that was looked up."""
        earlier = match.replaces or match.succeeds
        if earlier is not None:
            self._tables.put("content", match.key, page.url.encode())
            self._tables.put("content", _replacement_key(earlier), page.url.encode())
            self._tables.delete("content", _replacement_key(page.url))
            return
        if match.kind is DuplicateKind.EXACT and self._tables.get("content", match.key):
            return
        first = page.url if match.of is None else f"{match.of} {page.url}"
        self._tables.put("content", match.key, first.encode())
        if self._near is not None and match.of is None and match.page_sketch is not None:
            self._near.add(match.page_sketch)

    def keep_version(self, page: Page, content: DuplicateMatch) -> None:
        """Store the content of a new version, unless another page has the same."""
        if self._tables.get("content", content.key) is None:
            self._tables.put("content", content.key, page.url.encode())


_MAX_REPLACEMENTS = 8
_VANISHED = b""
"""Stands in the place of the page that took the place of another: none did yet."""


def _replacement_key(url: str) -> bytes:
    """Return the key of the page that took the place of ``url``; longer than those of contents."""
    return b"replaced by " + link_key(url)


MIN_RESEMBLANCE = 0.85
MIN_RESEMBLANCE_OF_FORMATS = 0.5
"""The resemblance from which pages of different formats are near-duplicates."""
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
_SAMPLED_PAGES = 4
"""Of these pages one, by its URL, is compared with others of a host whose boilerplate is known."""
_PAGE_KEY = struct.Struct(">I")
_PAGE = struct.Struct("=I")
_HASH = np.dtype(">u8")
_DIGITS_AND_SPACE = re.compile(r"[\W\d_]+")


class _IndexedPage(msgspec.Struct, frozen=True, array_like=True):
    """An earlier page in the index."""

    url: str
    title: str
    up_to: int
    hashes: bytes
    format: str = ""

    @property
    def sketch(self) -> Sketch:
        return Sketch(np.frombuffer(self.hashes, np.uint64), self.up_to)


class _HostRow(msgspec.Struct, array_like=True):
    """A host's latest pages that were compared, and its boilerplate.

    ``quiet`` counts those in a row that added almost nothing to the boilerplate.
    """

    recent: list[int]
    boilerplate: bytes = b""
    quiet: int = 0

    @property
    def is_known(self) -> bool:
        """Whether most of the host's boilerplate is known."""
        return self.quiet > _MIN_BOILERPLATE_PAGES


@dataclass(frozen=True, slots=True)
class PageSketch:
    """A page's shingles without its host's boilerplate.

    ``candidates`` are the earlier pages that share most of the smallest hashes, most first.
    """

    url: str
    title: str
    own: Sketch
    boilerplate: ShingleHashes
    host_known: bool
    format: str = ""
    candidates: Sequence[_IndexedPage] = ()


_decode_page = msgspec.msgpack.Decoder(_IndexedPage).decode
_decode_host = msgspec.msgpack.Decoder(_HostRow).decode


class NearDuplicateIndex:
    """The sketches of the last :data:`MAX_PAGES` pages; persistent, the caller commits.

    A page takes at most 1.5 kB, a host's boilerplate 8.3 kB.
    """

    def __init__(
        self, tables: Tables, *, threshold: float = MIN_RESEMBLANCE, most: int = MAX_PAGES
    ) -> None:
        """``threshold`` in (0, 1] is the smallest resemblance of a near-duplicate."""
        self._tables = tables
        self._threshold = threshold
        self._min_common_hashes = min(threshold, _MIN_REPORTED_RESEMBLANCE) * MIN_SHINGLES
        self._most = most
        last = tables.last_key("sketches")
        self._next = 0 if last is None else _PAGE_KEY.unpack(last)[0] + 1

    def page_sketch(self, page: Page, hashes: ShingleHashes) -> PageSketch:
        """Build a page's sketch from its smallest shingle ``hashes``, and find its candidates."""
        row = self._host_row(host_of(page.url).encode())
        boilerplate = np.frombuffer(row.boilerplate, np.uint64)
        own = make_sketch(hashes_not_in(hashes, boilerplate))
        if len(boilerplate) == _MAX_BOILERPLATE:
            # Boilerplate is known only up to its largest stored hash.
            own = own.until(int(boilerplate[-1]))
        title, candidates = _normalise_title(page.title), self._find_candidates(own)
        return PageSketch(page.url, title, own, boilerplate, row.is_known, page.format, candidates)

    def nearest(self, page: PageSketch) -> tuple[float, str, float]:
        """Return the largest resemblance to an earlier page, in [0, 1], and its URL.

        Near-duplicates come before other pages. The last value is the resemblance from which the
        two are near-duplicates. A resemblance below 0.5 and the threshold may be returned as 0.
        """
        best = (0.0, "", self._threshold)
        for stored in page.candidates:
            # Without boilerplate they have no more in common.
            common = count_common_hashes(page.own.hashes, stored.sketch.hashes)
            if common < self._min_common_hashes:
                continue
            share, number = self._resemblance(page, stored)
            if number >= MIN_SHINGLES:
                is_other = page.format != stored.format
                least = MIN_RESEMBLANCE_OF_FORMATS if is_other else self._threshold
                found = (share, stored.url, min(least, self._threshold))
                best = max(best, found, key=lambda one: (one[0] >= one[2], one))
        return best

    def common_text(self, page: PageSketch) -> Sequence[str]:
        """Return pages of other sites that contain half of ``page``, or half of which it contains.

        One of each site, the largest share first. Pages of fewer than 100 shingles have no common
        text.
        """
        if len(page.own.hashes) < MIN_COPIED_SHINGLES:
            return ()
        found: dict[str, tuple[float, str]] = {}
        own_site = registered_domain(host_of(page.url))
        for stored in page.candidates:
            site = registered_domain(host_of(stored.url))
            if site == own_site or len(stored.sketch.hashes) < MIN_COPIED_SHINGLES:
                continue
            share, number = estimate_containment(*self._without_boilerplate(page, stored))
            if number >= MIN_SHINGLES and share >= MIN_CONTAINMENT:
                found[site] = max(found.get(site, (0.0, "")), (share, stored.url))
        return [url for _, url in sorted(found.values(), reverse=True)]

    def add(self, page: PageSketch) -> None:
        """Index a new page; beyond the limit the oldest page is removed."""
        own = page.own
        if len(own.hashes) < MIN_SHINGLES:
            return
        host = host_of(page.url).encode()
        row = self._host_row(host)
        if row.quiet < _RECENT_PAGES or link_key(page.url)[0] % _SAMPLED_PAGES == 0:
            self._update_boilerplate(row, own)
            row.recent = [*row.recent[1 - _RECENT_PAGES :], self._next]
            self._tables.put("host_shingles", host, pack(row))
        stored = _IndexedPage(page.url, page.title, own.up_to, own.hashes.tobytes(), page.format)
        self._tables.put("sketches", _PAGE_KEY.pack(self._next), pack(stored), last=True)
        keys = _hash_keys(own.hashes[:_INDEXED_HASHES])
        pages, this = dict(self._tables.get_many("shingles", keys)), _PAGE.pack(self._next)
        rows = []
        for key in keys:
            earlier = pages.get(key, b"")
            # The first one stays: later ones may all be copies of it.
            first, others = earlier[: _PAGE.size], earlier[_PAGE.size :]
            latest = (others + this)[(1 - _MAX_PAGES_PER_HASH) * _PAGE.size :]
            rows.append((key, first + latest if first else this))
        self._tables.put_many("shingles", rows)
        self._next += 1
        if self._next > self._most:
            self._forget(self._next - self._most - 1)

    def _resemblance(self, page: PageSketch, stored: _IndexedPage) -> tuple[float, int]:
        """The resemblance of two pages without the boilerplate of either host."""
        own_boilerplate, host = page.boilerplate, host_of(stored.url)
        if host != host_of(page.url):
            return estimate_resemblance(*self._without_boilerplate(page, stored))
        is_of_template = page.format == stored.format
        if is_of_template and (not page.host_known or stored.title != page.title):
            return 0.0, 0
        return estimate_resemblance(page.own, stored.sketch.without(own_boilerplate))

    def _without_boilerplate(self, page: PageSketch, stored: _IndexedPage) -> tuple[Sketch, Sketch]:
        """Return two hosts' pages without the boilerplate of either."""
        theirs = self._boilerplate(host_of(stored.url))
        return page.own.without(theirs), stored.sketch.without(page.boilerplate).without(theirs)

    def _find_candidates(self, own: Sketch) -> Sequence[_IndexedPage]:
        """Look up the pages that share most of the smallest hashes, most first."""
        if len(own.hashes) < MIN_SHINGLES:
            return ()
        found = self._tables.get_many("shingles", _hash_keys(own.hashes[:_QUERIED_HASHES]))
        shared = Counter(np.frombuffer(b"".join([value for _, value in found]), np.uint32).tolist())
        numbers = [number for number, _ in shared.most_common(_MAX_COMPARED_PAGES)]
        rows = (self._tables.get("sketches", _PAGE_KEY.pack(number)) for number in numbers)
        return [_decode_page(raw) for raw in rows if raw is not None]

    def _update_boilerplate(self, row: _HostRow, own: Sketch) -> None:
        """Add the shingles that this page and the host's latest pages have in common."""
        found = [own.hashes]
        recent = self._tables.get_many("sketches", [_PAGE_KEY.pack(each) for each in row.recent])
        found += [np.frombuffer(_decode_page(raw).hashes, np.uint64) for _, raw in recent]
        hashes = np.concatenate(found)
        hashes.sort()
        # Each page has a hash at most once, so a run of equal hashes comes from as many pages.
        others = _MIN_BOILERPLATE_PAGES - 1
        common = hashes[others:][hashes[others:] == hashes[:-others]]
        known = np.frombuffer(row.boilerplate, np.uint64)
        new = unique_hashes(hashes_not_in(common, known))
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
        stored = _decode_page(raw)
        self._tables.delete("sketches", key)
        for each in _hash_keys(stored.sketch.hashes[:_INDEXED_HASHES]):
            pages = np.frombuffer(self._tables.get("shingles", each) or b"", np.uint32)
            left = pages[pages != number].tobytes()
            if left:
                self._tables.put("shingles", each, left)
            else:
                self._tables.delete("shingles", each)
        host = host_of(stored.url).encode()
        if self._host_row(host).recent[-1:] == [number]:
            self._tables.delete("host_shingles", host)

    def _boilerplate(self, host: str) -> ShingleHashes:
        return np.frombuffer(self._host_row(host.encode()).boilerplate, np.uint64)

    def _host_row(self, host: bytes) -> _HostRow:
        raw = self._tables.get("host_shingles", host)
        return _HostRow([]) if raw is None else _decode_host(raw)


def _normalise_title(title: str) -> str:
    """Lower-case a title and remove digits, punctuation and white space."""
    return _DIGITS_AND_SPACE.sub("", title.lower())[:100]


def _hash_keys(hashes: ShingleHashes) -> list[bytes]:
    raw = hashes.astype(_HASH).tobytes()
    return [raw[i : i + 8] for i in range(0, len(raw), 8)]
