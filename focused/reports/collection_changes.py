"""What changed in a crawl's collection since a time: as JSON Lines, or as an Atom feed."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from urllib.parse import urljoin

from lxml import etree

from focused.archive.archive import Archive, PageRow, page_values
from focused.archive.page_history import VisitResult, VisitRow, visit_rows
from focused.archive.warc_files import warc_path
from focused.crawl.deep_web import FormProber
from focused.crawl.revisits.collection import is_visited_again
from focused.reports.page_versions import open_state
from focused.storage.state_store import StateStore
from focused.topic import DeepWeb
from focused.web.warc_reader import read_response

_ATOM = "http://www.w3.org/2005/Atom"
_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "https://focused-crawler.invalid/changes")
_FORBIDDEN_IN_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_HIDDEN = frozenset({"noindex", "feed"})


class CollectionEvent(StrEnum):
    """What happened to a page of the collection."""

    NEW = "new"
    CHANGED = "changed"
    GONE = "gone"
    MOVED = "moved"
    REAPPEARED = "reappeared"


_KINDS = {
    VisitResult.CHANGED: CollectionEvent.CHANGED,
    VisitResult.GONE: CollectionEvent.GONE,
    VisitResult.SOFT_404: CollectionEvent.GONE,
    VisitResult.MOVED: CollectionEvent.MOVED,
    VisitResult.REAPPEARED: CollectionEvent.REAPPEARED,
}
_ENDS = frozenset({CollectionEvent.GONE, CollectionEvent.MOVED})


@dataclass(frozen=True, slots=True)
class PageChange:
    """One change of the collection; times are in seconds since the epoch.

    ``at`` is the visit that found it, ``previous_at`` the one before, None for a new page.
    ``title`` is the latest version's; ``relevance`` and ``on_topic`` are those of the version that
    came, else the latest version's. ``change`` is the share of the content that changed. ``target``
    is where a moved page went, if the WARC has the response.
    """

    kind: CollectionEvent
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
            if not prober.is_results_page(change.url)
        ]
    kept = (change for change in found if change.on_topic or not relevant_only)
    return sorted(kept, key=lambda change: change.at)


def _new_pages(store: StateStore, since: float) -> Iterator[PageChange]:
    for values in page_values(store.tables):
        row = PageRow(*values)
        if row.fetched_at >= since and _is_listed(row):
            yield PageChange(
                CollectionEvent.NEW,
                row.url,
                row.fetched_at,
                None,
                row.title,
                row.relevance,
                row.on_topic,
                None,
                row.status,
            )


def _changed_pages(store: StateStore, folder: Path, since: float) -> Iterator[PageChange]:
    archive = Archive(store)
    gone: set[int] = set()
    for visit in visit_rows(store.tables):
        kind = _KINDS.get(VisitResult(visit.result))
        if kind is None:
            continue
        # A page that is gone is visited again from time to time, and found gone again.
        is_news = kind not in _ENDS or visit.page not in gone
        (gone.add if kind in _ENDS else gone.discard)(visit.page)
        row = archive.row(visit.page) if is_news and visit.at >= since else None
        if row is not None and _is_listed(row):
            yield _changed_page(kind, visit, row, folder)


def _changed_page(kind: CollectionEvent, visit: VisitRow, row: PageRow, folder: Path) -> PageChange:
    change = PageChange(
        kind,
        row.url,
        visit.at,
        visit.previous_at,
        row.title,
        row.relevance if visit.on_topic is None else visit.relevance,
        row.on_topic if visit.on_topic is None else visit.on_topic,
        visit.change,
        visit.status,
    )
    if kind is CollectionEvent.MOVED:
        return replace(change, target=_redirect_target(folder, visit))
    return change


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
        plain[name] = None if plain[name] is None else _iso_time(plain[name])
    return json.dumps(plain, ensure_ascii=False)


def to_atom(changes: Sequence[PageChange], topic: str, now: float) -> bytes:
    """Return the changes as an Atom feed (RFC 4287), the latest first.

    Ids depend on the topic, and on URL, kind and time of a change, so that a feed reader shows each
    change once. A feed without changes was updated at ``now``.
    """
    feed = etree.Element(f"{{{_ATOM}}}feed", nsmap={None: _ATOM})
    _add(feed, "id", _urn("feed", topic))
    _add(feed, "title", f"Changes: {topic}")
    _add(feed, "updated", _iso_time(max((change.at for change in changes), default=now)))
    _add(feed, "generator", "Focused")
    _add(_add(feed, "author"), "name", topic)
    for change in reversed(changes):
        entry = _add(feed, "entry")
        _add(entry, "id", _urn(topic, change.url, change.kind, repr(change.at)))
        _add(entry, "title", f"{change.kind.capitalize()}: {change.title or change.url}")
        _add(entry, "updated", _iso_time(change.at))
        _add(entry, "link", rel="alternate", href=change.url)
        if change.target is not None:
            _add(entry, "link", rel="related", href=change.target)
        _add(entry, "category", term=str(change.kind))
        _add(entry, "summary", _summary(change))
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


def _add(
    parent: etree._Element, name: str, text: str | None = None, **attributes: str
) -> etree._Element:
    clean: Mapping[str, str] = {key: _clean(value) for key, value in attributes.items()}
    element = etree.SubElement(parent, f"{{{_ATOM}}}{name}", clean)
    if text is not None:
        element.text = _clean(text)
    return element


def _clean(text: str) -> str:
    return _FORBIDDEN_IN_XML.sub("\ufffd", text)


def _urn(*parts: str) -> str:
    return uuid.uuid5(_NAMESPACE, "\n".join(parts)).urn


def _iso_time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
