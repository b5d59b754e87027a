"""Compiled and interpreted, words split into the same pieces."""

from collections.abc import Callable
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from focused.kernels import word_pieces
from focused.kernels.word_table import make_word_table
from focused.text.word_hashes import _letter_values


@pytest.fixture(scope="module")
def source(interpreted: Callable[[str], ModuleType]) -> ModuleType:
    return interpreted("word_pieces")


words = st.text("abC", max_size=12)
vocabularies = st.lists(
    st.tuples(st.text("abc", min_size=1, max_size=4), st.booleans()), unique=True
)


def longest_first(word: str, pieces: list[tuple[str, bool]]) -> list[int]:
    found: list[int] = []
    while word:
        fitting = [each for each in pieces if word.startswith(each[0]) and each[1] == bool(found)]
        if not fitting:
            return []
        longest = max(fitting, key=lambda each: len(each[0]))
        found.append(pieces.index(longest))
        word = word[len(longest[0]) :]
    return found


@settings(deadline=None)
@given(words, vocabularies)
def test_compiled_and_interpreted_take_the_longest_pieces(source, word, pieces):
    letters, are_inside = [each.encode() for each, _ in pieces], [inside for _, inside in pieces]
    values = _letter_values()
    hashes = word_pieces.hash_pieces(letters, are_inside, values)
    assert hashes == source.hash_pieces(letters, are_inside, values)
    table = make_word_table(hashes)
    split = word_pieces.split_word(word.encode(), values, table)
    assert split == source.split_word(word.encode(), values, table)
    assert split == longest_first(word.lower(), pieces)
