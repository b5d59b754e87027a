"""A crawl's clock ignores changes of the system's clock."""

from dataclasses import dataclass

from focused.durations import CrawlClock

HOUR_S = 3600.0


@dataclass
class System:
    wall: float = 1_000_000.0
    counted: float = 50.0

    def clock(self) -> CrawlClock:
        return CrawlClock(lambda: self.wall, lambda: self.counted)


def test_it_begins_with_the_system_s_time_and_counts_on():
    system = System()
    clock = system.clock()
    assert clock() == 1_000_000.0
    system.counted += 7.0
    assert clock() == 1_000_007.0


def test_a_system_s_clock_that_is_set_back_or_forward_does_not_move_it():
    system = System()
    clock = system.clock()
    for jump_s in (-HOUR_S, 24 * HOUR_S):
        system.wall += jump_s
        assert clock() == 1_000_000.0


def test_it_continues_from_an_earlier_session_s_time_where_the_system_s_was_set_back():
    system = System()
    clock = system.clock()
    clock.advance_to(1_000_000.0 + HOUR_S)
    assert clock() == 1_000_000.0 + HOUR_S
    system.counted += 1.0
    assert clock() == 1_000_001.0 + HOUR_S


def test_an_earlier_session_that_was_earlier_changes_nothing():
    clock = System().clock()
    clock.advance_to(0.0)
    assert clock() == 1_000_000.0
