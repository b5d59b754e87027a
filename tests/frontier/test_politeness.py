"""When a host may be requested again: properties of the arithmetic."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from focused.frontier.host_pace import (
    MAX_BACKOFF_S,
    MAX_SUSPENSION_S,
    HostPace,
    after_failure,
    after_interruption,
    after_success,
    pause_after,
    suspend,
)

NOW = 1_000_000.0
seconds = st.floats(0, 100_000, allow_nan=False)
delays = st.floats(0, 60)
long_delays = st.floats(0, 50_000)
paces = st.builds(
    HostPace,
    due_at=st.floats(0, 2 * NOW),
    failures=st.integers(0, 60),
    crawl_delay_s=long_delays,
    suspensions=st.integers(0, 60),
)


@given(paces, delays, seconds)
def test_after_an_answer_the_longest_of_the_delays_is_waited_for(pace, delay_s, rest):
    after = after_success(pace, NOW, delay_s, rest)
    assert after.due_at == NOW + max(delay_s, pace.crawl_delay_s, rest)


@given(paces, delays)
def test_an_answer_in_order_resets_the_failures_and_keeps_the_crawl_delay(pace, delay_s):
    after = after_success(pace, NOW, delay_s)
    assert (after.failures, after.suspensions) == (0, 0)
    assert after.crawl_delay_s == pace.crawl_delay_s


@given(seconds, st.floats(0, 100))
def test_a_host_pauses_in_proportion_to_its_fetch_time_an_hour_at_most(fetch_s, factor):
    assert pause_after(fetch_s, factor) == min(fetch_s * factor, MAX_BACKOFF_S)


def test_a_clock_that_was_set_back_during_a_fetch_does_no_harm():
    assert pause_after(-5.0, 10.0) == 0.0


@given(paces, long_delays, st.none() | seconds, seconds)
def test_after_failure_nothing_is_asked_sooner_than_after_an_answer(pace, delay_s, retry, rest):
    after = after_failure(pace, NOW, delay_s, retry, rest)
    delay_s = max(delay_s, pace.crawl_delay_s)
    assert NOW < after.due_at <= NOW + max(delay_s, MAX_BACKOFF_S)
    assert after.due_at >= NOW + max(delay_s, min(max(rest, retry or 0.0), MAX_BACKOFF_S))
    rest = min(rest, MAX_BACKOFF_S)
    assert after.due_at >= after_success(pace, NOW, delay_s, rest).due_at
    assert after.failures == pace.failures + 1
    assert (after.crawl_delay_s, after.suspensions) == (pace.crawl_delay_s, pace.suspensions)


@given(paces, delays)
def test_back_off_doubles_until_it_is_an_hour(pace, delay_s):
    pace = replace(pace, crawl_delay_s=0.0, failures=pace.failures % 12)
    first = after_failure(pace, NOW, delay_s, None)
    second = after_failure(first, NOW, delay_s, None)
    assert second.due_at - NOW == pytest.approx(min(2 * (first.due_at - NOW), MAX_BACKOFF_S))


@given(paces, st.floats(1, 3600))
def test_each_time_a_host_is_suspended_it_is_twice_as_long_a_day_at_most(pace, first_s):
    pace = replace(pace, due_at=0.0, suspensions=0)
    for times in range(1, 40):
        pace = suspend(pace, NOW, first_s)
        assert pace.due_at - NOW == pytest.approx(min(first_s * 2 ** (times - 1), MAX_SUSPENSION_S))
        assert pace.suspensions == times
        pace = replace(pace, due_at=0.0)


@given(paces, seconds)
def test_a_host_suspended_waits_no_less_than_it_would_have(pace, first_s):
    after = suspend(pace, NOW, first_s)
    assert after.due_at >= max(pace.due_at, NOW + min(first_s, MAX_SUSPENSION_S))
    assert after.failures == pace.failures


@given(paces, st.floats(0, NOW), delays)
def test_what_died_with_its_process_counts_as_requested(pace, asked_at, delay_s):
    after = after_interruption(pace, asked_at, delay_s)
    assert after.due_at >= max(pace.due_at, asked_at + delay_s, asked_at + pace.crawl_delay_s)
    assert replace(after, due_at=0.0) == replace(pace, due_at=0.0)
