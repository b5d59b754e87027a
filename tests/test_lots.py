"""A lot depends on its text and the seed, and on nothing else."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from focused.lots import lot


@given(st.text(), st.integers(0, 2**64 - 1))
def test_a_lot_is_from_0_up_to_1_and_the_same_again(text: str, seed: int) -> None:
    assert 0.0 <= lot(text, seed) < 1.0
    assert lot(text, seed) == lot(text, seed)


def test_lots_of_many_texts_are_spread_evenly() -> None:
    lots = [lot(f"http://a.test/{n}") for n in range(2_000)]
    shares = np.histogram(lots, bins=10, range=(0.0, 1.0))[0] / len(lots)
    assert (abs(shares - 0.1) < 0.03).all()


def test_another_seed_draws_other_lots() -> None:
    one, other = ([lot(str(n), seed) for n in range(1_000)] for seed in (1, 2))
    assert abs(np.corrcoef(one, other)[0, 1]) < 0.1
