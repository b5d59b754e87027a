"""A group of pages counts its visits and changes in bins of time."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from focused.durations import DAY_S
from focused.kernels.change_hazard import Group, activity_since, group_after
from focused.revisit.hazard import BINS, bin_days_for, empty_group, pack_group, unpack_group

BIN_DAYS = 4.0
START = 5_000 * BIN_DAYS * DAY_S
EMPTY = empty_group(START, BIN_DAYS)


def visited(
    group: Group,
    at_days: float,
    days: float,
    changed: bool = False,
    changed_at_days: float | None = None,
) -> Group:
    changed_at = None if changed_at_days is None else START + changed_at_days * DAY_S
    return group_after(group, START + at_days * DAY_S, days, BIN_DAYS, changed, changed_at)


def after(group: Group, days: float) -> tuple[float, float]:
    return activity_since(group, START + days * DAY_S)


def test_page_days_count_from_the_given_time():
    group = visited(EMPTY, 30.0, 22.0)
    assert after(group, 8.0) == pytest.approx((0.0, 22.0))
    assert after(group, 22.0) == pytest.approx((0.0, 8.0))
    assert after(group, 30.0) == pytest.approx((0.0, 0.0))


def test_a_change_of_unknown_time_is_spread_over_the_interval():
    group = visited(EMPTY, 30.0, 22.0, changed=True)
    assert after(group, 8.0) == pytest.approx((1.0, 22.0))
    assert after(group, 22.0) == pytest.approx((8.0 / 22.0, 8.0))


def test_a_change_of_known_time_counts_only_before_that_time():
    group = visited(EMPTY, 30.0, 20.0, True, 13.0)
    assert after(group, 12.0)[0] == pytest.approx(1.0)
    assert after(group, 16.0)[0] == pytest.approx(0.0)


def test_visits_add_up_in_any_order():
    in_order = visited(visited(EMPTY, 30.0, 20.0, changed=True), 47.0, 9.0)
    late = visited(visited(EMPTY, 47.0, 9.0), 30.0, 20.0, changed=True)
    assert late[:6] == pytest.approx(in_order[:6])
    assert late[6] == pytest.approx(in_order[6])
    assert late[7] == pytest.approx(in_order[7])


def test_bins_forget_what_is_older_than_they_reach():
    group = visited(EMPTY, 10.0, 10.0, changed=True)
    group = visited(group, 10.0 + BINS * BIN_DAYS + BIN_DAYS, 1.0)
    assert after(group, 0.0) == pytest.approx((0.0, 1.0))
    assert group[1:3] == (1.0, 11.0)


def test_an_interval_that_is_longer_than_the_bins_fills_them():
    group = visited(EMPTY, 3.0, 10_000.0)
    assert group[7] == pytest.approx([3.0, *[BIN_DAYS] * (BINS - 1)])


def test_bins_of_another_width_are_dropped():
    old = group_after(EMPTY, START, 8.0, 2 * BIN_DAYS, True, None)
    group = visited(old, 10.0, 6.0)
    assert group[5] == BIN_DAYS
    assert after(group, -100.0) == pytest.approx((0.0, 6.0))
    assert group[1] == 1.0


def test_the_width_of_bins_stays_when_the_mean_interval_changes_a_little():
    assert bin_days_for(30.0) == bin_days_for(33.0) == BIN_DAYS


def test_a_record_holds_the_group():
    group = visited(EMPTY, 30.0, 20.0, changed=True)
    assert unpack_group(pack_group(group))[:6] == pytest.approx(group[:6])
    assert len(pack_group(group)) == 220


@given(st.floats(0.0, 4 * BIN_DAYS), st.floats(0.01, 80.0))
def test_the_bins_hold_the_whole_interval(at, days):
    assert math.isclose(sum(visited(EMPTY, at, days, changed=True)[7]), days, rel_tol=1e-6)
