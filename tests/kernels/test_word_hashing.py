"""Compiled and interpreted, words have the same hashes and places."""

import random
import struct
from collections.abc import Callable, Iterable
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
@given(st.binary(min_size=2, max_size=20), st.integers(0, 20), st.integers())
def test_letters_hash_like_a_word_at_its_beginning_and_unlike_inside(source, letters, begin, seed):
    values, end = table(seed), len(letters)
    begin = min(begin, end - 1)
    piece = word_hashing.hash_piece(letters, begin, end, values)
    assert piece == source.hash_piece(letters, begin, end, values)
    assert begin == 0 or piece != source.hash_piece(letters[begin:], 0, end - begin, values)
    letter_values = struct.unpack("<256q", values)
    if begin == 0 and all(letter_values[letter] for letter in letters):
        whole, _, _ = word_hashing.hash_words(letters + word_hashing.END_OF_TEXT, values, 50)
        assert struct.unpack("<I", whole) == (piece,)


known_words = st.lists(st.integers(0, 30) | st.integers(0, 2**32 - 1), max_size=100)


def packed(words: Iterable[int]) -> bytes:
    return b"".join(struct.pack("<I", word) for word in words)


@settings(deadline=None)
@given(known_words, known_words)
def test_compiled_and_interpreted_find_the_same_places(source, known, others):
    vocabulary = word_hashing.make_word_table(packed(known))
    assert vocabulary == source.make_word_table(packed(known))
    every = packed(known + others)
    assert word_hashing.find_words(vocabulary, every) == source.find_words(vocabulary, every)


@settings(deadline=None)
@given(known_words, known_words)
def test_each_word_has_the_last_of_its_places_or_none(known, others):
    vocabulary = word_hashing.make_word_table(packed(known))
    places = {word: place for place, word in enumerate(known)}
    every = known + others
    found = struct.unpack(f"<{len(every)}i", word_hashing.find_words(vocabulary, packed(every)))
    assert list(found) == [places.get(word, -1) for word in every]


letters = st.text("abc", max_size=4).map(str.encode)


@settings(deadline=None)
@given(st.lists(letters), st.lists(letters), st.text("abc", max_size=20).map(str.encode))
def test_compiled_and_interpreted_split_a_word_alike(source, first, inside, word):
    values = table(1)
    hashes = [source.hash_piece(each, 0, len(each), values) for each in first]
    hashes += [source.hash_piece(b"-" + each, 1, 1 + len(each), values) for each in inside]
    pieces = source.make_word_table(packed(hashes))
    assert word_hashing.split_word(pieces, word, values) == source.split_word(pieces, word, values)
