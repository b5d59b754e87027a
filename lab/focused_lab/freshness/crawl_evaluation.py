"""Evaluate a crawl of a changing web by the true histories of its pages.

Freshness, age and caught changes are those of the simulator
(:mod:`focused_lab.freshness.simulator`), so that a crawl and simulated policies over the
same pages are comparable.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean, median

from focused.archive.archive import PAGE_COLUMNS, page_values
from focused.archive.page_history import VisitResult, VisitRow, visit_rows
from focused.errors import ConfigurationError
from focused.storage.state_store import StateStore
from focused_lab.freshness.change_history import SiteChanges, read_change_history
from focused_lab.freshness.simulator import FreshnessResult, measure_page
from focused_lab.freshness.windows import PageLife, Window, page_lives
from focused_lab.recorded_web.web_index import find_key

_DOWNLOADS = frozenset(
    {
        VisitResult.CHANGED,
        VisitResult.COSMETIC,
        VisitResult.IDENTICAL,
        VisitResult.REAPPEARED,
        VisitResult.UNKNOWN,
    }
)
_GONE = frozenset({VisitResult.GONE, VisitResult.SOFT_404, VisitResult.MISSING})
"""A page is no longer in the collection when the first visit misses it, as in the simulator."""

_OK, _REDIRECT = 200, 300


@dataclass(slots=True)
class CrawlVisits:
    """The visits of a page, in seconds since the epoch.

    A visit that was answered with 304 is in neither list: the copy stays as it was, even if the
    server lied. ``requests`` counts all visits, ``revisits`` has the times of all but the first.
    """

    downloads: list[float] = field(default_factory=list)
    found_gone: list[float] = field(default_factory=list)
    revisits: list[float] = field(default_factory=list)
    requests: int = 0


@dataclass(frozen=True, slots=True)
class Discovery:
    """How late a crawl finds the pages that are created while it runs.

    ``delays_s`` are the times from creation to the first download; a page that is not found counts
    as found at the end, or at its deletion.
    """

    created: int
    found: int
    delays_s: tuple[float, ...]

    @property
    def mean_s(self) -> float:
        """The mean delay; nan without created pages."""
        return fmean(self.delays_s) if self.delays_s else math.nan

    @property
    def median_s(self) -> float:
        """The median delay; nan without created pages."""
        return median(self.delays_s) if self.delays_s else math.nan


@dataclass(frozen=True, slots=True)
class CrawlEvaluation:
    """The measures of a crawl: ``result`` over the pages that it downloaded.

    ``requests`` counts all visits to the pages of the window, ``revisits`` those in the measured
    time.
    """

    result: FreshnessResult
    discovery: Discovery
    requests: int
    revisits: int

    @property
    def mean_interval_s(self) -> float:
        """The mean time between the visits of a page; the simulator accepts it as the pace."""
        return self.result.time_s / self.revisits if self.revisits else math.inf


def read_truth(folder: Path) -> list[SiteChanges]:
    """Read the true histories that a replay server wrote.

    Raises ConfigurationError if there are none, or one cannot be read.
    """
    paths = sorted(folder.glob("*.tsv.gz"))
    if not paths:
        raise ConfigurationError(
            f"{folder} holds no true histories: serve the web with --truth {folder}"
        )
    return [read_change_history(path) for path in paths]


def true_window(
    truth: Sequence[SiteChanges],
    start: float,
    end: float,
    *,
    warm_up_s: float = 0.0,
    only: Collection[str] | None = None,
) -> Window:
    """Return the lives of the pages from ``start`` to ``end``; names are URLs.

    ``only`` restricts the pages. The simulator accepts the same window.
    """
    directories: dict[tuple[int, str], int] = {}
    lives = [
        life
        for site, history in enumerate(truth)
        for page in history.pages
        if only is None or page.page in only
        for life in page_lives(page, site, start, end - start, directories)
    ]
    return Window(tuple(each.site for each in truth), tuple(lives), end - start, warm_up_s)


def read_crawl_visits(folder: Path) -> dict[str, CrawlVisits]:
    """Read the visits of a crawl from its state, by URL; the crawl may be running.

    Raises StateError if the crawl cannot be read.
    """
    with StateStore.open_for_reading(folder / "state") as (store, _):
        rows = (dict(zip(PAGE_COLUMNS, row, strict=False)) for row in page_values(store.tables))
        fetches = [(row["url"], row["status"], row["fetched_at"]) for row in rows]
        return collect_visits(fetches, visit_rows(store.tables))


def collect_visits(
    fetches: Iterable[tuple[str, int, float]], revisits: Iterable[VisitRow]
) -> dict[str, CrawlVisits]:
    """Collect the visits of each page: URL, status and time of its fetch, and its revisits.

    The fetch of a page may be that of its latest version; its first revisit tells the first one.
    """
    visits: dict[str, CrawlVisits] = {}
    pages: dict[int, CrawlVisits] = {}
    for revisit in revisits:
        visit = pages.get(revisit.page)
        if visit is None:
            visit = visits.setdefault(revisit.url, CrawlVisits())
            pages[revisit.page] = visit
            visit.downloads.append(revisit.previous_at)
            visit.requests += 1
        visit.requests += 1
        visit.revisits.append(revisit.at)
        if revisit.result in _DOWNLOADS:
            visit.downloads.append(revisit.at)
        elif revisit.result in _GONE:
            visit.found_gone.append(revisit.at)
    for url, status, at in fetches:
        if url not in visits:
            is_page = _OK <= status < _REDIRECT
            visits[url] = CrawlVisits([at] if is_page else [], requests=1)
    return visits


def evaluate_crawl(
    window: Window,
    start: float,
    visits: Mapping[str, CrawlVisits],
    relevant: Collection[str] | None = None,
) -> CrawlEvaluation:
    """Measure a crawl over the pages of a window that begins at ``start``.

    ``relevant`` are the URLs whose discovery is measured; by default all.
    """
    by_page = _by_true_url(visits, (life.name for life in window.pages))
    since, until = window.warm_up_s, window.duration_s
    measured, delays = [], []
    found = 0
    for life in window.pages:
        times = _visits_of_life(life, by_page.get(life.name, CrawlVisits()), start, until)
        if times:
            measured.append(measure_page(life, times, since, until))
        is_relevant = relevant is None or life.name in relevant
        if since < life.created_at < until and is_relevant:
            end = min(life.deleted_at, until)
            is_found = bool(times) and times[0] < end
            found += is_found
            delays.append((times[0] if is_found else end) - life.created_at)
    requests = sum(each.requests for each in by_page.values())
    revisits = sum(since <= at - start < until for each in by_page.values() for at in each.revisits)
    discovery = Discovery(len(delays), found, tuple(delays))
    return CrawlEvaluation(FreshnessResult(tuple(measured)), discovery, requests, revisits)


def downloaded_pages(window: Window, visits: Mapping[str, CrawlVisits]) -> frozenset[str]:
    """Return the pages of a window that a crawl downloaded at some time, by their true URLs."""
    by_page = _by_true_url(visits, (life.name for life in window.pages))
    return frozenset(url for url, each in by_page.items() if each.downloads)


def restrict_window(window: Window, urls: Collection[str]) -> Window:
    """Return the window of some of the pages."""
    return replace(window, pages=tuple(life for life in window.pages if life.name in urls))


def _by_true_url(visits: Mapping[str, CrawlVisits], urls: Iterable[str]) -> dict[str, CrawlVisits]:
    """Join the visits of URLs that the same recorded page answers for."""
    known = frozenset(urls)
    joined: dict[str, CrawlVisits] = {}
    for url, each in visits.items():
        found = find_key(url, known)
        if found is not None:
            page = joined.setdefault(found, CrawlVisits())
            page.downloads = sorted(page.downloads + each.downloads)
            page.found_gone = sorted(page.found_gone + each.found_gone)
            page.revisits = sorted(page.revisits + each.revisits)
            page.requests += each.requests
    return joined


def _visits_of_life(life: PageLife, visits: CrawlVisits, start: float, until: float) -> list[float]:
    """Return the downloads of a life, and the visit that found its end, since ``start``."""
    times = [at - start for at in visits.downloads]
    times = [at for at in times if life.created_at <= at < min(life.deleted_at, until)]
    gone = [at - start for at in visits.found_gone if life.deleted_at <= at - start < until]
    return [*times, *gone[:1]] if times else []
