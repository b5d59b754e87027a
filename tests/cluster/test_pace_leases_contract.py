"""The contract of all pace leases: no two partitions request a host or an address at once."""

from __future__ import annotations

import pytest

from focused.cluster.coordinator import ASK_AGAIN_S, PaceLeases
from tests.support.engines import Engine

NAMES = ("host.example", "192.0.2.1")


@pytest.fixture
def pace(engine: Engine) -> PaceLeases:
    return engine.pace()


@pytest.fixture
def other(engine: Engine) -> PaceLeases:
    """That of another worker."""
    return engine.pace()


def test_free_names_are_leased_at_once(pace: PaceLeases) -> None:
    assert pace.acquire(NAMES, "ann", 600.0) == 0.0
    assert pace.acquire(["other.example"], "bob", 600.0) == 0.0
    assert pace.acquire([], "bob", 600.0) == 0.0


@pytest.mark.parametrize("names", [NAMES, NAMES[:1], NAMES[1:], ("new.example", NAMES[1])])
def test_no_other_gets_a_leased_name(
    pace: PaceLeases, other: PaceLeases, names: tuple[str, ...]
) -> None:
    pace.acquire(NAMES, "ann", 600.0)
    assert other.acquire(names, "bob", 600.0) == ASK_AGAIN_S


def test_what_is_refused_leases_nothing(pace: PaceLeases, other: PaceLeases) -> None:
    pace.acquire(NAMES[1:], "ann", 600.0)
    assert pace.acquire(NAMES, "bob", 600.0) > 0
    assert other.acquire(NAMES[:1], "eve", 600.0) == 0.0


def test_a_lease_ends_after_its_time(engine: Engine, pace: PaceLeases, other: PaceLeases) -> None:
    pace.acquire(NAMES, "ann", 600.0)
    engine.advance(600.0)
    assert other.acquire(NAMES, "bob", 600.0) == 0.0


def test_who_waits_asks_again_when_the_lease_ends(pace: PaceLeases, other: PaceLeases) -> None:
    pace.acquire(NAMES, "ann", ASK_AGAIN_S / 2)
    assert other.acquire(NAMES, "bob", 600.0) <= ASK_AGAIN_S / 2


def test_a_holder_may_acquire_again(engine: Engine, pace: PaceLeases, other: PaceLeases) -> None:
    pace.acquire(NAMES, "ann", 100.0)
    assert pace.acquire(NAMES, "ann", 600.0) == 0.0
    engine.advance(300.0)
    assert other.acquire(NAMES, "bob", 100.0) == ASK_AGAIN_S


@pytest.mark.parametrize("holder", ["ann", "bob"])
def test_after_the_request_all_wait_for_the_delay(
    engine: Engine, pace: PaceLeases, other: PaceLeases, holder: str
) -> None:
    pace.acquire(NAMES, "ann", 600.0)
    pace.finish(NAMES, "ann", 500.0)
    pace.flush()
    engine.advance(200.0)
    assert other.acquire(NAMES, holder, 600.0) == pytest.approx(300.0, abs=90.0)
    engine.advance(300.0)
    assert other.acquire(NAMES, holder, 600.0) == 0.0


def test_the_longest_delay_counts(pace: PaceLeases, other: PaceLeases) -> None:
    pace.acquire(NAMES, "ann", 600.0)
    pace.finish(NAMES[:1], "ann", 900.0)
    pace.finish(NAMES[1:], "ann", 300.0)
    pace.flush()
    assert other.acquire(NAMES, "bob", 600.0) == pytest.approx(900.0, abs=90.0)


def test_the_delay_counts_from_the_end_of_the_request(engine: Engine, pace: PaceLeases) -> None:
    pace.acquire(NAMES, "ann", 900.0)
    pace.finish(NAMES, "ann", 300.0)
    engine.advance(400.0)
    assert pace.acquire(NAMES, "ann", 900.0) == 0.0


def test_without_a_delay_a_name_is_free_at_once(pace: PaceLeases, other: PaceLeases) -> None:
    pace.acquire(NAMES, "ann", 600.0)
    pace.finish(NAMES, "ann", 0.0)
    pace.flush()
    assert other.acquire(NAMES, "bob", 600.0) == 0.0


def test_the_next_acquire_tells_what_finished(pace: PaceLeases, other: PaceLeases) -> None:
    pace.acquire(NAMES, "ann", 600.0)
    pace.finish(NAMES, "ann", 0.0)
    assert pace.acquire(["other.example"], "ann", 600.0) == 0.0
    assert other.acquire(NAMES, "bob", 600.0) == 0.0


def test_a_holder_gets_its_name_again_when_it_finished(pace: PaceLeases) -> None:
    pace.acquire(NAMES, "ann", 600.0)
    pace.finish(NAMES, "ann", 0.0)
    assert pace.acquire(NAMES, "bob", 600.0) == 0.0


def test_only_the_holder_finishes(pace: PaceLeases, other: PaceLeases) -> None:
    pace.acquire(NAMES, "ann", 600.0)
    other.finish(NAMES, "bob", 0.0)
    other.flush()
    assert other.acquire(NAMES, "bob", 600.0) == ASK_AGAIN_S


def test_who_finishes_late_changes_nothing(
    engine: Engine, pace: PaceLeases, other: PaceLeases
) -> None:
    pace.acquire(NAMES, "ann", 100.0)
    engine.advance(100.0)
    other.acquire(NAMES, "bob", 600.0)
    pace.finish(NAMES, "ann", 0.0)
    pace.flush()
    assert pace.acquire(NAMES, "ann", 600.0) == ASK_AGAIN_S
