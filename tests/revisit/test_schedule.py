"""The revisit schedule: due times, budget, price, siblings; in memory and on disk."""

import math
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from focused.durations import DAY_S
from focused.revisit.disk_schedule import TableRecords
from focused.revisit.hazard import Hazard
from focused.revisit.policies import find_revisit_policy
from focused.revisit.policy import RevisitInputs, Visit
from focused.revisit.schedule import RevisitSchedule, ScheduleStore
from focused.storage.state_store import StateStore
from focused_lab.freshness.memory_schedule import MemorySchedule

MEAN_S = 30 * DAY_S
START = 1_700_000_000.0


class Schedules:
    """Makes schedules, in memory or on disk."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self.store: StateStore | None = None
        self._records: ScheduleStore = MemorySchedule()
        self.reopen()

    def reopen(self) -> None:
        """Start again from what was committed; a schedule in memory goes on."""
        if self._folder is not None:
            if self.store is not None:
                self.store.abandon()
            self.store = StateStore.open(self._folder, {})
            self._records = TableRecords(self.store.tables)

    def commit(self) -> None:
        if self.store is not None:
            assert isinstance(self._records, TableRecords)
            self._records.save()
            self.store.commit()

    def next_due_at(self) -> float | None:
        first = self._records.first()
        return None if first is None else first[0]

    def make(self, policy: str = "uniform", **options: float) -> RevisitSchedule:
        made = find_revisit_policy(policy)(RevisitInputs(MEAN_S, self._records))
        return RevisitSchedule(made, self._records, mean_interval_s=MEAN_S, **options)


@pytest.fixture(params=["memory", "disk"])
def schedules(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Schedules]:
    made = Schedules(tmp_path / "state" if request.param == "disk" else None)
    yield made
    if made.store is not None:
        made.store.abandon()


def visit(page: int, at: float, previous_at: float = START, **outcome: bool) -> Visit:
    return Visit(page, at, previous_at, **{"changed": False, **outcome})


def add_pages(schedule: RevisitSchedule, pages: int) -> None:
    for page in range(pages):
        schedule.add(page, 0, 0, 1.0, START + page)


def test_the_page_that_is_due_first_is_taken_first(schedules):
    schedule = schedules.make()
    add_pages(schedule, 3)
    now = START + MEAN_S
    assert [schedule.take(now), schedule.take(now), schedule.take(now)] == [0, 1, 2]


def test_a_taken_page_is_not_taken_again_until_its_visit_is_recorded(schedules):
    schedule = schedules.make()
    add_pages(schedule, 1)
    now = START + MEAN_S
    assert schedule.take(now) == 0
    assert schedule.take(now) is None
    schedule.record(visit(0, now))
    assert schedule.take(now + MEAN_S) == 0


def test_a_page_that_is_removed_is_forgotten(schedules):
    schedule = schedules.make()
    add_pages(schedule, 3)
    assert schedule.take(START + MEAN_S) == 0
    schedule.remove(0)
    schedule.remove(1)
    assert len(schedule) == 1
    assert [schedule.take(START + MEAN_S), schedule.take(START + MEAN_S)] == [2, None]
    with pytest.raises(KeyError):
        schedule.reschedule(0)


def test_no_page_is_due_before_the_minimal_interval(schedules):
    schedule = schedules.make(min_interval_s=5 * DAY_S)
    add_pages(schedule, 1)
    schedule.add(1, 0, 0, 100.0, START)
    assert schedules.next_due_at() == pytest.approx(START + 5 * DAY_S)


def test_no_page_is_due_after_the_maximal_interval(schedules):
    schedule = schedules.make("hazard", max_interval_s=2 * DAY_S)
    schedule.add(0, 0, 0, 0.0, START)
    assert schedules.next_due_at() == pytest.approx(START + 2 * DAY_S)


def test_hazard_forces_a_visit_after_three_mean_intervals(schedules):
    schedule = schedules.make("hazard")
    schedule.add(0, 0, 0, 0.0, START)
    assert schedules.next_due_at() == pytest.approx(START + 3 * MEAN_S)


def test_a_page_that_was_put_back_is_due_no_earlier(schedules):
    schedule = schedules.make("hazard")
    add_pages(schedule, 2)
    now = START + 10 * DAY_S
    page = schedule.take(now)
    assert page is not None
    schedule.put_back(page, now + 50 * DAY_S)
    schedule.reschedule(page)
    schedule.remove(1 - page)
    assert schedules.next_due_at() == pytest.approx(now + 50 * DAY_S, abs=DAY_S / 10)


def test_the_price_settles_so_that_visits_meet_the_budget(schedules):
    schedule = schedules.make()
    add_pages(schedule, 40)
    now, last = START, {page: START + page for page in range(40)}
    while now < START + 10 * MEAN_S:
        now += MEAN_S / 40
        page = schedule.take(now)
        assert page is not None
        schedule.record(visit(page, now, last[page]))
        last[page] = now
    assert schedule.price == pytest.approx(MEAN_S, rel=0.05)


def test_a_change_raises_the_change_probability_of_its_site(schedules):
    """Once the policy has learned that the pages of a site change together."""
    schedule = schedules.make("hazard")
    policy = schedule.policy
    assert isinstance(policy, Hazard)
    add_pages(schedule, 20)
    now, last = START, {page: START + page for page in range(20)}

    def take_and_record(changed: bool | None = None) -> int:
        page = schedule.take(now)
        assert page is not None
        # All pages change at one time, in the middle of the first of every eight rounds.
        bursts = [(8 * number + 0.5) * MEAN_S + START for number in range(3)]
        has_burst = any(last[page] < burst <= now for burst in bursts)
        changed = has_burst if changed is None else changed
        schedule.record(visit(page, now, last[page], changed=changed))
        last[page] = now
        return page

    for _ in range(400):
        now += MEAN_S / 20
        take_and_record()
    probabilities = [policy.change_probability(page, now) for page in range(20)]
    take_and_record(changed=True)
    sibling = min(last, key=lambda page: last[page])  # visited before the change, not after it
    assert policy.change_probability(sibling, now) > probabilities[sibling]


def test_a_committed_schedule_survives_a_crash(tmp_path):
    schedules = Schedules(tmp_path / "state")
    schedule = schedules.make("hazard")
    add_pages(schedule, 80)
    now = START + DAY_S
    for _ in range(80):
        now += DAY_S
        page = schedule.take(now)
        assert page is not None
        schedule.record(visit(page, now, changed=page % 2 == 0))
    schedules.commit()
    due, price = schedules.next_due_at(), schedule.price
    assert isinstance(schedule.policy, Hazard)
    weights = schedule.policy.weights
    assert schedule.take(now) is not None  # not committed
    schedules.reopen()
    schedule = schedules.make("hazard")
    assert isinstance(schedule.policy, Hazard)
    assert (len(schedule), schedules.next_due_at(), schedule.price) == (80, due, price)
    assert schedule.policy.weights == weights
    assert schedules.store is not None
    schedules.store.abandon()


def test_pages_of_a_site_are_found_in_order_in_whatever_order_they_came(tmp_path):
    pages = random.Random(0).sample(range(1_000), 300)
    with state(tmp_path) as records:
        for page in pages:
            records.register(page, page % 2)
        records.save()
        for page in pages[:100]:
            records.unregister(page)
        left = sorted(page for page in pages[100:] if page % 2)
        assert records.pages_of_site(1, -1, 1_000) == left
        assert records.pages_of_site(1, left[20], 30) == left[21:51]
        records.save()
        assert records.pages_of_site(1, left[20], 30) == left[21:51]


def test_a_record_that_was_not_put_or_was_deleted_is_none(tmp_path):
    with state(tmp_path) as records:
        for page in (1, 2):
            records.register(page, 7)
        records.put("page", 1, b"one")
        assert [records.get("page", page) for page in (1, 2, 3)] == [b"one", None, None]
        records.delete("page", 1)
        records.delete("page", 3)
        assert records.get("page", 1) is None


def test_a_due_time_is_that_of_the_queue_and_survives_a_commit(tmp_path):
    with state(tmp_path) as records:
        records.register(5, 1)
        assert records.due_at(5) is None
        records.add(5, math.inf)
        assert (records.due_at(5), records.first()) == (math.inf, (math.inf, 5))
        records.remove(5)
        assert (records.due_at(5), records.first()) == (None, None)
        records.add(5, 12.0)
        records.save()
        assert (records.due_at(5), records.first()) == (12.0, (12.0, 5))


@contextmanager
def state(folder: Path) -> Iterator[TableRecords]:
    store = StateStore.open(folder / "state", {})
    records = TableRecords(store.tables)
    yield records
    store.abandon()


Step = tuple[str, int, bool]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["add", "weigh", "take", "record", "remove", "crash"]),
        st.integers(0, 5),
        st.booleans(),
    ),
    max_size=40,
)


@settings(max_examples=30, deadline=None)
@given(steps=STEPS)
def test_memory_and_disk_take_the_same_pages(steps, tmp_path_factory):
    disk = Schedules(tmp_path_factory.mktemp("state"))
    try:
        assert _run(Schedules(None), steps) == _run(disk, steps)
    finally:
        assert disk.store is not None
        disk.store.abandon()


def _run(schedules: Schedules, steps: Sequence[Step]) -> list[int | None]:
    """Run steps at whole days, and return the pages that were taken."""
    schedule = schedules.make("hazard")
    now, pages, in_flight = START, dict[int, float](), set[int]()
    taken: list[int | None] = []
    for step, page, flag in steps:
        now += DAY_S
        if step == "add" and page not in pages:
            schedule.add(page, page % 2, page % 3, 1.0, now)
            pages[page] = now
        elif step == "weigh" and page in pages:
            schedule.set_weight(page, 0.25 if flag else 0.0)
        elif step == "take":
            found = schedule.take(now)
            taken.append(found)
            if found is not None:
                in_flight.add(found)
        elif step == "record" and page in in_flight:
            in_flight.discard(page)
            schedule.record(Visit(page, now, pages[page], flag))
            pages[page] = now
        elif step == "remove" and page in pages:
            schedule.remove(page)
            in_flight.discard(page)
            del pages[page]
        elif step == "crash":
            schedules.commit()
            schedules.reopen()
            schedule = schedules.make("hazard")
    assert len(schedule) == len(pages)
    return taken
