"""What single policies of the literature do, beyond what all guarantee."""

import math

import numpy as np
import pytest

from focused.revisit.policies import find_revisit_policy
from focused.revisit.policy import RevisitInputs, Visit
from focused.revisit.schedule import RevisitSchedule
from focused_lab.freshness.memory_schedule import MemorySchedule
from focused_lab.revisit_policies.allocated import azar, optimal_last_modified, page_value, wire
from focused_lab.revisit_policies.rate_models import PageLists
from focused_lab.revisit_policies.systems import NutchAdaptive, Tianwang, plan_periods

DAY = 86_400.0


def visit(page: int, at: float, previous_at: float, changed: bool, since: float | None = None):
    return Visit(page, at, previous_at, changed, None if since is None else at - since)


def changed_visits(name: str, rates_per_day: list[float], pages_per_site: int, days: int) -> float:
    """The share of visits that find a change on Poisson sites, a visit per page and 10 days."""
    records = MemorySchedule()
    policy = find_revisit_policy(name)(RevisitInputs(10 * DAY, records))
    schedule = RevisitSchedule(policy, records, mean_interval_s=10 * DAY)
    pages = pages_per_site * len(rates_per_day)
    for page in range(pages):
        schedule.add(page, page % len(rates_per_day), page % len(rates_per_day), 1.0, 0.0)
    rng = np.random.default_rng(3)
    last = [0.0] * pages
    found = counted = 0
    now = 0.0
    while now < days * DAY:
        now += 10 * DAY / pages
        page = schedule.take(now)
        assert page is not None
        site = page % len(rates_per_day)
        changed = bool(rng.random() < -math.expm1(-rates_per_day[site] * (now - last[page]) / DAY))
        schedule.record(Visit(page, now, last[page], changed))
        last[page] = now
        if now > days * DAY / 2:
            found += changed
            counted += 1
    return found / counted


SITES = [0.005, 0.01, 0.02, 0.05, 0.3]


@pytest.mark.parametrize("mode", ["proportional", "greedy", "adaptive"])
def test_sampling_finds_more_changes_than_uniform_visits(mode):
    uniform = changed_visits("uniform", SITES, 300, 100)
    assert changed_visits(f"sampling-{mode}", SITES, 300, 100) > 1.1 * uniform


def test_nutch_shortens_and_lengthens_by_a_fifth():
    policy = NutchAdaptive(RevisitInputs(10 * DAY, MemorySchedule()))
    policy.add(1, 0, 0, 1.0, 0.0)
    price = 10 * DAY  # stretches by one
    assert policy.due_at(1, price) == pytest.approx(10 * DAY)
    policy.record(visit(1, 10 * DAY, 0.0, changed=True))
    assert policy.due_at(1, price) - 10 * DAY == pytest.approx(8 * DAY)
    policy.record(visit(1, 18 * DAY, 10 * DAY, changed=False))
    assert policy.due_at(1, price) - 18 * DAY == pytest.approx(9.6 * DAY)


def test_nutch_synchronises_to_the_last_change():
    policy = NutchAdaptive(RevisitInputs(10 * DAY, MemorySchedule()))
    policy.add(1, 0, 0, 1.0, 0.0)
    policy.record(visit(1, 20 * DAY, 0.0, changed=True, since=12 * DAY))
    # The interval is at least the 12 days, counted from 0.3 of them before the visit.
    assert policy.due_at(1, 10 * DAY) == pytest.approx((20 - 3.6 + 12) * DAY)


def test_tianwang_comes_back_soon_after_a_change():
    policy = Tianwang(RevisitInputs(10 * DAY, MemorySchedule()))
    policy.add(1, 0, 0, 1.0, 0.0)
    for day in (10, 20, 30):
        policy.record(visit(1, day * DAY, (day - 10) * DAY, changed=False))
    calm = policy.due_at(1, 10 * DAY) - 30 * DAY
    policy.record(visit(1, 40 * DAY, 30 * DAY, changed=True))
    assert policy.due_at(1, 10 * DAY) - 40 * DAY < calm / 3


def test_tianwang_rounds_to_the_start_of_a_cycle():
    policy = Tianwang(RevisitInputs(10 * DAY, MemorySchedule()), cycles_per_interval=10)
    policy.add(1, 0, 0, 1.0, 0.4 * DAY)
    assert policy.due_at(1, 10 * DAY) == pytest.approx(10 * DAY)


def test_webfountain_fetches_what_is_obsolete_and_stays_so():
    pages = np.array([100.0, 100.0, 100.0])
    rates = np.array([0.01, 0.5, 50.0])
    fetches, obsolete = plan_periods(pages, np.array([5.0, 50.0, 100.0]), rates, 60.0, 3)
    assert (fetches.sum(axis=1) <= 60.0 + 1e-6).all()
    # Slow pages are fresh anyway, very fast ones are obsolete again at the end of the period.
    assert fetches[0][1] > 40
    assert obsolete[2] == pytest.approx(100.0)


def test_webfountain_fetches_all_with_enough_bandwidth():
    pages = np.array([10.0, 20.0])
    fetches, _ = plan_periods(pages, pages.copy(), np.array([0.1, 0.2]), 1000.0, 2)
    assert fetches == pytest.approx(np.tile(pages, (2, 1)), rel=1e-3)


def test_dates_of_changes_refine_the_last_modified_policy():
    dated, undated = (optimal_last_modified(RevisitInputs(DAY, MemorySchedule())) for _ in range(2))
    for policy, since in ((dated, 0.01 * DAY), (undated, None)):
        policy.add(1, 0, 0, 1.0, 0.0)
        for day in range(1, 5):
            policy.record(visit(1, day * DAY, (day - 1) * DAY, changed=True, since=since))
    # Changes just before each visit: the page changes far more often than it is visited.
    assert dated.change_probability(1, 4.05 * DAY) > undated.change_probability(1, 4.05 * DAY)


def test_page_value_ranks_a_growing_page_above_its_popularity():
    policy = page_value(RevisitInputs(DAY, MemorySchedule()))
    for page in (1, 2):
        policy.add(page, 0, 0, 0.1, 0.0)
        policy.record(visit(page, DAY, 0.0, changed=True))
    for page, first in ((1, 0.05), (2, 0.1)):
        policy.observe_popularity(page, first, 0.0)
        policy.observe_popularity(page, 0.1, DAY)
    assert policy.value(1, 3 * DAY) > 1.5 * policy.value(2, 3 * DAY)


def test_wire_values_a_visit_by_the_chance_of_a_stale_copy():
    policy = wire(RevisitInputs(DAY, MemorySchedule()))
    policy.add(1, 0, 0, 0.5, 0.0)
    policy.record(visit(1, DAY, 0.0, changed=True))
    for days in (1.5, 4.0):
        gain = 0.5 * policy.change_probability(1, days * DAY)
        assert policy.value(1, days * DAY) == pytest.approx(DAY * gain)


def test_azar_gives_up_pages_that_change_too_fast_for_the_price():
    policy = azar(RevisitInputs(DAY, MemorySchedule()))
    policy.add(1, 0, 0, 1.0, 0.0)
    for number in range(1, 20):
        policy.record(visit(1, number * 60.0, (number - 1) * 60.0, changed=True))
    assert policy.due_at(1, DAY) == math.inf
    assert policy.due_at(1, 10.0) < math.inf


def test_page_lists_keep_the_pages_of_each_group():
    lists = PageLists(MemorySchedule(), "test")
    for page in range(6):
        lists.add(page % 2, page)
    assert list(lists.pages(0)) == [4, 2, 0]
    for page in (2, 4, 0):
        lists.remove(0, page)
        assert page not in list(lists.pages(0))
    assert list(lists.pages(0)) == []
    assert list(lists.pages(1)) == [5, 3, 1]
    assert list(lists.pages(9)) == []
