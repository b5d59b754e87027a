"""Windows of change histories, and the bounds on them."""

import math

import numpy as np
import pytest

from focused.durations import DAY_S, YEAR_S
from focused.revisit.policies import find_revisit_policy
from focused_lab.change_history import Change, ChangeKind, SiteChanges, page_changes
from focused_lab.freshness.bounds import optimal, upper_bound
from focused_lab.freshness.simulator import simulate
from focused_lab.freshness.sitemaps import draw_lists
from focused_lab.freshness.windows import PageLife, Window, bursty_sites, draw_window

CREATED, CHANGED, DELETED = ChangeKind.CREATED, ChangeKind.CHANGED, ChangeKind.DELETED


def site(**pages: list[tuple[ChangeKind, float]]) -> SiteChanges:
    return SiteChanges(
        "site",
        tuple(
            page_changes(name, [Change(kind, at) for kind, at in changes])
            for name, changes in pages.items()
        ),
    )


def poisson_window(rates: list[float], days: float) -> Window:
    rng = np.random.default_rng(0)
    pages = []
    for rate in rates:
        times = np.cumsum(rng.exponential(DAY_S / rate, int(rate * days * 2) + 50))
        changes = tuple(times[times < days * DAY_S].tolist())
        pages.append(PageLife(0, 0, 0.0, math.inf, changes))
    return Window(("site",), tuple(pages), days * DAY_S, 100 * DAY_S)


def test_a_window_is_the_end_of_the_history():
    history = site(a=[(CREATED, 0.0), (CHANGED, 100.0), (CHANGED, 900.0), (CHANGED, 1000.0)])
    (page,) = draw_window([history], seed=0, duration_s=300.0, warm_up_s=0.0).pages
    assert (page.created_at, page.changes) == (0.0, (200.0,))


def test_a_page_that_is_created_again_is_another_page():
    history = site(a=[(CREATED, 10.0), (DELETED, 20.0), (CREATED, 30.0), (CHANGED, 40.0)])
    pages = draw_window([history], seed=0, duration_s=100.0, warm_up_s=0.0).pages
    lives = sorted((page.created_at, page.deleted_at, page.changes) for page in pages)
    assert lives == [(0.0, 10.0, ()), (20.0, math.inf, (30.0,))]


def test_a_seed_draws_the_same_pages_again():
    history = site(**{f"p{number}": [(CREATED, 0.0), (CHANGED, 50.0)] for number in range(50)})
    drawn = [draw_window([history], seed=seed, max_pages=10).pages for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert len(drawn[0]) == 10


def test_optimal_and_upper_bound_exceed_uniform():
    window = poisson_window([0.005] * 40 + [0.05] * 40 + [1.0] * 20, 800)
    uniform, best = (
        simulate(policy, window, 20 * DAY_S).freshness
        for policy in (find_revisit_policy("uniform"), optimal(window))
    )
    assert uniform < best < upper_bound(window, 20 * DAY_S).freshness


def test_the_upper_bound_visits_after_the_changes_that_last_longest():
    changes = (10 * DAY_S, 11 * DAY_S, 20 * DAY_S, 60 * DAY_S, 61 * DAY_S)
    page = PageLife(0, 0, 0.0, math.inf, changes)
    window = Window(("site",), (page,), 100 * DAY_S, 0.0)
    days = [100 * upper_bound(window, interval * DAY_S).freshness for interval in (1e6, 100, 1)]
    # One visit, at day 20 for 40 days; at most two, the other at day 61 for 39; as many as needed.
    assert days[0] == pytest.approx(10 + 40, abs=0.1)
    assert 10 + 40 < days[1] < 10 + 40 + 39
    assert days[2] == pytest.approx(100)


def test_visits_for_late_changes_are_paid_from_the_late_budget():
    changes = tuple(90 * DAY_S + hour * 3600 for hour in range(240))
    pages = tuple(PageLife(0, 0, 0.0, math.inf, changes) for _ in range(10))
    window = Window(("site",), pages, 100 * DAY_S, 0.0)
    bound = upper_bound(window, 10 * DAY_S).freshness
    # 100 visits in all, and 10 in the last ten days, each worth an hour.
    assert bound == pytest.approx(0.9 + 10 / (24 * 1000), abs=1e-3)


@pytest.mark.parametrize("days", [7, 30, 120])
def test_no_policy_exceeds_the_upper_bound(days):
    window = draw_window(bursty_sites(3, sites=2, pages=40), seed=0, duration_s=2 * YEAR_S)
    lists = draw_lists(window, "all", 0)
    for name in ("uniform", "hazard", "nutch"):
        result = simulate(find_revisit_policy(name), window, days * DAY_S, lists=lists)
        assert result.freshness <= upper_bound(window, days * DAY_S).freshness


def test_uniform_visits_reach_the_analytic_freshness_of_poisson_pages():
    window = poisson_window([0.05] * 100, 1500)
    expected = 0.05 * 20
    freshness = simulate(find_revisit_policy("uniform"), window, 20 * DAY_S).freshness
    assert freshness == pytest.approx((1 - math.exp(-expected)) / expected, abs=0.01)
