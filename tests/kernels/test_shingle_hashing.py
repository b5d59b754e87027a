"""Compiled and interpreted, shingles have the same hashes."""

import struct
from collections.abc import Callable
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from focused.kernels import shingle_hashing


@pytest.fixture(scope="module")
def source(interpreted: Callable[[str], ModuleType]) -> ModuleType:
    return interpreted("shingle_hashing")


def numbers(values: list[int]) -> bytes:
    return struct.pack(f"<{len(values)}i", *values)


tables = st.lists(st.integers(-0x10FFFF, 0x10FFFF), max_size=12)
texts = st.lists(st.integers(0, 14) | st.integers(0, 0x10FFFF), max_size=80)


@settings(deadline=None)
@given(texts, tables)
def test_compiled_and_interpreted_hash_alike(source, text, table):
    given = numbers(text), numbers(table)
    assert shingle_hashing.hash_shingles(*given) == source.hash_shingles(*given)


def test_a_letter_continues_a_word_and_other_words_have_one_character(source):
    space, letter, sign, beyond = 0, 1, 2, 3
    table = numbers([0, 7, -8])
    apart = [letter, sign, letter, space, letter, beyond]
    assert len(source.hash_shingles(numbers(apart), table)) == 8
    together = [letter, letter, sign, space, letter, beyond]
    assert source.hash_shingles(numbers(together), table) == b""


def test_a_long_word_takes_linear_time(source):
    # Numbers that are not cut to 64 bits would grow with each letter.
    table, rest = numbers([0, 7]), [0, 1] * 4
    long, shorter = (source.hash_shingles(numbers([1] * n + rest), table) for n in (200_000, 9))
    assert len(long) == len(shorter) == 8
    assert long != shorter
