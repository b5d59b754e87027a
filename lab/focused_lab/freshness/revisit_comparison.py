"""Run revisit policies over change histories, and sum up freshness and age by site.

Every run draws the same pages in the same repeat, whatever its policy and interval, so policies are
compared in pairs. Uniform visits, the optimal allocation with the true rates and the upper bound
always run: they are the ends of the scales on which the others are measured.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache
from pathlib import Path

import msgspec

from focused.child_processes import drop_secrets, spawn_context
from focused.durations import DAY_S, YEAR_S
from focused.errors import ConfigurationError
from focused.revisit.policies import find_revisit_policy, revisit_policy_names
from focused_lab.freshness import bounds
from focused_lab.freshness.change_history import SiteChanges, read_change_history
from focused_lab.freshness.simulator import simulate
from focused_lab.freshness.sitemaps import SIGNALS, draw_lists
from focused_lab.freshness.windows import Window, bursty_sites, draw_window, poisson_sites

UNIFORM, OPTIMAL, UPPER_BOUND = "uniform", "optimal-true-rates", "upper-bound"
BOUNDS = (OPTIMAL, UPPER_BOUND)
ALL = "all"
POOLED, PER_SITE = "pooled", "per-site"


class RevisitSettings(msgspec.Struct, frozen=True):
    """What is simulated."""

    histories: tuple[str, ...]
    """Paths of change histories."""
    poisson: bool = False
    bursty: bool = False
    policies: tuple[str, ...] = (ALL,)
    intervals_days: tuple[float, ...] = (7.0, 30.0, 90.0, 365.0)
    """Budgets: the mean time between two visits of a page."""
    budgets: tuple[str, ...] = (POOLED,)
    repeats: int = 1
    seed: int = 0
    years: float = 3.0
    warm_up_days: float = 182.625
    max_pages: int = 400
    dated: bool = False
    """Whether servers tell when a page changed last."""
    signals: str = "none"
    """Which sites have sitemaps, and with which faults: a name of :data:`SIGNALS`."""


class RevisitRun(msgspec.Struct, frozen=True):
    """One policy, budget and repeat."""

    policy: str
    interval_days: float
    budget: str
    repeat: int


class SiteRow(msgspec.Struct, frozen=True):
    """The sums over the pages of one site in one run."""

    policy: str
    interval_days: float
    budget: str
    repeat: int
    site: str
    pages: int
    time_s: float
    fresh_s: float
    age_s2: float
    changes: int
    caught: int
    visits: int
    cpu_s: float
    """CPU seconds of the whole run, in the row of its first site."""


def plan_runs(settings: RevisitSettings) -> list[RevisitRun]:
    """Return all runs; the ends of the scale come first.

    Raises ConfigurationError for an unknown policy, or settings without a site.
    """
    if not (settings.histories or settings.poisson or settings.bursty):
        raise ConfigurationError("name at least one change history, or --poisson or --bursty")
    if settings.warm_up_days * DAY_S >= settings.years * YEAR_S:
        raise ConfigurationError("--warm-up-days: the warm-up is as long as the whole window")
    if settings.signals not in SIGNALS:
        raise ConfigurationError(f"--signals: {settings.signals!r} is none of {', '.join(SIGNALS)}")
    names = dict.fromkeys([UNIFORM, *BOUNDS])
    for name in settings.policies:
        if name == ALL:
            names |= dict.fromkeys(revisit_policy_names())
        else:
            if name not in BOUNDS:
                find_revisit_policy(name)
            names[name] = None
    return [
        RevisitRun(name, days, budget, repeat)
        for budget in settings.budgets
        for days in settings.intervals_days
        for name in names
        for repeat in range(settings.repeats)
    ]


def load_sites(settings: RevisitSettings) -> list[SiteChanges]:
    """Read and draw the change histories.

    Raises ConfigurationError for a damaged file, or when two sites have the same name.
    """
    sites = [read_change_history(Path(path)) for path in settings.histories]
    if settings.poisson:
        sites += poisson_sites(settings.seed)
    if settings.bursty:
        sites += bursty_sites(settings.seed)
    names = [site.site for site in sites]
    for name in names:
        if names.count(name) > 1:
            raise ConfigurationError(f"two change histories have the name {name!r}")
    empty = [site.site for site in sites if not site.pages]
    if empty:
        raise ConfigurationError(f"the change history {empty[0]!r} has no pages")
    return sites


def run_comparison(
    settings: RevisitSettings, runs: Sequence[RevisitRun], jobs: int = 1
) -> Iterator[tuple[RevisitRun, list[SiteRow]]]:
    """Make the runs, ``jobs`` processes at a time; yield each in order with its rows."""
    if jobs == 1:
        for run in runs:
            yield run, make_run(settings, run)
        return
    context = spawn_context()
    pool = ProcessPoolExecutor(min(jobs, len(runs)), context, _end_with_parent, (os.getpid(),))
    try:
        waiting = [pool.submit(make_run, settings, run) for run in runs]
        for run, made in zip(runs, waiting, strict=True):
            yield run, made.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


_parent = 0


def _end_with_parent(parent: int) -> None:
    global _parent  # a worker process belongs to one comparison
    _parent = parent
    drop_secrets()


def make_run(settings: RevisitSettings, run: RevisitRun) -> list[SiteRow]:
    """Simulate one run; return a row per site."""
    if _parent and os.getppid() != _parent:
        raise SystemExit  # the command was killed: nobody waits for this run
    window = _window(settings, run.repeat)
    started = time.process_time()
    interval_s = run.interval_days * DAY_S
    if run.budget == POOLED:
        windows = [window]
    else:
        windows = [window.of_site(site) for site in range(len(window.sites))]
    sums = [[0, 0.0, 0.0, 0.0, 0, 0, 0] for _ in window.sites]
    for part in windows:
        if not part.pages:
            continue
        # The ends of the scale know nothing of signals.
        signals = "none" if run.policy in (UNIFORM, *BOUNDS) else settings.signals
        if run.policy == UPPER_BOUND:
            result = bounds.upper_bound(part, interval_s)
        else:
            result = simulate(
                bounds.optimal(part) if run.policy == OPTIMAL else find_revisit_policy(run.policy),
                part,
                interval_s,
                seed=run.repeat,
                dated=settings.dated,
                lists=draw_lists(part, signals, settings.seed + run.repeat),
            )
        for page in result.pages:
            values = (1, page.time_s, page.fresh_s, page.age_s2, page.changes, page.caught)
            total = sums[page.site]
            for position, value in enumerate((*values, page.visits)):
                total[position] += value
    cpu_s = time.process_time() - started
    return [
        SiteRow(
            run.policy, run.interval_days, run.budget, run.repeat, name,
            pages=int(total[0]), time_s=total[1], fresh_s=total[2], age_s2=total[3],
            changes=int(total[4]), caught=int(total[5]), visits=int(total[6]),
            cpu_s=cpu_s if number == 0 else 0.0,
        )
        for number, (name, total) in enumerate(zip(window.sites, sums, strict=True))
    ]  # fmt: skip


@lru_cache(maxsize=1)
def _sites(settings: RevisitSettings) -> list[SiteChanges]:
    return load_sites(settings)


@lru_cache(maxsize=2)
def _window(settings: RevisitSettings, repeat: int) -> Window:
    return draw_window(
        _sites(settings),
        seed=settings.seed + repeat,
        duration_s=settings.years * YEAR_S,
        warm_up_s=settings.warm_up_days * DAY_S,
        max_pages=settings.max_pages,
    )
