"""Compiled and interpreted, words have the same places."""

import struct
from collections.abc import Callable
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from focused.kernels import word_table


@pytest.fixture(scope="module")
def source(interpreted: Callable[[str], ModuleType]) -> ModuleType:
    return interpreted("word_table")


words = st.lists(st.integers(0, 30) | st.integers(0, 2**32 - 1), max_size=100)


def packed(words: list[int]) -> bytes:
    return struct.pack(f"<{len(words)}I", *words)


@settings(deadline=None)
@given(words, words)
def test_compiled_and_interpreted_find_the_same_places(source, known, others):
    table = word_table.make_word_table(packed(known))
    assert table == source.make_word_table(packed(known))
    every = packed(known + others)
    assert word_table.find_words(table, every) == source.find_words(table, every)


@settings(deadline=None)
@given(words, words)
def test_each_word_has_the_last_of_its_places_or_none(known, others):
    table = word_table.make_word_table(packed(known))
    places = {word: place for place, word in enumerate(known)}
    every = known + others
    found = struct.unpack(f"<{len(every)}i", word_table.find_words(table, packed(every)))
    assert list(found) == [places.get(word, -1) for word in every]
