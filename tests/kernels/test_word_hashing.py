"""Compiled and interpreted, words have the same hashes."""

import random
import struct
from collections.abc import Callable
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from focused.kernels import word_hashing


@pytest.fixture(scope="module")
def source(interpreted: Callable[[str], ModuleType]) -> ModuleType:
    return interpreted("word_hashing")


texts = st.lists(st.text(max_size=60) | st.text("ab c-é中\U00020000\ud800", max_size=60))


def table(seed: int) -> bytes:
    """Random values of bytes, a fifth of which separate words."""
    rng = random.Random(seed)
    values = [rng.choice((0, *rng.choices(range(1, 2**32), k=4))) for _ in range(255)]
    return struct.pack("<256q", *values, 0)


@settings(deadline=None)
@given(texts, st.integers(), st.integers(1, 50))
def test_compiled_and_interpreted_hash_alike(source, texts, seed, most):
    encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
    given = word_hashing.END_OF_TEXT.join((*encoded, b"")), table(seed), most
    assert word_hashing.hash_words(*given) == source.hash_words(*given)


def test_a_word_is_a_run_of_two_bytes_or_more_and_of_few_characters(source):
    values = struct.pack("<256q", *(0 if code in b" \xff" else code for code in range(256)))
    raw = "ab c  éé ééé abcd".encode() + b"\xff" + b"\xff" + b"x yz\xff"
    hashes, places, counts = source.hash_words(raw, values, 2)
    begins_and_ends = struct.iter_unpack("<ii", places)
    assert [raw[begin:end] for begin, end in begins_and_ends] == [b"ab", "éé".encode(), b"yz"]
    assert struct.unpack("<3i", counts) == (2, 0, 1)
    assert len(set(struct.unpack("<3I", hashes))) == 3


@settings(deadline=None)
@given(st.binary(min_size=2, max_size=20), st.integers())
def test_beginnings_hash_like_words(source, letters, seed):
    values = table(seed)
    hashes = word_hashing.hash_beginnings(letters, values, 0)
    assert hashes == source.hash_beginnings(letters, values, 0)
    inside = word_hashing.hash_beginnings(letters, values, word_hashing.INSIDE)
    assert inside == source.hash_beginnings(letters, values, source.INSIDE)
    assert not {*struct.iter_unpack("<I", inside)} & {*struct.iter_unpack("<I", hashes)}
    letter_values = struct.unpack("<256q", values)
    if all(letter_values[letter] for letter in letters):
        whole, _, _ = word_hashing.hash_words(letters + b"\xff", values, 50)
        assert hashes[-4:] == whole
