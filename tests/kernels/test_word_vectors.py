"""Compiled and interpreted, texts have the same vectors and scores."""

import math
import struct
from collections.abc import Callable
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from focused.kernels import word_vectors


@pytest.fixture(scope="module")
def source(interpreted: Callable[[str], ModuleType]) -> ModuleType:
    return interpreted("word_vectors")


places = st.lists(st.integers(-1, 9), max_size=40).map(sorted)
numbers = st.lists(st.floats(0.125, 8.0, width=32), min_size=10, max_size=10)


def packed(places: list[int]) -> bytes:
    return struct.pack(f"<{len(places)}i", *places)


def floats(numbers: list[float]) -> bytes:
    return struct.pack(f"<{len(numbers)}f", *numbers)


@settings(deadline=None)
@given(places, places, numbers)
def test_compiled_and_interpreted_make_the_same_vector(source, text, head, idf):
    given = packed(text), packed(head), floats(idf), 0.4
    assert word_vectors.unit_vector(*given) == source.unit_vector(*given)


@settings(deadline=None)
@given(places, numbers, numbers)
def test_compiled_and_interpreted_give_the_same_score(source, text, scores, squares):
    given = packed(text), floats(scores), floats(squares), 0.5
    assert word_vectors.lead_score(*given) == source.lead_score(*given)


@settings(deadline=None)
@given(st.lists(places, max_size=6), numbers, numbers, st.booleans(), st.booleans())
def test_compiled_and_interpreted_score_texts_alike(source, texts, scores, squares, equal, known):
    words = [place for text in texts for place in text]
    given = (
        packed([7 * number % 5 - 2 for number in range(len(words))]),
        packed(words),
        list(map(len, texts)),
        floats(scores),
        b"" if equal else floats(squares),
        *(0.5, 2.0, 6.0),
    )
    found = [
        (kernel.text_scores(*given, others, None if known else value_of), others)
        for kernel, others in ((word_vectors, {}), (source, {}))
    ]
    assert found[0] == found[1]


def value_of(word: int) -> tuple[float, float]:
    return word / 8, 1.0


@given(places, places, numbers)
def test_a_vector_has_each_known_word_once_and_the_length_1(text, head, idf):
    ids, values, known = word_vectors.unit_vector(packed(text), packed(head), floats(idf), 0.4)
    words = sorted({*text, *head} - {-1})
    assert struct.unpack(f"<{len(words)}q", ids) == tuple(words)
    assert known == sum(place >= 0 for place in text + head)
    if words:
        assert math.hypot(*struct.unpack(f"<{len(words)}d", values)) == pytest.approx(1.0)


def test_the_score_of_a_text_is_that_of_its_known_words(source):
    scores, squares = floats([2.0, 1.0, 3.0]), floats([1.0, 4.0, 0.25])
    found = source.lead_score(packed([-1, 0, 2, 2]), scores, squares, 0.5)
    one, two = math.log(2), math.log(3)
    assert found == pytest.approx((one * 2 + two * 3) / math.hypot(one, two / 2) + 0.5)
    assert source.lead_score(packed([-1]), scores, squares, 0.5) == 0.0


def test_words_without_a_place_count_by_their_own_scores():
    scores, squares = floats([2.0, 1.0]), floats([1.0, 4.0])
    words, places = packed([3, 8, 5, 9, 8]), packed([1, -1, 0, -1, -1])
    given = words, places, [2, 0, 3], scores, squares, 0.5, 2.0, 5.0
    values = {1: (2.0, 5.0), 3: (3.0, 6.0)}.__getitem__
    of_words = struct.unpack("<3d", word_vectors.text_scores(*given, {}, values))
    assert of_words == pytest.approx((3.0, 0.0, 5.0))
    of_words = struct.unpack("<3d", word_vectors.text_scores(*given, {}, None))
    assert of_words == pytest.approx((2.0, 0.0, 5.0))
