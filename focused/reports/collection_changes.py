"""What happened to the pages of a continuous crawl, from its state.

:func:`read_timeline` tells the history of one page, :func:`diff_versions` compares its versions,
whose texts are in the WARC. :func:`read_changes` lists the changes of the whole collection since a
time, for JSON Lines or an Atom feed.
"""

from __future__ import annotations

import difflib
import json
import math
import re
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import starmap
from pathlib import Path
from urllib.parse import urljoin

from lxml import etree
from lxml.builder import ElementMaker

from focused.archive.archive import Archive, PageRow, page_values
from focused.archive.crawl_tables import url_spellings
from focused.archive.page_history import (
    PageHistory,
    VisitResult,
    VisitRow,
    page_history,
    visit_rows,
    visits_with_news,
)
from focused.archive.warc_files import warc_path
from focused.crawl.deep_web import FormProber
from focused.crawl.revisits.collection import PageRecords, is_visited_again
from focused.documents.convert import BoundedConverter
from focused.durations import DAY_S, iso_time
from focused.errors import ConfigurationError, StateError
from focused.reports.why import unknown_url_message
from focused.revisit.disk_schedule import stored_due_at
from focused.storage.state_store import StateStore
from focused.storage.tables import Tables
from focused.topic import DeepWeb
from focused.web.decoding import decode
from focused.web.html.parse import parse_page
from focused.web.html.text_blocks import text_blocks
from focused.web.page import Failed, Fetched, Page
from focused.web.warc_reader import read_response

FIRST = "first"
"""The result of the first version: the page's first fetch."""


@dataclass(frozen=True, slots=True)
class PageTimeline:
    """The history of a page; times are in seconds since the epoch.

    ``events`` are the first fetch, with the result :data:`FIRST`, and the visits that brought a
    version, or found that the page left or came back, in order of time. ``visits`` counts all
    revisits by result. ``change_rate`` is in changes a day, None before the first revisit.
    ``next_visit_at`` is when the next visit is due, minus infinity while the page is queued or in
    flight, None if it is not scheduled.
    """

    url: str
    title: str
    first_seen: float
    last_seen: float
    gone_at: float | None
    events: tuple[VisitRow, ...]
    visits: Mapping[str, int]
    change_rate: float | None
    next_visit_at: float | None

    @property
    def versions(self) -> tuple[VisitRow, ...]:
        """The events that brought a version, the first one first."""
        return tuple(event for event in self.events if event.is_new_version)

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
    version = history.first_version or row
    first = VisitRow(
        page=row.seq,
        url=row.url,
        at=row.fetched_at,
        previous_at=row.fetched_at,
        result=FIRST,
        relevance=version.relevance,
        on_topic=version.on_topic,
        bytes=version.bytes,
        warc_file=version.warc_file,
        warc_offset=version.warc_offset,
    )
    return PageTimeline(
        url=row.url,
        title=row.title,
        first_seen=row.fetched_at,
        last_seen=history.seen_at,
        gone_at=history.gone_at,
        events=(first, *visits_with_news(visits)),
        visits=Counter(visit.result for visit in visits),
        change_rate=history.change_rate(row.fetched_at),
        next_visit_at=stored_due_at(tables, row.seq),
    )


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
            _version_text(folder, older, before),
            _version_text(folder, newer, after),
            f"version {older}",
            f"version {newer}",
            iso_time(before.at),
            iso_time(after.at),
            lineterm="",
        )
    )


def _version_text(folder: Path, number: int, version: VisitRow) -> list[str]:
    """Return title and text blocks of a version, from its WARC record.

    Raises :class:`ConfigurationError` without a readable record.
    """
    url = version.url
    if version.warc_file is None or version.warc_offset is None:
        raise ConfigurationError(
            f'{url}: version {number} has no WARC record; output.warc was "off", or the '
            "page asked not to be indexed"
        )
    path = warc_path(folder, version.warc_file)
    found = read_response(path, version.warc_offset)
    if found is None:
        raise ConfigurationError(
            f"{path}: the record of version {number} of {url} at offset "
            f"{version.warc_offset:,} cannot be read"
        )
    with BoundedConverter() as converter:
        fetched = converter.to_html(Fetched(url, found.status, found.headers, found.body))
    if isinstance(fetched, Failed):
        raise ConfigurationError(
            f"{url}: version {number} cannot be converted: {fetched.kind}, {fetched.detail}"
        )
    page = parse_page(fetched)
    if not isinstance(page, Page):  # a feed
        return [line.strip() for line in decode(found.body, found.headers)[0].splitlines()]
    return [*filter(None, [page.title]), *text_blocks(fetched)]


_HIDDEN = frozenset({"noindex", "feed"})
_KINDS: Mapping[str, str] = {
    VisitResult.CHANGED: "changed",
    VisitResult.GONE: "gone",
    VisitResult.SOFT_404: "gone",
    VisitResult.MOVED: "moved",
    VisitResult.REAPPEARED: "reappeared",
}
"""The kind of change by result; others don't tell whether a page changed."""


@dataclass(frozen=True, slots=True)
class PageChange:
    """One change of the collection; times are in seconds since the epoch.

    ``kind`` is ``new``, ``changed``, ``gone``, ``moved`` or ``reappeared``. ``at`` is the visit
    that found it, ``previous_at`` the one before, None for a new page. ``title`` is the latest
    version's; ``relevance`` and ``on_topic`` are those of the version that came, else the latest
    version's. ``change`` is the share of the content that changed. ``target`` is where a moved page
    went, if the WARC has the response.
    """

    kind: str
    url: str
    at: float
    previous_at: float | None = None
    title: str = ""
    relevance: float | None = None
    on_topic: bool = False
    change: float | None = None
    status: int = 0
    target: str | None = None


def read_changes(
    folder: Path, since: float, *, relevant_only: bool = False
) -> Sequence[PageChange]:
    """Read the changes that the crawl in ``folder`` found since a time, in order of time.

    Training samples, duplicates, pages that ask not to be indexed, and what only leads to pages
    (feeds, sitemaps, lists of repositories, results of search forms) are left out. Raises
    :class:`StateError` when the folder cannot be read.
    """
    with open_state(folder) as store:
        prober = FormProber(DeepWeb(()), (), store.tables, lambda url, now: False)
        found = [
            change
            for change in (*_new_pages(store, since), *_changed_pages(store, folder, since))
            if (change.on_topic or not relevant_only) and not prober.is_results_page(change.url)
        ]
    return sorted(found, key=lambda change: change.at)


def _new_pages(store: StateStore, since: float) -> Iterator[PageChange]:
    for row in starmap(PageRow, page_values(store.tables)):
        # A URL that found no page is in the collection, as one may come.
        if row.fetched_at >= since and not row.failure and _is_listed(row):
            yield PageChange(
                "new",
                row.url,
                row.fetched_at,
                title=row.title,
                relevance=row.relevance,
                on_topic=row.on_topic,
                status=row.status,
            )


def _changed_pages(store: StateStore, folder: Path, since: float) -> Iterator[PageChange]:
    archive = Archive(store)
    for visit in visits_with_news(visit_rows(store.tables)):
        kind = _KINDS.get(visit.result)
        # Earlier ones cost a row, and where a page moved, a record of the WARC.
        row = archive.row(visit.page) if kind and visit.at >= since else None
        if kind and row is not None and _is_listed(row):
            version = row if visit.on_topic is None else visit
            is_moved = visit.result == VisitResult.MOVED
            yield PageChange(
                kind,
                row.url,
                visit.at,
                visit.previous_at,
                row.title,
                version.relevance,
                bool(version.on_topic),
                visit.change,
                visit.status,
                _redirect_target(folder, visit) if is_moved else None,
            )


def _redirect_target(folder: Path, visit: VisitRow) -> str | None:
    if visit.warc_file is None or visit.warc_offset is None:
        return None
    found = read_response(warc_path(folder, visit.warc_file), visit.warc_offset)
    location = None if found is None else found.headers.get("location")
    return None if not location else urljoin(visit.url, location)


def _is_listed(row: PageRow) -> bool:
    is_apart = row.outcome in _HIDDEN or row.duplicate_of is not None
    return is_visited_again(row) and not is_apart and not row.training


def to_json_line(change: PageChange) -> str:
    """Return a change as one line of JSON; times are in ISO 8601, UTC."""
    plain = asdict(change)
    for name in ("at", "previous_at"):
        plain[name] = None if plain[name] is None else iso_time(plain[name], "milliseconds")
    return json.dumps(plain, ensure_ascii=False)


_ATOM = "http://www.w3.org/2005/Atom"
_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "https://focused-crawler.invalid/changes")
_FORBIDDEN_IN_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def to_atom(changes: Sequence[PageChange], topic: str, now: float) -> bytes:
    """Return the changes as an Atom feed (RFC 4287), the latest first.

    Ids depend on the topic, and on URL, kind and time of a change, so that a feed reader shows each
    change once. A feed without changes was updated at ``now``.
    """
    atom = ElementMaker(namespace=_ATOM, nsmap={None: _ATOM})

    def entry(change: PageChange) -> etree._Element:
        links = [("alternate", change.url)]
        links += [] if change.target is None else [("related", change.target)]
        return atom.entry(
            atom.id(_urn(topic, change.url, change.kind, repr(change.at))),
            atom.title(_clean(f"{change.kind.capitalize()}: {change.title or change.url}")),
            atom.updated(iso_time(change.at, "milliseconds")),
            *(atom.link(rel=relation, href=_clean(url)) for relation, url in links),
            atom.category(term=change.kind),
            atom.summary(_clean(_summary(change))),
        )

    updated = max((change.at for change in changes), default=now)
    feed = atom.feed(
        atom.id(_urn("feed", topic)),
        atom.title(_clean(f"Changes: {topic}")),
        atom.updated(iso_time(updated, "milliseconds")),
        atom.generator("Focused"),
        atom.author(atom.name(_clean(topic))),
        *map(entry, reversed(changes)),
    )
    document: bytes = etree.tostring(
        feed, xml_declaration=True, encoding="utf-8", pretty_print=True
    )
    return document


def _summary(change: PageChange) -> str:
    parts = [change.url]
    if change.change is not None:
        parts.append(f"{change.change:.0%} of the content changed")
    if change.target is not None:
        parts.append(f"moved to {change.target}")
    if change.relevance is not None:
        parts.append(f"relevance {change.relevance:.2f}")
    return "; ".join(parts)


def _clean(text: str) -> str:
    return _FORBIDDEN_IN_XML.sub("\ufffd", text)


def _urn(*parts: str) -> str:
    return uuid.uuid5(_NAMESPACE, "\n".join(parts)).urn
