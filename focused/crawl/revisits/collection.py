"""The collection of a continuous crawl: its pages, their records and weights, when each is due.

A due page becomes a queued link whose score is the relevant content that a visit is expected to
bring: the page's weight times the probability that it changed. Its host's queue orders it among
new links, whose score is their predicted relevance.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from operator import itemgetter

import msgspec
import xxhash

from focused.archive.archive import Archive, PageRow
from focused.archive.page_history import HistoryWriter, PageHistory, VisitRow
from focused.crawl.enqueue import LinkEnqueuer
from focused.crawl.revisits.change_detection import VersionSignature
from focused.crawl.revisits.page_fate import PRESENT, Absence
from focused.crawl.revisits.validators import NO_VALIDATORS, Validators
from focused.durations import DAY_S
from focused.frontier.disk_frontier import DiskFrontier
from focused.frontier.queued_link import QueuedLink, link_key
from focused.revisit.policy import Visit
from focused.revisit.schedule import RevisitSchedule
from focused.revisit.signalled_policy import SignalledPolicy
from focused.storage.tables import Tables
from focused.topic import Revisit, number_of_host
from focused.web.page import FailureKind
from focused.web.urls import directory_of, host_of

_PAGE, _TIME = struct.Struct(">Q"), struct.Struct(">d")


class PageRecord(PageHistory, array_like=True, gc=False):
    """The state of one page of the collection, mutable: its history, and what revisits need.

    ``signature`` and ``validators`` are those of the latest version. ``tries`` counts all visits,
    ``absence`` those in a row that found no page, ``failures`` those in a row that told nothing.
    ``new_relevance`` is the expected relevance of the new links that one change brings.
    ``guiding_relevance`` is that of the latest version, None where it is the row's relevance.
    """

    signature: VersionSignature | None = None
    validators: Validators = NO_VALIDATORS
    absence: Absence = PRESENT
    tries: int = 0
    failures: int = 0
    new_relevance: float = 0.0
    guiding_relevance: float | None = None


_decode_record = msgspec.msgpack.Decoder(PageRecord).decode


@dataclass(frozen=True, slots=True)
class KnownPage:
    """A page of the collection: its archive row and its record."""

    row: PageRow
    record: PageRecord


class PageRecords:
    """The records of all pages, and their visits; persistent, the caller commits."""

    def __init__(self, tables: Tables, archive: Archive) -> None:
        self._tables = tables
        self._archive = archive
        self._histories = HistoryWriter(tables)

    def __len__(self) -> int:
        return self._tables.count("page_histories")

    def number_of(self, url: str) -> int | None:
        """Return the page number of a normalised URL, or None."""
        raw = self._tables.get("page_numbers", link_key(url))
        return None if raw is None else int(_PAGE.unpack(raw)[0])

    def get(self, page: int) -> PageRecord | None:
        """Return the record of a page, or None."""
        raw = self._tables.get("page_histories", _PAGE.pack(page))
        return None if raw is None else _decode_record(raw)

    def load(self, page: int) -> KnownPage:
        """Return a page of the collection; StateError if it is not stored."""
        row, record = self._archive.row(page), self.get(page)
        if row is None or record is None:
            raise self._tables.damaged("page_histories", f"page {page} lacks a row")
        return KnownPage(row, record)

    def load_url(self, url: str) -> KnownPage:
        """Return the page of a normalised URL; StateError if it is not stored."""
        number = self.number_of(url)
        if number is None:
            raise self._tables.damaged("page_numbers", f"{url} has no page")
        return self.load(number)

    def add(self, page: KnownPage) -> None:
        """Store the record of a new page."""
        self._tables.put("page_numbers", link_key(page.row.url), _PAGE.pack(page.row.seq))
        self.put(page.row.seq, page.record)

    def put(self, page: int, record: PageRecord) -> None:
        """Replace a page's record."""
        self._histories.put(page, record)

    def append_visit(self, visit: VisitRow) -> None:
        """Store a visit after all earlier ones."""
        self._histories.append_visit(visit)


REVISIT = "revisit"
"""The purpose of the links that visit a page again."""
_RECORDS_PER_CATCH_UP = 500
_CAUGHT_UP_META = "pages_with_records"
_QUEUED_TABLE = "released_pages"
_REFRESH_S = DAY_S
"""The score of a page that waits in its host's queue is computed again after so long."""
_GONE_FACTOR = 0.05
_DUPLICATE_FACTOR = 0.05
_DUPLICATES_TABLE = "duplicate_counts"
_ALL_ORIGINALS = ""
_MAX_ADVANCED = 256
_MIN_INTERVAL_CHANGE = 0.2
"""The schedule is opened anew when the log of the mean interval has changed by so much."""
_MIN_PROMISE = 0.1
_VISITED = frozenset({"fetched", "feed", "noindex"})


def revisit_key(url: str) -> bytes:
    """Return the key of the link that visits a page again."""
    return link_key(f"revisit {url}")


class PageWeights:
    """What a change of a page is worth, in units of relevance."""

    def __init__(self, settings: Revisit) -> None:
        self._by_relevance = settings.by_relevance
        self._host_weights = settings.host_weights
        self._path_weights = [
            (re.compile(pattern), weight) for pattern, weight in settings.path_weights.items()
        ]

    def weight(self, url: str, relevance: float | None, new_relevance: float) -> float:
        """Return the page's weight: its relevance and that of the new links a change brings.

        ``relevance`` is None for a feed, which counts by its links alone.
        """
        own = relevance if self._by_relevance else 1.0
        return self._factor(url) * ((own or 0.0) + new_relevance)

    def _factor(self, url: str) -> float:
        factor = number_of_host(self._host_weights, host_of(url), 1.0)
        if self._path_weights:
            path = "/" + url.split("/", 3)[3]
            factor *= next(
                (weight for pattern, weight in self._path_weights if pattern.search(path)), 1.0
            )
        return factor


class DuplicateCounts:
    """How many pages of the collection duplicate each original; the caller commits."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self.total = self.of(_ALL_ORIGINALS)

    def of(self, original: str) -> int:
        """Return the number of duplicates of a URL."""
        return int.from_bytes(self._tables.get(_DUPLICATES_TABLE, link_key(original)) or b"")

    def move(self, before: str | None, after: str | None) -> None:
        """Count a page that duplicated ``before`` and duplicates ``after``; None for none."""
        if before == after:
            return
        if before is not None and (number := self.of(before)):
            self._put(before, number - 1)
            self.total -= 1
        if after is not None:
            self._put(after, self.of(after) + 1)
            self.total += 1
        self._put(_ALL_ORIGINALS, self.total)

    def _put(self, original: str, number: int) -> None:
        self._tables.put(_DUPLICATES_TABLE, link_key(original), number.to_bytes(8))


class RevisitQueue:
    """The due pages that wait in the frontier or are in flight; persistent, the caller commits."""

    def __init__(
        self, tables: Tables, frontier: DiskFrontier, enqueuer: LinkEnqueuer, *, competes: bool
    ) -> None:
        """``competes``: pages are ordered among new links by score; otherwise they come first."""
        self._tables = tables
        self._frontier = frontier
        self._enqueuer = enqueuer
        self._competes = competes
        queued = (
            (_PAGE.unpack(key)[0], _TIME.unpack(since)[0])
            for key, since in tables.scan(_QUEUED_TABLE)
        )
        self._queued_at: dict[int, float] = dict(sorted(queued, key=itemgetter(1)))
        """When each page was queued or moved last, the earliest first."""

    def __len__(self) -> int:
        return len(self._queued_at)

    def longest_unchanged(self, before: float) -> int | None:
        """Return the page that was queued or moved first, if that was before a time."""
        page, queued_at = next(iter(self._queued_at.items()), (None, math.inf))
        return page if queued_at <= before else None

    def push(self, row: PageRow, value: float, now: float, *, comes_first: bool) -> None:
        """Queue a page by the expected ``value`` of a visit, or move it up if it is queued."""
        self._queued_at.pop(row.seq, None)
        self._queued_at[row.seq] = now
        self._tables.put(_QUEUED_TABLE, _PAGE.pack(row.seq), _TIME.pack(now))
        hosts = self._frontier.hosts
        is_exempt = not self._competes or comes_first or hosts.is_full(hosts.get(row.host))
        link = QueuedLink(
            key=revisit_key(row.url),
            url=row.url,
            host=row.host,
            priority=value,
            score=min(value, 1.0),
            depth=row.depth,
            parent=row.parent,
            found_at=now,
            purpose=REVISIT,
            is_exempt=is_exempt,
        )
        if is_exempt:
            self._frontier.push(link, now)
        else:
            self._enqueuer.push(link, now)

    def remove(self, page: int) -> None:
        """Remove a page whose visit ended."""
        self._queued_at.pop(page, None)
        self._tables.delete(_QUEUED_TABLE, _PAGE.pack(page))


class Collection:
    """The pages of a crawl that are visited again; persistent, the caller commits."""

    def __init__(
        self,
        settings: Revisit,
        tables: Tables,
        records: PageRecords,
        make_schedule: Callable[[float], RevisitSchedule],
        archive: Archive,
        queue: RevisitQueue,
    ) -> None:
        """``make_schedule`` opens the stored schedule for a mean interval in seconds."""
        self._tables = tables
        self.records = records
        self._make_schedule = make_schedule
        self._mean_interval_s = DAY_S
        self._schedule = make_schedule(DAY_S)
        self._archive = archive
        self._queue = queue
        self._weights = PageWeights(settings)
        self._duplicates = DuplicateCounts(tables)
        self._caught_up = int(tables.get_meta(_CAUGHT_UP_META) or 0)
        self._pages_at_start = len(archive)

    @property
    def originals(self) -> int:
        """The number of pages that duplicate no other; they share the budget."""
        pages = len(self.records)
        return max(pages - self._duplicates.total, min(pages, 1))

    @property
    def released(self) -> int:
        """The number of pages that are queued in the frontier or in flight."""
        return len(self._queue)

    def add(self, page: KnownPage) -> None:
        """Add a page after its first fetch."""
        row = page.row
        self._duplicates.move(None, row.duplicate_of)
        self._set_weight(page)
        self.records.add(page)
        self._add_to_schedule(row, row.fetched_at)

    def catch_up(self) -> None:
        """Add some of the pages that the crawl fetched before it was continuous."""
        if self._caught_up >= self._pages_at_start:
            return
        until = min(self._caught_up + _RECORDS_PER_CATCH_UP, self._pages_at_start)
        for seq in range(self._caught_up, until):
            row = self._archive.row(seq)
            if row is not None and is_visited_again(row) and self.records.get(seq) is None:
                self.add(first_record(row))
        self._caught_up = until
        self._tables.put_meta(_CAUGHT_UP_META, until)

    def replace_row(self, before: PageRow, after: PageRow) -> None:
        """Note that a page has a new version, which may duplicate another page or none."""
        self._duplicates.move(before.duplicate_of, after.duplicate_of)

    def set_mean_interval(self, mean_interval_s: float) -> None:
        """Set the mean time between two visits of a page; it grows with the collection."""
        if abs(math.log(mean_interval_s / self._mean_interval_s)) > _MIN_INTERVAL_CHANGE:
            self._mean_interval_s = mean_interval_s
            self._schedule = self._make_schedule(mean_interval_s)

    def next_release_at(self) -> float | None:
        """Return from when on a page can be released; None if none is left."""
        return self._schedule.next_take_at()

    def release(self, now: float) -> bool:
        """Queue the page that is due first, if any is left."""
        page = self._schedule.take(now)
        if page is None:
            return False
        self._push(page, now)
        return True

    def refresh(self, now: float) -> None:
        """Move queued pages up whose visits are worth more by now.

        A page that is visited whatever its value comes first.
        """
        while (page := self._queue.longest_unchanged(now - _REFRESH_S)) is not None:
            self._push(page, now)

    def change_probability(self, page: int, now: float) -> float:
        """Return the probability that a page changed since its last visit."""
        return self._schedule.policy.change_probability(page, now)

    @property
    def signals(self) -> SignalledPolicy:
        """The policy, which takes change signals; the caller reschedules the pages concerned."""
        policy = self._schedule.policy
        assert isinstance(policy, SignalledPolicy)
        return policy

    def reschedule(self, page: int) -> None:
        """Compute the due time of a page again, unless it is queued already."""
        self._schedule.reschedule(page)

    def visit_site_soon(self, host: str) -> None:
        """Make the pages of a host due that are due next: earlier results are in doubt."""
        self._schedule.advance_site(_number(host), _MAX_ADVANCED)

    def record_visit(self, page: KnownPage, visit: Visit) -> None:
        """Store a page after a visit that told whether it changed, and schedule the next visit.

        A page that is gone keeps a small weight: it may come back.
        """
        self._set_weight(page)
        self._end_visit(page)
        self._schedule.record(visit)

    def restart(self, page: KnownPage, now: float) -> None:
        """Store a page whose first version to compare with came ``now``, as if it were new."""
        self._end_visit(page)
        self._schedule.remove(page.row.seq)
        self._set_weight(page)
        self._add_to_schedule(page.row, now)

    def postpone(self, page: KnownPage, until: float) -> None:
        """Store a page after a visit that told nothing; it is visited again at ``until``."""
        self._end_visit(page)
        self._schedule.put_back(page.row.seq, until)

    def _add_to_schedule(self, row: PageRow, at: float) -> None:
        self._schedule.add(row.seq, _number(row.host), _number(directory_of(row.url)), 1.0, at)

    def _set_weight(self, page: KnownPage) -> None:
        row, record = page.row, page.record
        guiding = record.guiding_relevance
        relevance = row.relevance if guiding is None else guiding
        weight = self._weights.weight(row.url, relevance, record.new_relevance)
        if record.gone_at is not None:
            weight *= _GONE_FACTOR
        if row.duplicate_of is not None:
            # Many duplicates of one page, such as an error page, get few visits together.
            number = max(self._duplicates.of(row.duplicate_of), 1)
            weight *= _DUPLICATE_FACTOR / number
        self._schedule.set_weight(row.seq, weight)

    def _end_visit(self, page: KnownPage) -> None:
        self.records.put(page.row.seq, page.record)
        self._queue.remove(page.row.seq)

    def _push(self, page: int, now: float) -> None:
        """Queue a page, or move it up if it is queued."""
        known = self.records.load(page)
        probability = self._schedule.policy.change_probability(page, now)
        value = self._schedule.weight(page) * probability
        is_overdue = now - known.record.seen_at >= self._schedule.longest_interval_s(page)
        self._queue.push(known.row, value, now, comes_first=is_overdue)


def is_visited_again(row: PageRow) -> bool:
    """Whether a row is of a page that belongs to the collection.

    A URL without a page (404, 410) belongs to it if its link promised relevance: links may be there
    before their page. A duplicate belongs to it: it may change into a page of its own.
    """
    if row.failure == FailureKind.GONE:
        return row.score >= _MIN_PROMISE
    return row.outcome in _VISITED


def first_record(row: PageRow) -> KnownPage:
    """Return the page of a row as it enters the collection, without a version to compare with."""
    is_gone = row.failure == FailureKind.GONE
    record = PageRecord(
        seen_at=row.fetched_at,
        gone_at=row.fetched_at if is_gone else None,
        versions=0 if is_gone else 1,
        new_relevance=row.score if is_gone else 0.0,
    )
    return KnownPage(row, record)


def _number(text: str) -> int:
    return xxhash.xxh32_intdigest(text.encode())
