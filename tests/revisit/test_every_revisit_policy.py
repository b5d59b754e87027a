"""What every revisit policy must guarantee."""

import math

import numpy as np
import pytest

from focused.revisit.policies import find_revisit_policy, revisit_policy_names
from focused.revisit.policy import RevisitInputs, RevisitPolicy, Visit
from focused.revisit.schedule import RevisitSchedule
from focused_lab.freshness.memory_schedule import MemorySchedule

DAY = 86_400.0
PAGES, SITES = 60, 4
FAST = range(0, PAGES, 6)
each_policy = pytest.mark.parametrize("name", revisit_policy_names())


def site_of(page: int) -> int:
    return page % SITES


def directory_of(page: int) -> int:
    return page % (3 * SITES)


def made(
    name: str, records: MemorySchedule | None = None, interval_s: float = DAY
) -> RevisitPolicy:
    return find_revisit_policy(name)(RevisitInputs(interval_s, records or MemorySchedule()))


def drive(
    name: str, days: int, records: MemorySchedule | None = None, seed: int = 1
) -> tuple[RevisitSchedule, dict[int, list[float]]]:
    """Visit Poisson pages for some days, one visit per page and day; a tenth changes daily."""
    records = records or MemorySchedule()
    policy = made(name, records)
    schedule = RevisitSchedule(policy, records, mean_interval_s=DAY)
    for page in range(PAGES):
        schedule.add(page, site_of(page), directory_of(page), 1.0, 0.0)
    rng = np.random.default_rng(seed)
    times: dict[int, list[float]] = {page: [0.0] for page in range(PAGES)}
    now = 0.0
    for _ in range(days * PAGES):
        now += DAY / PAGES
        page = schedule.take(now)
        assert page is not None
        previous = times[page][-1]
        rate = (1.0 if page in FAST else 0.02) / DAY
        changed = bool(rng.random() < -math.expm1(-rate * (now - previous)))
        schedule.record(Visit(page, now, previous, changed, None))
        times[page].append(now)
    return schedule, times


@pytest.fixture(params=revisit_policy_names(), scope="module")
def driven(request: pytest.FixtureRequest) -> tuple[str, RevisitSchedule, dict]:
    schedule, times = drive(request.param, 30)
    return request.param, schedule, times


def test_values_are_numbers_that_never_fall(driven):
    _, schedule, times = driven
    for page in range(PAGES):
        last = times[page][-1]
        values = [schedule.policy.value(page, last + days * DAY) for days in (0, 0.5, 1, 3, 9, 40)]
        assert all(math.isfinite(value) and value >= 0 for value in values)
        assert values == sorted(values)


def test_a_visit_in_the_past_has_a_value(driven):
    _, schedule, times = driven
    assert schedule.policy.value(0, times[0][-1] - DAY) >= 0
    assert 0 <= schedule.policy.change_probability(0, times[0][-1] - DAY) <= 1


def test_a_higher_price_never_brings_a_visit_forward(driven):
    _, schedule, times = driven
    for page in range(PAGES):
        due = [schedule.policy.due_at(page, price) for price in (1e-6, 1.0, 1e3, 1e5, 1e7)]
        assert due == sorted(due)
        assert due[0] >= times[page][-1] - 0.5 * DAY
        assert not any(math.isnan(each) for each in due)


# A cycle's start rounds due times; the others reach the price exactly when a page is due.
_ROUNDED = ("tianwang", "sampling-proportional", "sampling-greedy", "sampling-adaptive")


def test_the_value_reaches_the_price_when_a_page_is_due(driven):
    name, schedule, _ = driven
    for page in range(PAGES):
        due = schedule.policy.due_at(page, schedule.price)
        if math.isfinite(due) and name not in _ROUNDED:
            assert schedule.policy.value(page, due) == pytest.approx(schedule.price, rel=1e-3)


def test_change_probabilities_are_probabilities(driven):
    _, schedule, times = driven
    for page in range(PAGES):
        found = [
            schedule.policy.change_probability(page, times[page][-1] + d * DAY) for d in (0, 5)
        ]
        assert 0 <= found[0] <= found[1] <= 1


def test_no_page_is_forgotten(driven):
    _, _, times = driven
    assert min(len(visits) for visits in times.values()) >= 4


@each_policy
def test_the_same_visits_give_the_same_schedule(name):
    assert drive(name, 5)[1] == drive(name, 5)[1]


@each_policy
def test_records_are_all_that_a_policy_needs_after_a_restart(name):
    records = MemorySchedule()
    schedule, times = drive(name, 10, records)
    again = made(name, records)
    for page in range(PAGES):
        at = times[page][-1] + DAY
        again.due_at(page, schedule.price)  # sampling keeps the last price in memory
        schedule.policy.due_at(page, schedule.price)
        if name not in ("uniform", "optimal-features"):  # their fits live in memory
            assert again.value(page, at) == pytest.approx(schedule.policy.value(page, at))


@each_policy
def test_records_of_a_page_are_small_and_end_with_it(name):
    sizes: dict[int, int] = {}
    groups = ("collection", "site", "directory", "bucket", "class", "model", "price", "all")

    class Counting(MemorySchedule):
        def put(self, kind: str, number: int, record: bytes) -> None:
            super().put(kind, number, record)
            if not kind.startswith(groups) and not kind.endswith("-head"):
                sizes[hash((kind, number))] = len(record)

        def delete(self, kind: str, number: int) -> None:
            super().delete(kind, number)
            sizes.pop(hash((kind, number)), None)

    records = Counting()
    schedule, _ = drive(name, 3, records)
    assert sum(sizes.values()) / PAGES <= 100  # with the schedule's own record
    for page in range(PAGES):
        schedule.remove(page)
    assert not sizes


@each_policy
def test_a_removed_page_is_unknown(name):
    policy = made(name)
    policy.add(1, 0, 0, 1.0, 0.0)
    policy.add(2, 0, 0, 1.0, 0.0)
    policy.remove(1)
    for call in (lambda: policy.due_at(1, 1.0), lambda: policy.value(1, DAY)):
        with pytest.raises(KeyError):
            call()
    assert 1 not in list(policy.take_moved())
    assert policy.due_at(2, 1.0) >= 0


@each_policy
def test_visits_within_a_moment_and_after_years_do_no_harm(name):
    policy = made(name)
    policy.add(1, 0, 0, 1.0, 0.0)
    at = 0.0
    for step, changed in ((1e-3, True), (1e-3, False), (1e9, True), (1e9, False), (0.0, False)):
        policy.record(Visit(1, at + step, at, changed, at + step if changed else None))
        at += step
        list(policy.take_moved())
        assert not math.isnan(policy.due_at(1, 1.0))
        assert math.isfinite(policy.value(1, at + DAY))


@each_policy
def test_a_weight_of_zero_asks_for_no_visit(name):
    policy = made(name)
    policy.add(1, 0, 0, 0.0, 0.0)
    assert policy.due_at(1, 1.0) == math.inf
    assert policy.value(1, DAY) == 0


_LEARNING = [
    name
    for name in revisit_policy_names()
    if name not in ("uniform", "webfountain") and not name.startswith(("sampling", "grouped-by-"))
]


@pytest.mark.parametrize("name", _LEARNING)
def test_pages_that_change_more_are_visited_more(name):
    _, times = drive(name, 60)
    fast = np.mean([len(times[page]) for page in FAST])
    slow = np.mean([len(times[page]) for page in range(PAGES) if page not in FAST])
    assert fast > 1.2 * slow


@each_policy
@pytest.mark.parametrize("years", [-30, 10, 100])
def test_a_date_outside_of_the_interval_counts_as_none(name, years):
    """The account of a wrong clock; 100 years are after 2106."""
    at, states = 1_700_000_000.0, []
    for changed_at in (at + years * 365 * DAY, None):
        records = MemorySchedule()
        policy = made(name, records)
        policy.add(1, 0, 0, 1.0, at - 5 * DAY)
        policy.record(Visit(1, at, at - 5 * DAY, changed=True, changed_at=changed_at))
        states.append((records.get("page", 1), policy.change_probability(1, at + DAY)))
    assert states[0] == states[1]
