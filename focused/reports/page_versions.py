"""The history of one page of a continuous crawl: its versions, its visits, and their differences.

Everything is read from the crawl's state, except the texts of versions, which are in the WARC.
:func:`export_changes` writes the changes of all pages as change histories, to compare revisit
policies.
"""

from __future__ import annotations

import difflib
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from focused.archive.archive import Archive, PageRow, page_rows, page_values
from focused.archive.crawl_tables import url_spellings
from focused.archive.page_history import (
    FirstVersion,
    PageHistory,
    VisitResult,
    VisitRow,
    page_histories,
    page_history,
    visit_rows,
)
from focused.archive.warc_files import warc_path
from focused.crawl.revisits.page_records import PageRecords
from focused.documents.convert import BoundedConverter
from focused.durations import DAY_S
from focused.errors import ConfigurationError, StateError
from focused.recorded_web.changing_web import (
    Change,
    ChangeKind,
    PageChanges,
    SiteChanges,
    page_changes,
    site_name,
    write_change_history,
)
from focused.reports.why import unknown_url_message
from focused.revisit.disk_schedule import stored_due_at
from focused.storage.state_store import StateStore
from focused.storage.tables import Tables
from focused.web.decoding import decode
from focused.web.html.parse import parse_page
from focused.web.html.text_blocks import text_blocks
from focused.web.page import Failed, Fetched, Page
from focused.web.warc_reader import read_response

FIRST = "first"
"""The result of the first version: the page's first fetch."""

_ENDS = frozenset({VisitResult.GONE, VisitResult.MOVED, VisitResult.SOFT_404})
_KINDS = {
    VisitResult.CHANGED: ChangeKind.CHANGED,
    VisitResult.GONE: ChangeKind.DELETED,
    VisitResult.SOFT_404: ChangeKind.DELETED,
    VisitResult.MOVED: ChangeKind.DELETED,
    VisitResult.REAPPEARED: ChangeKind.CREATED,
}
_FILE_SUFFIXES = (".tsv", ".tsv.gz")


@dataclass(frozen=True, slots=True)
class PageVersion:
    """One version of a page, numbered from 1; ``bytes`` is the length of its body.

    ``change`` is the share of the content that differs from the version before, None if it was not
    compared.
    """

    number: int
    at: float
    bytes: int
    relevance: float | None
    on_topic: bool
    change: float | None = None
    warc_file: str | None = None
    warc_offset: int | None = None


@dataclass(frozen=True, slots=True)
class PageEvent:
    """What a visit brought: a version, or that the page is gone, moved or there again.

    ``result`` is :data:`FIRST` or a :class:`VisitResult`; ``version`` is None without a new one.
    """

    at: float
    result: str
    status: int
    version: PageVersion | None = None


@dataclass(frozen=True, slots=True)
class PageTimeline:
    """The history of a page; times are in seconds since the epoch.

    ``events`` are in order of time, ``visits`` counts the revisits by result. ``change_rate`` is in
    changes a day, None before the first revisit. ``next_visit_at`` is when the next visit is due,
    minus infinity while the page is queued or in flight, None if it is not scheduled.
    """

    url: str
    title: str
    first_seen: float
    last_seen: float
    gone_at: float | None
    events: tuple[PageEvent, ...]
    visits: Mapping[str, int]
    change_rate: float | None
    next_visit_at: float | None

    @property
    def versions(self) -> tuple[PageVersion, ...]:
        """All versions, the first one first."""
        return tuple(event.version for event in self.events if event.version is not None)

    @property
    def next_change_at(self) -> float | None:
        """When the next change is expected; None if the rate is unknown, or the page is gone."""
        if not self.change_rate or self.gone_at is not None:
            return None
        return self.last_seen + DAY_S / self.change_rate

    def change_probability(self, now: float) -> float | None:
        """Return the probability that the page changed since it was last seen.

        For a Poisson process of the page's change rate; None if that is unknown.
        """
        if self.change_rate is None or self.gone_at is not None:
            return None
        return -math.expm1(-self.change_rate * max(0.0, now - self.last_seen) / DAY_S)


@contextmanager
def open_state(folder: Path) -> Iterator[StateStore]:
    """Open a crawl's state to read. Raises StateError when there is none."""
    if not (folder / "state" / "data.mdb").is_file():
        raise StateError(f"{folder}: has no state/, which holds the histories of pages")
    with StateStore.open_for_reading(folder / "state") as (store, _):
        yield store


def read_timeline(folder: Path, url: str) -> PageTimeline:
    """Read the history of one page of the crawl in ``folder``.

    ``url`` is normalised, and a missing scheme is added. Raises :class:`StateError` when the folder
    cannot be read, :class:`ConfigurationError` with similar URLs for a page that the crawl does not
    visit again.
    """
    with open_state(folder) as store:
        archive, tables = Archive(store), store.tables
        records = PageRecords(tables, archive)
        for spelling in url_spellings(url):
            number = records.number_of(spelling)
            row = None if number is None else archive.row(number)
            history = None if number is None else page_history(tables, number)
            if row is not None and history is not None:
                return _timeline(tables, row, history)
        known = [str(values[1]) for values in page_values(tables)]
    raise ConfigurationError(
        unknown_url_message(
            url, "this crawl does not visit it again and has no history of it", known
        )
    )


def _timeline(tables: Tables, row: PageRow, history: PageHistory) -> PageTimeline:
    visits = [visit for visit in visit_rows(tables) if visit.page == row.seq]
    return PageTimeline(
        url=row.url,
        title=row.title,
        first_seen=row.fetched_at,
        last_seen=history.seen_at,
        gone_at=history.gone_at,
        events=tuple(_events(row, history.first_version, visits)),
        visits=Counter(visit.result for visit in visits),
        change_rate=history.change_rate(row.fetched_at),
        next_visit_at=stored_due_at(tables, row.seq),
    )


def _events(
    row: PageRow, first: FirstVersion | None, visits: list[VisitRow]
) -> Iterator[PageEvent]:
    """The first version, and each visit that brought a change."""
    kept = first or row
    number, is_gone = 1, False
    version = PageVersion(
        number,
        row.fetched_at,
        kept.bytes,
        kept.relevance,
        kept.on_topic,
        None,
        kept.warc_file,
        kept.warc_offset,
    )
    yield PageEvent(row.fetched_at, FIRST, 200 if first else row.status, version)
    for visit in visits:
        if visit.is_new_version:
            number += 1
            version = PageVersion(
                number,
                visit.at,
                visit.bytes,
                visit.relevance,
                bool(visit.on_topic),
                visit.change,
                visit.warc_file,
                visit.warc_offset,
            )
            yield PageEvent(visit.at, visit.result, visit.status, version)
        elif (visit.result in _ENDS and not is_gone) or visit.result == VisitResult.REAPPEARED:
            yield PageEvent(visit.at, visit.result, visit.status)
        if visit.result in _ENDS:
            is_gone = True
        elif visit.result == VisitResult.REAPPEARED:
            is_gone = False


def diff_versions(
    folder: Path, timeline: PageTimeline, older: int | None = None, newer: int | None = None
) -> list[str]:
    """Return the unified diff of two versions by number; by default of the last two.

    Lines are the texts of the page's blocks; navigation and advertising are left out. Raises
    :class:`ConfigurationError` for a version that does not exist or has no WARC record.
    """
    versions = timeline.versions
    if len(versions) < 2:
        raise ConfigurationError(f"{timeline.url}: has one version; there is nothing to compare")
    newer = len(versions) if newer is None else newer
    older = newer - 1 if older is None else older
    for number in (older, newer):
        if not 1 <= number <= len(versions):
            raise ConfigurationError(
                f"{timeline.url}: has the versions 1 to {len(versions)}, but no version {number}"
            )
    before, after = versions[older - 1], versions[newer - 1]
    return list(
        difflib.unified_diff(
            version_text(folder, timeline.url, before),
            version_text(folder, timeline.url, after),
            f"version {older}",
            f"version {newer}",
            _iso_time(before.at),
            _iso_time(after.at),
            lineterm="",
        )
    )


def version_text(folder: Path, url: str, version: PageVersion) -> list[str]:
    """Return title and text blocks of a version, from its WARC record.

    Raises :class:`ConfigurationError` without a readable record.
    """
    if version.warc_file is None or version.warc_offset is None:
        raise ConfigurationError(
            f'{url}: version {version.number} has no WARC record; output.warc was "off", or the '
            "page asked not to be indexed"
        )
    path = warc_path(folder, version.warc_file)
    found = read_response(path, version.warc_offset)
    if found is None:
        raise ConfigurationError(
            f"{path}: the record of version {version.number} of {url} at offset "
            f"{version.warc_offset:,} cannot be read"
        )
    with BoundedConverter() as converter:
        fetched = converter.to_html(Fetched(url, found.status, found.headers, found.body))
    if isinstance(fetched, Failed):
        raise ConfigurationError(
            f"{url}: version {version.number} cannot be converted: {fetched.kind}, {fetched.detail}"
        )
    page = parse_page(fetched)
    if not isinstance(page, Page):  # a feed
        return [line.strip() for line in decode(found.body, found.headers)[0].splitlines()]
    return [*filter(None, [page.title]), *text_blocks(fetched)]


def _iso_time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")


def export_changes(folder: Path, out: Path) -> list[Path]:
    """Write the observed changes of the crawl in ``folder``; return the files.

    ``out`` is a file whose name ends with ``.tsv`` or ``.tsv.gz``, for all pages together, or a
    folder, which gets a file for each host. Each page is created at its first fetch. A change lies
    between two visits; the midpoint stands for its time. So policies that visit more often than the
    crawl did cannot be told apart by its history. Raises :class:`StateError` when the crawl cannot
    be read, OSError when a file cannot be written.
    """
    histories = observed_changes(folder)
    if out.name.endswith(_FILE_SUFFIXES):
        pages = tuple(page for history in histories for page in history.pages)
        write_change_history(out, SiteChanges(site_name(out), pages))
        return [out]
    out.mkdir(parents=True, exist_ok=True)
    files = [out / f"{history.site.replace(':', '_')}.tsv.gz" for history in histories]
    for path, history in zip(files, histories, strict=True):
        write_change_history(path, history)
    return files


def observed_changes(folder: Path) -> list[SiteChanges]:
    """Return the observed changes of all pages that the crawl visits again, by host."""
    with open_state(folder) as store:
        visited = {page for page, _ in page_histories(store.tables)}
        rows = {
            row["seq"]: (row["host"], row["url"], row["fetched_at"])
            for row in page_rows(store.tables)
            if row["seq"] in visited
        }
        changes = {
            seq: [Change(ChangeKind.CREATED, fetched_at)]
            for seq, (_, _, fetched_at) in rows.items()
        }
        for visit in visit_rows(store.tables):
            kind = _KINDS.get(VisitResult(visit.result))
            if kind is not None and visit.page in changes:
                middle = (visit.previous_at + visit.at) / 2
                changes[visit.page].append(Change(kind, middle))
    hosts: dict[str, list[PageChanges]] = {}
    for seq, (host, url, _) in rows.items():
        hosts.setdefault(host, []).append(page_changes(url, changes[seq]))
    return [SiteChanges(host, tuple(pages)) for host, pages in sorted(hosts.items())]
