"""A revisit policy that follows the change signals of lists."""

import math

import pytest

from focused.durations import DAY_S
from focused.revisit.disk_schedule import TableRecords
from focused.revisit.hazard import Hazard
from focused.revisit.policy import RecordStore, RevisitInputs, Visit
from focused.revisit.signalled_policy import EXPLORED, SignalledPolicy
from focused.revisit.source_trust import SourceTrust
from focused.storage.state_store import StateStore
from focused_lab.freshness.memory_schedule import MemorySchedule

START = 1_700_000_000.0
MEAN_S = 90 * DAY_S
SITEMAP, FEED, SOURCE = 900, 901, 7
TRUSTED = SourceTrust(0.0, 30.0, 0.0, 30.0, 30.0)
UNKNOWN = SourceTrust()
EVERYTHING = SourceTrust(0.0, 0.0, 30.0, 30.0, 0.0)


def policy(
    trust: SourceTrust = TRUSTED, pages: int = 10, records: RecordStore | None = None
) -> SignalledPolicy:
    """Pages that were visited at the start, and listed a day later."""
    records = records or MemorySchedule()
    made = SignalledPolicy(Hazard(RevisitInputs(MEAN_S, records)), records, MEAN_S)
    records.put("trust", SOURCE, trust.pack())
    made.add_list(SITEMAP, SOURCE, pages, START, is_page=False)
    made.add_list(FEED, SOURCE + 1, pages, START, is_page=False, is_complete=False)
    for page in range(pages):
        made.add(page, 0, 0, 1.0, START)
        assert not made.state(page, SITEMAP, START, START - 10 * DAY_S - page, START)
    return made


def read(made: SignalledPolicy, days: float, page: int = SITEMAP) -> float:
    at = START + days * DAY_S
    made.record(Visit(page, at, START, changed=False))
    return at


def follower(made: SignalledPolicy) -> int:
    """A page whose next visit follows silence."""
    at = read(made, 40)
    return next(
        page
        for page in range(10)
        if made.change_probability(page, at) < 0.9 * made.policy.change_probability(page, at)
    )


def test_an_announced_page_comes_first():
    made = policy()
    at = read(made, 20)
    before = made.value(3, at)
    assert made.state(3, SITEMAP, START, START + 19 * DAY_S, at)
    assert made.change_probability(3, at) > 0.9
    assert made.value(3, at) > 10 * before
    assert made.due_at(3, 2 * before) <= START
    assert made.due_at(4, 2 * before) > at


def test_silence_of_a_trusted_list_delays_a_visit():
    made = policy()
    page = follower(made)
    at = START + 41 * DAY_S
    price = made.policy.value(page, at)
    assert made.change_probability(page, at) < 0.2 * made.policy.change_probability(page, at)
    assert made.due_at(page, price) > made.policy.due_at(page, price) + MEAN_S
    assert made.due_at_many([page], [price])[0] > made.policy.due_at(page, price) + MEAN_S


@pytest.mark.parametrize("trust", [UNKNOWN, EVERYTHING])
def test_without_trust_values_are_those_of_the_policy(trust):
    made = policy(trust)
    at = read(made, 40)
    made.state(1, SITEMAP, START, START + DAY_S, at)
    pages = range(10) if trust is EVERYTHING else [page for page in range(10) if page != 1]
    for page in pages:
        assert made.value(page, at) == pytest.approx(made.policy.value(page, at))
        assert made.due_at(page, 1.0) == pytest.approx(made.policy.due_at(page, 1.0))


def test_silence_ends_where_the_list_was_last_read():
    made = policy()
    page = follower(made)
    soon, late = START + 41 * DAY_S, START + 400 * DAY_S
    shares = [
        made.change_probability(page, at) / made.policy.change_probability(page, at)
        for at in (soon, late)
    ]
    assert shares[0] < 0.2 < 0.8 < shares[1]


def test_some_visits_ignore_silence():
    made = policy(pages=400)
    at = read(made, 40)
    ignoring = sum(made.value(page, at) == made.policy.value(page, at) for page in range(400))
    assert EXPLORED / 2 < ignoring / 400 < 2 * EXPLORED


def test_a_change_that_a_visit_found_before_it_was_announced_is_no_news():
    made = policy()
    visited_at = START + 30 * DAY_S
    made.record(Visit(2, visited_at, START, changed=True))
    assert not made.state(2, SITEMAP, 0.0, START + 29 * DAY_S, visited_at + DAY_S)
    assert made.state(2, SITEMAP, 0.0, START + 31 * DAY_S, visited_at + 2 * DAY_S)


def test_a_later_time_is_news_though_the_clock_is_slow():
    made = policy()
    assert made.state(2, SITEMAP, 0.0, START - DAY_S, START + 5 * DAY_S)
    assert not made.state(2, SITEMAP, 0.0, START - DAY_S, START + 6 * DAY_S)


def test_an_estimate_of_the_clock_that_varies_is_no_news():
    made = policy()
    stated = START - DAY_S + 600.0
    for day, offset_s in enumerate((600.0, 599.5, 430.0, 610.0)):
        assert not made.state(20, SITEMAP, START, stated, START + day * DAY_S, offset_s)


def test_the_first_statement_is_compared_with_the_visit_by_our_clock():
    made = policy()
    stated, at = START + 600.0, START + DAY_S
    assert not made.state(20, SITEMAP, START, stated, at, clock_offset_s=900.0)
    assert made.state(21, SITEMAP, START, stated, at, clock_offset_s=300.0)


def test_a_date_tells_nothing_of_changes_later_that_day():
    made = policy()
    midnight = math.floor(START / DAY_S) * DAY_S
    for page in range(10):
        made.state(page, SITEMAP, 0.0, midnight, START + DAY_S)
        made.record(Visit(page, midnight + 0.5 * DAY_S, START, changed=True))
    at = read(made, 40)
    for page in range(10):
        assert made.value(page, at) == pytest.approx(made.policy.value(page, at))


def test_the_silence_of_a_feed_says_nothing():
    made = policy()
    made.add(77, 0, 0, 1.0, START)
    made.state(77, FEED, START, START - DAY_S, START)
    at = read(made, 40, FEED)
    assert made.value(77, at) == pytest.approx(made.policy.value(77, at))
    assert made.state(77, FEED, START, START + 39 * DAY_S, at)
    assert made.change_probability(77, at) > 0.5


def test_a_page_that_is_not_listed_any_more_is_visited_as_without_a_list():
    made = policy()
    page = follower(made)
    made.unlist(page, FEED)
    assert made.signal(page) is not None
    made.unlist(page, SITEMAP)
    assert made.value(page, START + 41 * DAY_S) == made.policy.value(page, START + 41 * DAY_S)


def test_a_list_is_read_the_more_often_the_more_it_tells():
    many, few = policy(pages=1_600), policy(pages=400)
    intervals = [made.due_at(SITEMAP, 200.0) - START for made in (many, few)]
    assert intervals[1] == pytest.approx(2 * intervals[0], rel=0.01)  # a square root
    assert many.value(SITEMAP, START + intervals[0]) == pytest.approx(200.0, rel=0.01)
    assert many.due_at(SITEMAP, 800.0) - START == pytest.approx(2 * intervals[0], rel=0.01)


def test_readings_take_a_small_share_of_the_budget_of_a_small_list():
    made = policy(pages=20)
    assert made.due_at(SITEMAP, 1e-6) - START == pytest.approx(MEAN_S / 2)
    assert made.value(SITEMAP, START + 0.49 * MEAN_S) == 0.0


def test_a_list_that_announces_everything_is_hardly_read():
    liar, honest = policy(EVERYTHING, pages=400), policy(pages=400)
    assert liar.due_at(SITEMAP, 200.0) - START > 4 * (honest.due_at(SITEMAP, 200.0) - START)


def test_an_index_announces_the_lists_that_changed():
    made = policy()
    index, child, quiet = 910, 911, 912
    made.add_list(index, SOURCE, 2, START, is_page=True)
    for page in (index, child, quiet):
        made.add_list(page, SOURCE, 0, START, is_page=True)
        made.add(page, 0, 0, 1.0, START)
    for page in (child, quiet):
        made.state(page, index, START, START - DAY_S, START)
    at = read(made, 20, index)
    made.state(child, index, START, START + 19 * DAY_S, at)
    price = 2 * made.policy.value(child, at)
    assert made.due_at(child, price) <= START < at < made.due_at(quiet, price)
    assert made.value(child, at) > price > made.value(quiet, at)
    read(made, 21, child)
    assert made.due_at(child, price) > at


def test_a_list_whose_silence_was_wrong_loses_its_effect():
    made = policy()
    page = follower(made)
    for other in range(10):
        if other != page:
            made.record(Visit(other, START + 45 * DAY_S, START, changed=True))
    at = START + 45 * DAY_S
    assert made.trust(SOURCE).losses == 1
    assert made.value(page, at) > 0.8 * made.policy.value(page, at)


def test_the_weights_are_not_learned_from_visits_after_announcements():
    made = policy(pages=200)
    assert isinstance(made.policy, Hazard)
    before = made.policy.weights
    at = read(made, 20)
    for page in range(200):
        made.state(page, SITEMAP, START, START + 19 * DAY_S, at)
        made.record(Visit(page, at, START, changed=True))
    assert made.policy.weights == before


def test_records_are_all_that_is_needed_after_a_restart(tmp_path):
    store = StateStore.open(tmp_path / "state", {})
    records = TableRecords(store.tables)
    made = policy(records=records)
    for page in range(10):
        records.register(page, 0)
    at = read(made, 20)
    made.state(3, SITEMAP, START, START + 19 * DAY_S, at)
    values = [made.value(page, at) for page in (*range(10), SITEMAP)]
    records.save()
    store.commit()
    records = TableRecords(store.tables)
    again = SignalledPolicy(Hazard(RevisitInputs(MEAN_S, records)), records, MEAN_S)
    assert [again.value(page, at) for page in (*range(10), SITEMAP)] == values
    store.abandon()
