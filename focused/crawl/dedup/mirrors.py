"""Detect mirrors, URL prefixes with the same pages, and skip their links.

:class:`MirrorDetector` learns pairs bottom-up from single duplicates (Cho, Shivakumar and
Garcia-Molina 2000, "Finding replicated web collections"): a duplicate whose URL ends like its
original's is a hit for the two prefixes; whole sites are the case of Bharat and Broder ("Mirror,
mirror on the Web", 1999). A page that differs from its counterpart is a miss. Versions of one
manual share most pages, mirrors all of them, so one miss cancels all hits of a candidate.

:class:`MirrorFilter` skips a link when it is offered if its counterpart was fetched as a page of
its own, or, under the lesser prefix, is queued or in flight. A skipped link is kept, and queued
again when its counterpart fails or the pair is dissolved. Some links are fetched anyway to check
the pair; two misses among the latest checks dissolve it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec
import xxhash

from focused.crawl.dedup.duplicates import SharedContents
from focused.crawl.listeners import SettledEvent
from focused.frontier.disk_frontier import Known
from focused.frontier.queued_link import QueuedLink, link_key
from focused.storage.rows import pack
from focused.storage.tables import Tables
from focused.web.page import FailureKind
from focused.web.url_patterns import common_suffix, prefixes_and_suffixes
from focused.web.urls import host_of

MAX_SKIPPED_LINKS = 200_000
"""Beyond this many kept links, a link is skipped only if its counterpart was fetched."""
_MAX_COUNTERPARTS = 4
_RECHECK_ONE_IN, _CONFIRMED_RECHECK_ONE_IN = 8, 64
_TABLE = "mirrors"
_CONTENT_PREFIX, _SKIPPED_PREFIX = b"content ", b"refused "

LookupLinks = Callable[[Sequence[tuple[str, bytes]]], Known]


class _SkippedLink(msgspec.Struct, array_like=True):
    """A skipped link and the lesser prefix of its pair."""

    lesser: str
    link: QueuedLink


_decode_skipped = msgspec.msgpack.Decoder(_SkippedLink).decode


class MirrorFilter:
    """Skips links of mirrors; persistent, the caller commits.

    Stores about 40 bytes per settled link without a page of its own, and each skipped link.
    """

    def __init__(
        self,
        tables: Tables,
        lookup_links: LookupLinks,
        in_flight: Callable[[str], bool],
        *,
        skip_links: bool = True,
        shared: SharedContents | None = None,
    ) -> None:
        """``in_flight`` tells whether a URL is being fetched.

        With ``skip_links`` False mirrors are detected, and their links are fetched all the same.
        ``shared`` knows the pages of other partitions.
        """
        self._shared = shared
        self._skips_links = skip_links
        self._tables = tables
        self._lookup_links = lookup_links
        self._is_in_flight = in_flight
        self._pairs = MirrorDetector(tables)
        self._skipped_count = sum(1 for _ in tables.scan(_TABLE, _SKIPPED_PREFIX))
        self._skipped_since_check: dict[str, int] = {}
        self._released: list[QueuedLink] = []

    @property
    def pairs(self) -> Mapping[str, str]:
        """The preferred prefix (a site, or a site and folders) by the lesser one."""
        return self._pairs.preferred

    def on_settled(self, event: SettledEvent) -> None:
        """Learn from a settled link whether its URL brought a page of its own."""
        settled, url = event.settled, event.settled.link.url
        if settled.outcome == "fetched":
            duplicate_of, exact = settled.duplicate_of, settled.exact_duplicate_of
            self.fetched(url, duplicate_of, exact_duplicate_of=exact)
        elif settled.outcome != "feed" and settled.failure is not FailureKind.MIRROR:
            self.failed(url)

    def refusal_when_due(self, link: QueuedLink) -> FailureKind | None:
        """Return MIRROR for a link that need not be fetched; never for a driver's own request."""
        skip = self._skips_links and not link.payload and self.refuses(link)
        return FailureKind.MIRROR if skip else None

    def fetched(
        self, url: str, duplicate_of: str | None, *, exact_duplicate_of: str | None = None
    ) -> None:
        """Learn from a fetched page and the pages that it duplicates, nearly and exactly."""
        original, content = exact_duplicate_of or duplicate_of, link_key(duplicate_of or url)
        hit = None if original is None else common_suffix(url, original)
        if original is None:
            self._tables.delete(_TABLE, _CONTENT_PREFIX + link_key(url))
        elif hit is None:
            self.failed(url)
        else:
            self._tables.put(_TABLE, _CONTENT_PREFIX + link_key(url), content)
            same_path = hit[0].count("/") == hit[1].count("/") == 2
            self._pairs.hit(
                hit[0], hit[1], STRONG_HIT_WEIGHT if exact_duplicate_of or same_path else 1
            )
        for prefix, suffix in prefixes_and_suffixes(url):
            for other in list(self._pairs.others(prefix)):
                if other + suffix != original:
                    self._compare(prefix, other, content, self._content_of(other + suffix))

    def _compare(
        self, prefix: str, other: str, content: bytes, counterpart_content: bytes | None
    ) -> None:
        """Compare a page under ``prefix`` with the content of its counterpart."""
        if counterpart_content == content:
            self._pairs.hit(prefix, other, 1)
        elif counterpart_content is not None:
            ended = self._pairs.miss(prefix, other)
            if ended is not None:
                self._release_pair(ended)

    def failed(self, url: str) -> None:
        """Note that a URL brought no page of its own, and release the links skipped for it."""
        self._tables.put(_TABLE, _CONTENT_PREFIX + link_key(url), b"")
        self._release(_SKIPPED_PREFIX + link_key(url), lambda _: True)

    def refuses(self, link: QueuedLink) -> bool:
        """Whether to skip a link; then it is kept.

        Now and then a mirror's link is not skipped, to check the pair.
        """
        if not self._pairs.preferred:
            return False
        for lesser, counterpart, may_wait in self._counterparts(link.url):
            came = self._was_fetched(counterpart)
            if not came and not (may_wait and self._will_be_fetched(counterpart)):
                continue
            if came and self._is_recheck_due(lesser):
                return False
            if not came and self._skipped_count >= MAX_SKIPPED_LINKS:
                return False
            self._refuse(link, lesser, counterpart)
            return True
        return False

    def take_released(self) -> Sequence[QueuedLink]:
        """Return the skipped links that are to be queued again, once."""
        released, self._released = self._released, []
        return released

    def _counterparts(self, url: str) -> Iterator[tuple[str, str, bool]]:
        """Yield lesser prefix, counterpart, and whether that is the preferred one's."""
        found = 0
        for prefix, suffix in prefixes_and_suffixes(url):
            preferred = self._pairs.preferred.get(prefix)
            if preferred is not None:
                yield prefix, preferred + suffix, True
                found += 1
            for lesser in self._pairs.lesser(prefix):
                yield lesser, lesser + suffix, False
                found += 1
            if found >= _MAX_COUNTERPARTS:
                return

    def _is_recheck_due(self, lesser: str) -> bool:
        """Whether to check the pair now; less often after a series of hits."""
        checks = self._pairs.checks(lesser)
        is_confirmed = len(checks) >= RECENT_CHECKS and all(checks)
        skipped = self._skipped_since_check.get(lesser, 0) + 1
        due = skipped >= (_CONFIRMED_RECHECK_ONE_IN if is_confirmed else _RECHECK_ONE_IN)
        self._skipped_since_check[lesser] = 0 if due else skipped
        return due

    def _was_fetched(self, url: str) -> bool:
        """Whether the URL brought a page of its own or a duplicate under the pair."""
        return self._content_of(url) is not None

    def _content_of(self, url: str) -> bytes | None:
        """The key of the original of the URL's page; None when it brought none."""
        key = link_key(url)
        if key not in self._lookup_links([(host_of(url), key)]).settled:
            is_elsewhere = self._shared is not None and self._shared.is_original(url)
            return key if is_elsewhere else None
        content = self._tables.get(_TABLE, _CONTENT_PREFIX + key)
        return key if content is None else content or None

    def _will_be_fetched(self, url: str) -> bool:
        """Whether the URL is in flight or queued, and will not be skipped itself."""
        key = link_key(url)
        waits = key in self._lookup_links([(host_of(url), key)]).waiting
        if not waits and not self._is_in_flight(url):
            return False
        return not any(prefix in self._pairs.preferred for prefix, _ in prefixes_and_suffixes(url))

    def _refuse(self, link: QueuedLink, lesser: str, counterpart: str) -> None:
        self.failed(link.url)
        if self._skipped_count >= MAX_SKIPPED_LINKS:
            return
        key = _SKIPPED_PREFIX + link_key(counterpart) + link_key(link.url)
        self._tables.put(_TABLE, key, pack(_SkippedLink(lesser, link)))
        self._skipped_count += 1

    def _release_pair(self, lesser: str) -> None:
        self._release(_SKIPPED_PREFIX, lambda refused: refused.lesser == lesser)
        self._skipped_since_check.pop(lesser, None)

    def _release(self, prefix: bytes, selected: Callable[[_SkippedLink], bool]) -> None:
        rows = ((key, _decode_skipped(raw)) for key, raw in self._tables.scan(_TABLE, prefix))
        released = [(key, refused.link) for key, refused in rows if selected(refused)]
        for key, link in released:
            self._tables.delete(_TABLE, key)
            self._released.append(_with_new_key(link))
        self._skipped_count -= len(released)


def _with_new_key(link: QueuedLink) -> QueuedLink:
    """The link with another key: the frontier accepts no settled key again."""
    return msgspec.structs.replace(link, key=link_key(f"{link.url} {link.key.hex()}"))


MIN_HITS_PER_PAIR = 20
"""The weighted hits in a row that make a pair."""
STRONG_HIT_WEIGHT = 4
"""The weight of an exact duplicate, and of one at the same path of another site."""
MAX_PAIRS = 10_000
_REPEATED_PAIR_FACTOR = 4
RECENT_CHECKS = 16
"""The latest checks of a pair that count; two misses among them dissolve it."""
_MAX_MISSES = 2
_MAX_CANDIDATES = 3
# Prefixes that share a row overwrite each other.
_CANDIDATE_ROWS = 1 << 16
_MAX_MIRRORS_CHECKED = 4
_PAIR_PREFIX, _CANDIDATE_PREFIX = b"found ", b"candidate "


class _CandidatePair(msgspec.Struct, array_like=True):
    other: str
    hits: int = 0
    needed: int = MIN_HITS_PER_PAIR


class _CandidateRow(msgspec.Struct, array_like=True):
    prefix: str
    candidates: list[_CandidatePair]


class _MirrorPair(msgspec.Struct, array_like=True):
    other: str
    checks: list[bool]
    needed: int


_decode_candidates = msgspec.msgpack.Decoder(_CandidateRow).decode
_decode_pair = msgspec.msgpack.Decoder(_MirrorPair).decode


class MirrorDetector:
    """Pairs of a lesser and a preferred prefix; persistent, the caller commits.

    Memory and disk are bounded: :data:`MAX_PAIRS` pairs and 65,536 rows of candidates.
    """

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._found: dict[str, _MirrorPair] = {}
        self._preferred: dict[str, str] = {}
        self._lesser: dict[str, list[str]] = {}
        for key, raw in tables.scan(_TABLE, _PAIR_PREFIX):
            self._take(key[len(_PAIR_PREFIX) :].decode(), _decode_pair(raw))

    @property
    def preferred(self) -> Mapping[str, str]:
        """The preferred prefix by the lesser one."""
        return self._preferred

    def lesser(self, preferred: str) -> Sequence[str]:
        """Return some prefixes with the same pages as the preferred one."""
        return self._lesser.get(preferred, ())[:_MAX_MIRRORS_CHECKED]

    def others(self, prefix: str) -> Iterator[str]:
        """Yield all prefixes that ``prefix`` is or may be paired with."""
        yield from self.lesser(prefix)
        if prefix in self._preferred:
            yield self._preferred[prefix]
            return
        row = self._row(prefix)
        yield from [] if row is None else [each.other for each in row.candidates]

    def checks(self, lesser: str) -> Sequence[bool]:
        """Return the latest checks of a pair, True for hits."""
        return self._found[lesser].checks

    def hit(self, prefix: str, other: str, weight: int) -> None:
        """Count a page under ``prefix`` that duplicates its counterpart under ``other``."""
        for one, second in ((prefix, other), (other, prefix)):
            if self._preferred.get(one) == second:
                self._record_check(one, True)
                return
        if prefix in self._preferred:
            return
        row, candidate = self._candidate(other, prefix)
        if candidate is None:
            row, candidate = self._candidate(prefix, other)
        if candidate is None:
            candidate = _CandidatePair(other)
            row = row if row is not None and row.prefix == prefix else _CandidateRow(prefix, [])
            row.candidates = [*row.candidates[1 - _MAX_CANDIDATES :], candidate]
        assert row is not None
        candidate.hits += weight
        if candidate.hits >= candidate.needed and len(self._found) < MAX_PAIRS:
            row.candidates.remove(candidate)
            self._add_pair(row.prefix, candidate)
        self._tables.put(_TABLE, _candidate_key(row.prefix), pack(row))

    def miss(self, prefix: str, other: str) -> str | None:
        """Count a page under ``prefix`` that differs from its counterpart under ``other``.

        Returns the lesser prefix when that dissolves a pair.
        """
        for one, second in ((prefix, other), (other, prefix)):
            if self._preferred.get(one) == second:
                return one if self._record_check(one, False) else None
            row, candidate = self._candidate(one, second)
            if row is not None and candidate is not None:
                candidate.hits = 0
                self._tables.put(_TABLE, _candidate_key(one), pack(row))
        return None

    def _add_pair(self, prefix: str, candidate: _CandidatePair) -> None:
        lesser, preferred = self._order_prefixes(prefix, candidate.other)
        if lesser == preferred:
            return
        for below in [*self._lesser.get(lesser, ()), lesser]:
            if below != preferred:
                self._keep(below, _MirrorPair(preferred, [], candidate.needed))

    def _order_prefixes(self, one: str, other: str) -> tuple[str, str]:
        """Order two prefixes: preferred is https, the shorter of two nested ones, or the first."""
        if other == one.replace("https:", "http:", 1) or other.startswith(one + "/"):
            one, other = other, one
        return one, self._preferred.get(other, other)

    def _keep(self, lesser: str, found: _MirrorPair) -> None:
        self._take(lesser, found)
        self._tables.put(_TABLE, _PAIR_PREFIX + lesser.encode(), pack(found))

    def _take(self, lesser: str, found: _MirrorPair) -> None:
        before = self._preferred.get(lesser)
        if before is not None:
            self._lesser[before].remove(lesser)
        self._found[lesser] = found
        self._preferred[lesser] = found.other
        self._lesser.setdefault(found.other, []).append(lesser)

    def _record_check(self, lesser: str, hit: bool) -> bool:
        """Record one check of a pair; True when it dissolved the pair."""
        found = self._found[lesser]
        found.checks = [*found.checks[1 - RECENT_CHECKS :], hit]
        if found.checks.count(False) < _MAX_MISSES:
            self._tables.put(_TABLE, _PAIR_PREFIX + lesser.encode(), pack(found))
            return False
        del self._found[lesser], self._preferred[lesser]
        self._lesser[found.other].remove(lesser)
        self._tables.delete(_TABLE, _PAIR_PREFIX + lesser.encode())
        again = _CandidatePair(found.other, 0, found.needed * _REPEATED_PAIR_FACTOR)
        self._tables.put(_TABLE, _candidate_key(lesser), pack(_CandidateRow(lesser, [again])))
        return True

    def _candidate(
        self, prefix: str, other: str
    ) -> tuple[_CandidateRow | None, _CandidatePair | None]:
        row = self._row(prefix)
        found = row and next((each for each in row.candidates if each.other == other), None)
        return row, found or None

    def _row(self, prefix: str) -> _CandidateRow | None:
        raw = self._tables.get(_TABLE, _candidate_key(prefix))
        row = None if raw is None else _decode_candidates(raw)
        return row if row is not None and row.prefix == prefix else None


def _candidate_key(prefix: str) -> bytes:
    return _CANDIDATE_PREFIX + (
        xxhash.xxh3_64_intdigest(prefix.encode()) % _CANDIDATE_ROWS
    ).to_bytes(2, "big")
