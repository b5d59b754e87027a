"""Simulated sitemaps with faults, and what visits by their signals gain."""

from functools import cache

import numpy as np
import pytest

from focused.durations import DAY_S, YEAR_S
from focused.errors import ConfigurationError
from focused.revisit.policies import find_revisit_policy
from focused_lab.freshness.revisit_comparison import RevisitSettings, plan_runs
from focused_lab.freshness.simulator import FreshnessResult, simulate
from focused_lab.freshness.sitemaps import SIGNALS, ListFault, SiteList, draw_lists, site_list
from focused_lab.freshness.windows import Window, bursty_sites, draw_window


@cache
def window() -> Window:
    sites = bursty_sites(1, sites=4, pages=60)
    return draw_window(sites, seed=1, duration_s=2 * YEAR_S, warm_up_s=0.5 * YEAR_S)


def made(fault: ListFault) -> SiteList:
    return site_list(window(), 0, fault, np.random.default_rng(0))


def changes_of_site() -> set[tuple[int, float]]:
    return {
        (number, at)
        for number, life in enumerate(window().pages)
        if life.site == 0
        for at in (life.created_at, *life.changes)
    }


def test_a_right_list_states_every_change_soon():
    found = made(ListFault.NONE)
    assert {(each.page, each.changed_at) for each in found.statements} == changes_of_site()
    delays = [each.at - each.changed_at for each in found.statements if each.changed_at]
    assert all(0 <= delay < DAY_S for delay in delays)
    assert [each.at for each in found.statements] == sorted(each.at for each in found.statements)


@pytest.mark.parametrize(
    ("fault", "share"),
    [(ListFault.FROZEN, 0.0), (ListFault.MISSING, 0.7), (ListFault.PARTIAL, 0.5)],
)
def test_a_fault_leaves_changes_out(fault, share):
    def count(each: SiteList) -> int:
        return sum(bool(statement.changed_at) for statement in each.statements)

    assert count(made(fault)) / count(made(ListFault.NONE)) == pytest.approx(share, abs=0.25)


def test_a_list_that_is_built_anew_states_all_pages_each_time():
    found = made(ListFault.TOUCHED)
    last = max(each.at for each in found.statements)
    assert sum(each.at == last for each in found.statements) == found.pages


@cache
def run(signals: str) -> FreshnessResult:
    return simulate(
        find_revisit_policy("hazard"), window(), 60 * DAY_S, lists=draw_lists(window(), signals, 0)
    )


def test_right_lists_make_a_collection_fresher():
    stale = 1 - run("none").freshness
    assert 1 - run("all").freshness < 0.7 * stale
    assert 1 - run("half").freshness < 0.85 * stale
    assert run("all").age_s < run("none").age_s


@pytest.mark.parametrize("signals", [*map(str, ListFault), "lying", "mixed"][1:])
def test_faulty_lists_cost_at_most_two_points(signals):
    assert run(signals).freshness > run("none").freshness - 0.02


def test_readings_are_visits_of_the_budget():
    visits = run("none").visits
    assert visits * 0.6 < run("all").visits < visits


def test_half_of_the_sites_have_a_list():
    assert len(draw_lists(window(), "half", 0)) == 2
    assert len(draw_lists(window(), "all", 0)) == 4
    assert draw_lists(window(), "none", 0) == []
    assert {fault.value for fault in ListFault} - {"none"} < set(SIGNALS)


def test_an_unknown_name_is_refused():
    with pytest.raises(ConfigurationError, match="--signals: 'some'"):
        plan_runs(RevisitSettings((), bursty=True, signals="some"))
