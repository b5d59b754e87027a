"""Steady or batch crawls, in-place or shadowed updates: simulations against the closed forms."""

from __future__ import annotations

import numpy as np
import pytest

from focused_lab.freshness.simulator import simulate_update_mode
from focused_lab.revisit_policies.allocation import UpdateMode

CYCLE, BATCH, CYCLES = 30.0, 7.0, 60
MODES = [
    UpdateMode(crawl, update, CYCLE, BATCH)
    for crawl in ("steady", "batch")
    for update in ("in-place", "shadowed")
]
each_mode = pytest.mark.parametrize("mode", MODES, ids=lambda mode: f"{mode.crawl}-{mode.update}")


def poisson_changes(rate: float, pages: int, seed: int = 1) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    until = CYCLES * CYCLE
    return [np.sort(rng.random(rng.poisson(rate * until)) * until) for _ in range(pages)]


@each_mode
@pytest.mark.parametrize("rate", [1 / 120, 1 / 15])
def test_simulated_collections_are_as_fresh_and_old_as_computed(
    mode: UpdateMode, rate: float
) -> None:
    found = simulate_update_mode(poisson_changes(rate, 300), mode, CYCLES)
    assert found.collection_freshness == pytest.approx(mode.freshness(rate), abs=0.012)
    assert found.collection_age_s == pytest.approx(mode.age_s(rate), rel=0.05)


def test_shadowing_costs_a_steady_crawl_more_than_a_batch_crawl() -> None:
    changes = poisson_changes(1 / 120, 200)
    steady, shadowed_steady, batch, shadowed_batch = (
        simulate_update_mode(changes, mode, CYCLES).collection_freshness for mode in MODES
    )
    assert steady == pytest.approx(batch, abs=0.01)
    assert shadowed_steady < shadowed_batch < batch


def test_age_since_the_last_modification_is_never_larger() -> None:
    changes = poisson_changes(1 / 10, 50)
    first = simulate_update_mode(changes, MODES[0], CYCLES)
    last = simulate_update_mode(changes, MODES[0], CYCLES, "last-modification")
    assert (last.age_s <= first.age_s + 1e-9).all()
    assert last.collection_age_s < first.collection_age_s
    assert (last.freshness == first.freshness).all()


def test_a_single_change_makes_one_page_stale_until_its_next_fetch() -> None:
    mode = UpdateMode("steady", "in-place", 10.0, 10.0)
    # Fetched in the middle of each cycle: at 25, and again at 35.
    found = simulate_update_mode([[27.0]], mode, 5)
    assert found.freshness[0] == pytest.approx(1 - 8 / 30)
    assert found.age_s[0] == pytest.approx(8**2 / 2 / 30)


def test_a_shadowed_copy_is_stale_when_it_enters_the_collection() -> None:
    mode = UpdateMode("steady", "shadowed", 10.0, 10.0)
    # Fetched at 25, changed at 27, shown from 30 to 40; the copy before, fetched at 15, is shown
    # until 30 and stale from 27.
    found = simulate_update_mode([[27.0]], mode, 5)
    assert found.freshness[0] == pytest.approx(1 - 13 / 30)


def test_two_cycles_are_too_few() -> None:
    with pytest.raises(ValueError, match="three or more"):
        simulate_update_mode([[1.0]], MODES[0], 2)
