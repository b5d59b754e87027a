"""Windows of change histories: the pages of several sites over a few years, on one clock.

A simulation needs sites whose histories cover different years to run side by side. A window is a
span of each site's history; all spans start at time 0. :func:`poisson_sites` and
:func:`bursty_sites` make synthetic histories.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from focused.durations import DAY_S, WEEK_S, YEAR_S
from focused_lab.freshness.change_history import (
    Change,
    ChangeKind,
    PageChanges,
    SiteChanges,
    first_at,
    last_at,
)

SITES, PAGES = 8, 200
_PAGES_PER_DIRECTORY = 25


@dataclass(frozen=True, slots=True)
class PageLife:
    """A page from its creation to its deletion; times are seconds since the window's start.

    A page that is created again after its deletion is another page.
    """

    site: int
    directory: int
    created_at: float
    """0 for a page that is older than the window."""
    deleted_at: float
    """Infinity for a page that outlives the window."""
    changes: tuple[float, ...]
    """Times of its changes between creation and deletion, in order."""
    name: str = ""


@dataclass(frozen=True, slots=True)
class Window:
    """The pages of several sites during ``duration_s``; a page's number is its position."""

    sites: tuple[str, ...]
    pages: tuple[PageLife, ...]
    duration_s: float
    warm_up_s: float
    """Time at the start that is simulated and not measured."""

    def of_site(self, site: int) -> Window:
        """Return the window of one site alone."""
        pages = tuple(page for page in self.pages if page.site == site)
        return Window(self.sites, pages, self.duration_s, self.warm_up_s)


def draw_window(
    histories: Sequence[SiteChanges],
    *,
    seed: int,
    duration_s: float = 3 * YEAR_S,
    warm_up_s: float = 0.5 * YEAR_S,
    max_pages: int = 400,
    position: float = 1.0,
) -> Window:
    """Take a window of each history, and draw at most ``max_pages`` pages of each site.

    ``position`` places the window in each history: 0 at the start, 1 at the end. A history that is
    shorter than the window is used from its start.
    """
    rng = np.random.default_rng(seed)
    directories: dict[tuple[int, str], int] = {}
    lives: list[PageLife] = []
    for site, history in enumerate(histories):
        latest = max(first_at(history), last_at(history) - duration_s)
        start = first_at(history) + position * (latest - first_at(history))
        found = [
            life
            for page in history.pages
            for life in page_lives(page, site, start, duration_s, directories)
        ]
        chosen = rng.permutation(len(found))[:max_pages]
        lives += [found[position] for position in chosen]
    # Page numbers break ties between due times, so they must not follow the sites.
    order = rng.permutation(len(lives))
    pages = tuple(lives[position] for position in order)
    return Window(tuple(each.site for each in histories), pages, duration_s, warm_up_s)


def page_lives(
    page: PageChanges,
    site: int,
    start: float,
    duration_s: float,
    directories: dict[tuple[int, str], int],
) -> Iterator[PageLife]:
    """Yield the page's lives that overlap the window; ``directories`` numbers its directories."""
    folder = page.page.rpartition("/")[0]
    directory = directories.setdefault((site, folder), len(directories))
    for created_at, deleted_at, changes in _spans(page.changes):
        if created_at >= start + duration_s or deleted_at <= start:
            continue
        is_deleted = deleted_at < start + duration_s
        yield PageLife(
            site=site,
            directory=directory,
            created_at=max(created_at - start, 0.0),
            deleted_at=deleted_at - start if is_deleted else math.inf,
            changes=tuple(at - start for at in changes if start < at < start + duration_s),
            name=page.page,
        )


def _spans(changes: Sequence[Change]) -> Iterator[tuple[float, float, list[float]]]:
    """Yield creation, deletion and the times of changes of each life."""
    created_at, times = -math.inf, list[float]()
    exists = bool(changes) and changes[0].kind is not ChangeKind.CREATED
    for change in changes:
        if change.kind is ChangeKind.CREATED:
            created_at, times, exists = change.at, [], True
        elif change.kind is ChangeKind.CHANGED:
            times.append(change.at)
        else:
            yield created_at, change.at, times
            exists = False
    if exists:
        yield created_at, math.inf, times


def poisson_sites(
    seed: int, *, sites: int = SITES, pages: int = PAGES, years: float = 4.0
) -> list[SiteChanges]:
    """Sites whose pages change by independent Poisson processes.

    A page's mean time between changes is log-normal: its median is four months, and one page in six
    changes more often than every four weeks.
    """
    rng = np.random.default_rng(seed)
    found = []
    for site in range(sites):
        gaps_s = rng.lognormal(np.log(120 * DAY_S), 1.5, pages)
        times = [_poisson_times(rng, 1 / gap, years * YEAR_S) for gap in gaps_s]
        found.append(_site(f"poisson-{site + 1}", times))
    return found


def bursty_sites(
    seed: int, *, sites: int = SITES, pages: int = PAGES, years: float = 4.0
) -> list[SiteChanges]:
    """Sites that change in bursts of a few days, mostly within one directory.

    A burst comes every 30 to 90 days per site and lasts a week in the mean. In a burst pages of its
    directory change several times, those of others rarely. Between bursts a page changes once in
    three years.
    """
    rng = np.random.default_rng(seed)
    duration_s = years * YEAR_S
    found = []
    for site in range(sites):
        activity = rng.lognormal(0.0, 1.0, pages)
        times = [_poisson_times(rng, 1 / (1100 * DAY_S), duration_s) for _ in range(pages)]
        burst_rate = 1 / (rng.uniform(30, 90) * DAY_S)
        for start in _poisson_times(rng, burst_rate, duration_s):
            length_s = rng.exponential(WEEK_S)
            directory = rng.integers(-(-pages // _PAGES_PER_DIRECTORY))
            for page in range(pages):
                share = 1.0 if page // _PAGES_PER_DIRECTORY == directory else 0.05
                count = rng.poisson(min(share * activity[page], 10.0))
                times[page] += (start + length_s * rng.random(count)).tolist()
        found.append(_site(f"bursty-{site + 1}", times))
    return found


def _poisson_times(rng: np.random.Generator, rate: float, duration_s: float) -> list[float]:
    times: list[float] = (rng.random(rng.poisson(rate * duration_s)) * duration_s).tolist()
    return times


def _site(name: str, times: list[list[float]]) -> SiteChanges:
    return SiteChanges(
        name,
        tuple(
            PageChanges(
                f"directory-{number // _PAGES_PER_DIRECTORY}/page-{number}.html",
                (
                    Change(ChangeKind.CREATED, 0.0, 1),
                    *(Change(ChangeKind.CHANGED, at, 1, 1) for at in sorted(changed)),
                ),
            )
            for number, changed in enumerate(times)
        ),
    )
