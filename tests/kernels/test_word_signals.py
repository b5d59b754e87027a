"""Compiled and interpreted, texts have the same signals."""

from __future__ import annotations

import math
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
popular = st.lists(st.integers(0, 9) | hashes, unique=True, max_size=60)


@settings(deadline=None)
@given(words)
def test_compiled_and_interpreted_find_the_same_repetition(source, words):
    assert word_signals.repetition_signals(words) == source.repetition_signals(words)


@settings(deadline=None)
@given(words, popular, st.randoms())
def test_compiled_and_interpreted_find_the_same_popular_words(source, words, popular, rng):
    places = {word: place for place, word in enumerate(popular)}
    scores = [rng.random() for _ in range((len(popular) + 1) ** 2)]
    given = words, places, [rng.random() for _ in popular], scores
    assert word_signals.popular_signals(*given) == source.popular_signals(*given)


def test_repetition_is_counted(source: ModuleType) -> None:
    found = source.repetition_signals([1, 2, 3, 4, 1, 2, 3, 4, 5, 6])
    distinct, once, top, top_five, pairs, fours, halves, near, gap = found
    assert (distinct, once, top, top_five) == (0.6, 0.2, 0.2, 0.9)
    assert pairs == pytest.approx(3 / 9)
    assert fours == pytest.approx(1 / 7)
    # The first half has five of the words that are used at most thrice, one of them twice.
    assert halves == pytest.approx(3 / 5)
    assert (near, gap) == (1.0, pytest.approx(math.log(4 * 3 / 10)))


def test_popular_words_are_counted(source: ModuleType) -> None:
    scores = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]
    found = source.popular_signals([7, 8, 9, 7], {7: 0, 8: 1}, [0.5, 0.5], scores)
    known, pairs, score, present, shift = found
    assert (known, present) == (0.75, 1.0)
    assert pairs == pytest.approx(1 / 3)
    assert score == pytest.approx((2.0 + 6.0 + 7.0) / 3)
    assert shift == pytest.approx(math.sqrt(0.5) - 0.5)


def test_a_text_without_repeats_has_gaps_of_random_order(source: ModuleType) -> None:
    assert source.repetition_signals([1, 2, 3, 4])[-2:] == (0.0, -0.5)
