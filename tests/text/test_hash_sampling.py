"""A hash fraction depends on text and seed alone."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from focused.text import hash_fraction


@given(st.text(), st.integers(0, 2**64 - 1))
def test_a_hash_fraction_is_in_0_to_1_and_reproducible(text, seed):
    assert 0.0 <= hash_fraction(text, seed) < 1.0
    assert hash_fraction(text, seed) == hash_fraction(text, seed)


def test_hash_fractions_are_uniform():
    lots = [hash_fraction(f"http://a.test/{n}") for n in range(2_000)]
    shares = np.histogram(lots, bins=10, range=(0.0, 1.0))[0] / len(lots)
    assert (abs(shares - 0.1) < 0.03).all()


def test_another_seed_gives_other_fractions():
    one, other = ([hash_fraction(str(n), seed) for n in range(1_000)] for seed in (1, 2))
    assert abs(np.corrcoef(one, other)[0, 1]) < 0.1
