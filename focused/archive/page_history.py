"""The history of each page that a continuous crawl visits again: its state, and all visits.

Both are stored in the crawl's state and committed with the transaction that settles the visit. A
page number is the ``seq`` of the page's row.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Any

import msgspec

from focused.durations import DAY_S
from focused.storage.rows import pack
from focused.storage.tables import Tables

_NUMBER = struct.Struct(">Q")
_VISITS_META = "visits"


class VisitResult(StrEnum):
    """What a revisit found; ``visits.parquet`` stores the value."""

    CHANGED = "changed"
    COSMETIC = "cosmetic"
    """Only boilerplate, dates or counters differ."""
    IDENTICAL = "identical"
    NOT_MODIFIED = "not-modified"
    MOVED = "moved"
    GONE = "gone"
    SOFT_404 = "soft-404"
    MISSING = "missing"
    """The page was not there; the next visits decide whether it is gone."""
    REDIRECTED = "redirected"
    """The page is elsewhere for the time being; it keeps its URL."""
    REAPPEARED = "reappeared"
    EXCLUDED = "excluded"
    """robots.txt forbids the page by now."""
    FAILED = "failed"
    UNKNOWN = "unknown"
    """The page came, but no earlier version is stored to compare it with."""


ENDS = frozenset({VisitResult.GONE, VisitResult.MOVED, VisitResult.SOFT_404})
"""The results of visits to pages that are no longer there."""

NEWS = ENDS | {VisitResult.CHANGED, VisitResult.REAPPEARED}
"""The results of visits that found a change."""


class FirstVersion(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What the row of a page said of its first version, before a newer one replaced it."""

    relevance: float | None
    on_topic: bool
    bytes: int
    warc_file: str | None = None
    warc_offset: int | None = None


class PageHistory(msgspec.Struct, array_like=True, gc=False):
    """The state of one page, mutable; times are in seconds since the epoch.

    ``seen_at`` is the last visit that told the page's content, ``changed_at`` the last one that
    found it changed, ``gone_at`` when it was found gone, None while it is there. ``visits`` counts
    the revisits that told whether the page had changed, ``changes`` those that found a change.
    ``first_version`` is None as long as the page's row is that of the first version.
    """

    seen_at: float
    changed_at: float | None = None
    gone_at: float | None = None
    versions: int = 1
    visits: int = 0
    changes: int = 0
    first_version: FirstVersion | None = None

    def change_rate(self, first_seen: float) -> float | None:
        """Return the estimated changes per day, or None before the first revisit.

        The bias-reduced estimator of Cho and Garcia-Molina (2003, "Estimating frequency of change",
        section 4.2), for visits at even intervals.
        """
        days = (self.seen_at - first_seen) / DAY_S
        if not self.visits or days <= 0:
            return None
        unchanged = self.visits - self.changes
        return math.log((self.visits + 0.5) / (unchanged + 0.5)) * self.visits / days


class VisitRow(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One revisit, as a row of ``visits.parquet``.

    ``predicted`` is the probability of a change, computed before the response was compared.
    ``change`` is the share of the content that changed, in [0, 1]; None if no content was compared.
    ``relevance`` and ``on_topic`` are the classifier's, None without a new version.
    """

    page: int
    url: str
    at: float
    previous_at: float
    result: str
    predicted: float = 0.0
    status: int = 0
    change: float | None = None
    relevance: float | None = None
    on_topic: bool | None = None
    new_links: int = 0
    bytes: int = 0
    warc_file: str | None = None
    warc_offset: int | None = None

    @property
    def is_new_version(self) -> bool:
        """Whether the visit brought a version that replaced the one before."""
        return self.on_topic is not None


VISIT_COLUMNS = VisitRow.__struct_fields__
"""The columns of ``visits.parquet``."""

decode_history = msgspec.msgpack.Decoder(PageHistory).decode
decode_visit = msgspec.msgpack.Decoder(VisitRow).decode


class HistoryWriter:
    """Stores histories and visits; the caller commits."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._visits = int(tables.get_meta(_VISITS_META) or 0)

    def put(self, page: int, history: PageHistory) -> None:
        """Store the history of a page."""
        self._tables.put("page_histories", _NUMBER.pack(page), pack(history))

    def append_visit(self, visit: VisitRow) -> None:
        """Store a visit after all earlier ones."""
        self._tables.put("visits", _NUMBER.pack(self._visits), pack(visit), last=True)
        self._visits += 1
        self._tables.put_meta(_VISITS_META, self._visits)


def page_history(tables: Tables, page: int) -> PageHistory | None:
    """Return the history of a page, or None if it was never visited again."""
    raw = tables.get("page_histories", _NUMBER.pack(page))
    return None if raw is None else decode_history(raw)


def page_histories(tables: Tables) -> Iterator[tuple[int, PageHistory]]:
    """Yield the page numbers and histories, in the order of the pages' first fetches."""
    for key, raw in tables.scan("page_histories"):
        yield _NUMBER.unpack(key)[0], decode_history(raw)


def history_values(history: PageHistory, first_seen: float) -> list[Any]:
    """Return the values of :data:`~focused.archive.archive.HISTORY_COLUMNS`."""
    return [
        first_seen,
        history.seen_at,
        history.changed_at,
        history.versions,
        history.change_rate(first_seen),
        history.gone_at,
    ]


def visit_rows(tables: Tables) -> Iterator[VisitRow]:
    """Yield all visits in order of time."""
    for _, raw in tables.scan("visits"):
        yield decode_visit(raw)


def visits_with_news(visits: Iterable[VisitRow]) -> Iterator[VisitRow]:
    """Yield the visits that brought a version, or found that a page left or came back.

    A page that is gone is visited again from time to time, and found gone again.
    """
    gone: set[int] = set()
    for visit in visits:
        is_end = visit.result in ENDS
        if visit.is_new_version or (visit.result in NEWS and not (is_end and visit.page in gone)):
            yield visit
        if visit.result in NEWS:
            (gone.add if is_end else gone.discard)(visit.page)
