"""Compiled and interpreted, texts have the same signals."""

import math
import struct
from collections.abc import Callable
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from focused.kernels import word_signals


@pytest.fixture(scope="module")
def source(interpreted: Callable[[str], ModuleType]) -> ModuleType:
    return interpreted("word_signals")


hashes = st.integers(0, 2**32 - 1)
words = st.lists(st.integers(0, 9) | hashes, min_size=4, max_size=600)


def packed(words: list[int]) -> bytes:
    return struct.pack(f"<{len(words)}I", *words)


@settings(deadline=None)
@given(words)
def test_compiled_and_interpreted_find_the_same_repetition(source, words):
    given = packed(words)
    assert word_signals.repetition_signals(given) == source.repetition_signals(given)


@settings(deadline=None)
@given(st.lists(st.integers(-1, 60), min_size=2, max_size=600), st.integers(0, 60), st.randoms())
def test_compiled_and_interpreted_find_the_same_popular_words(source, places, k, rng):
    places = [min(place, k - 1) for place in places]
    scores, roots = ([rng.random() for _ in range(n)] for n in ((k + 1) ** 2, k))
    given = struct.pack(f"<{len(places)}i", *places), doubles(roots), doubles(scores)
    assert word_signals.popular_signals(*given) == source.popular_signals(*given)


def doubles(numbers: list[float]) -> bytes:
    return struct.pack(f"<{len(numbers)}d", *numbers)


def test_repetition_is_counted(source):
    found = source.repetition_signals(packed([1, 2, 3, 4, 1, 2, 3, 4, 5, 6]))
    distinct, once, top, top_five, pairs, fours, halves, near, gap = found
    assert (distinct, once, top, top_five) == (0.6, 0.2, 0.2, 0.9)
    assert pairs == pytest.approx(3 / 9)
    assert fours == pytest.approx(1 / 7)
    # The first half has five of the words that are used at most thrice, one of them twice.
    assert halves == pytest.approx(3 / 5)
    assert (near, gap) == (1.0, pytest.approx(math.log(4 * 3 / 10)))


def test_popular_words_are_counted(source):
    scores = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]
    places = struct.pack("<4i", 0, 1, -1, 0)
    found = source.popular_signals(places, doubles([0.5, 0.5]), doubles(scores))
    known, pairs, score, present, shift = found
    assert (known, present) == (0.75, 1.0)
    assert pairs == pytest.approx(1 / 3)
    assert score == pytest.approx((2.0 + 6.0 + 7.0) / 3)
    assert shift == pytest.approx(math.sqrt(0.5) - 0.5)


def test_a_text_without_repeats_has_gaps_of_random_order(source):
    assert source.repetition_signals(packed([1, 2, 3, 4]))[-2:] == (0.0, -0.5)
