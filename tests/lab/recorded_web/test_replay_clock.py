"""The clock of a replay whose pages change."""

import pytest

from focused.errors import ConfigurationError
from focused_lab.recorded_web.replay_clock import ReplayClock


def test_it_runs_faster_than_real_time():
    real = [1_000.0]
    clock = ReplayClock(500.0, 1_000.0, 100.0, lambda: real[0])
    assert clock() == 500.0
    real[0] += 2.0
    assert clock() == 700.0
    assert clock.real_s(100.0) == 1.0


def test_processes_with_equal_values_read_the_same_time():
    clock = ReplayClock(1704067200.0, 1795384814.2134912, 1e5)
    assert ReplayClock.parse(str(clock)) == clock


def test_a_crawl_cannot_go_on_before_its_end():
    clock = ReplayClock(500.0, 0.0, 1.0, lambda: 0.0)
    clock.advance_to(500.0)
    with pytest.raises(ConfigurationError, match="100 s behind"):
        clock.advance_to(600.0)


@pytest.mark.parametrize("text", ["", "1,2", "1,2,x", "1,2,0", "1,2,-1", "nan,2,1", "1,inf,1"])
def test_a_wrong_clock_is_refused(text):
    with pytest.raises(ConfigurationError, match="clock"):
        ReplayClock.parse(text)
