"""Synthetic change histories: Poisson sites, and sites that change in bursts."""

from __future__ import annotations

import numpy as np

from focused.recorded_web.change_history import Change, ChangeKind, PageChanges, SiteChanges

DAY_S = 86_400.0
SITES, PAGES = 8, 200
_PAGES_PER_DIRECTORY = 25


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
        times = [_poisson_times(rng, 1 / gap, years * 365.25 * DAY_S) for gap in gaps_s]
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
    duration_s = years * 365.25 * DAY_S
    found = []
    for site in range(sites):
        activity = rng.lognormal(0.0, 1.0, pages)
        times = [_poisson_times(rng, 1 / (1100 * DAY_S), duration_s) for _ in range(pages)]
        burst_rate = 1 / (rng.uniform(30, 90) * DAY_S)
        for start in _poisson_times(rng, burst_rate, duration_s):
            length_s = rng.exponential(7 * DAY_S)
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
