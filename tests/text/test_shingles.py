"""Resemblance of texts by sketches of shingles."""

import random

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from focused.text.shingles import (
    MAX_TEXT_CHARS,
    SHINGLE_WORDS,
    SKETCH_SHINGLES,
    count_common_hashes,
    estimate_containment,
    estimate_resemblance,
    hashes_not_in,
    make_sketch,
    shingles,
)

WORDS = [f"w{number}" for number in range(20_000)]


def prose(count: int, seed: int = 0) -> list[str]:
    return random.Random(seed).choices(WORDS, k=count)


def shared(one: str, other: str) -> float:
    """The exact resemblance, by sets."""
    mine, theirs = set(shingles(one).tolist()), set(shingles(other).tolist())
    return len(mine & theirs) / len(mine | theirs)


def test_a_text_has_a_shingle_for_each_word_but_the_last_few():
    assert len(shingles(" ".join(WORDS[:100]))) == 100 - SHINGLE_WORDS + 1
    assert len(shingles(" ".join(WORDS[: SHINGLE_WORDS - 1]))) == 0


def test_a_repeated_shingle_counts_once():
    assert len(shingles("la " * 50)) == 1


def test_case_punctuation_and_white_space_do_not_count():
    one, other = "One, two; THREE four (five) 6", "one two\n\nthree -- four five. 6!"
    assert shingles(one).tolist() == shingles(other).tolist()


@given(st.text())
@example("ΟΔΟΣ ΟΔΟΣ. İstanbul Straße 𐐀𐐁")
def test_a_text_has_the_shingles_of_its_lower_case(text):
    assert list(shingles(f"{text} a b c d e")) == list(shingles(f"{text} a b c d e".lower()))


def test_hashes_are_those_of_earlier_versions_whose_sketches_are_kept():
    found = shingles("The whale is a mammal. Größe naïve Ελλάδα 東京都")
    assert [f"{value:016x}" for value in found.tolist()] == [
        "194952a104f517a1",
        "20d5b0b94b10ab9e",
        "2cb0a87935cb604d",
        "47c913eadbf96ac3",
        "54c113ddc9e0cf8b",
        "68fed0d2311a4225",
        "ea37aff6b6e55510",
    ]


def test_order_counts():
    assert shared("a1 b1 c1 d1 e1", "e1 d1 c1 b1 a1") == 0.0


def test_a_word_has_the_same_hash_at_any_position():
    passage = "five words in a row"
    alone = shingles(passage).tolist()
    assert alone[0] in shingles("é " * 777 + passage).tolist()
    assert alone[0] in shingles("x" * 5_000 + " " + passage + " and more").tolist()


@pytest.mark.parametrize(
    "other", ["na\u00efve", "\u043c\u0438\u0440", "\u4e2d\u6587", "\U00020000"]
)
def test_the_words_of_one_script_are_the_same_beside_another(other):
    text = "the whale is a mammal of the sea"
    assert set(shingles(text)) < set(shingles(f"{text}. {other}"))


def test_scripts_without_spaces_are_compared_by_characters():
    one = "東京都は日本の首都であり世界最大の都市の一つです"
    other = one.replace("世界最大", "世界有数")
    assert len(shingles(one)) == len(one) - SHINGLE_WORDS + 1
    assert 0.3 < shared(one, other) < 0.8


def test_words_beyond_ascii_are_whole_words():
    assert len(shingles("Größe naïve Ελλάδα Москва हिन्दी")) == 1


def test_what_is_beyond_a_limit_is_not_read():
    long = "ab " * (MAX_TEXT_CHARS // 3) + " ".join(WORDS[:50])
    assert len(shingles(long)) < 10


@given(st.text())
def test_any_text_has_shingles_in_order(text):
    found = shingles(text)
    assert (np.diff(found.astype(object)) > 0).all()


@given(st.text("aé 中\u0301İ\ud800\U0001f600", max_size=60), st.integers(0, 9))
def test_surrounding_separators_do_not_change_shingles(text, before):
    moved = shingles("other " * before + "\n" + text)
    assert set(shingles(text).tolist()) <= set(moved.tolist())


def test_a_sketch_holds_the_smallest_hashes_and_knows_how_far_it_goes():
    hashes = shingles(" ".join(prose(1_000)))
    found = make_sketch(hashes)
    assert found.hashes.tolist() == sorted(hashes.tolist())[:SKETCH_SHINGLES]
    assert found.up_to == found.hashes[-1]


def test_two_short_texts_are_compared_wholly():
    one, other = " ".join(prose(60)), " ".join([*prose(60), "and", "more"])
    assert estimate_resemblance(make_sketch(shingles(one)), make_sketch(shingles(other))) == (
        pytest.approx(shared(one, other)),
        len(set(shingles(one)) | set(shingles(other))),
    )


@pytest.mark.parametrize("changed", [0.01, 0.05, 0.2])
def test_the_estimate_is_near_the_true_resemblance(changed):
    errors = []
    for seed in range(40):
        words = prose(2_000, seed)
        edited = list(words)
        for place in random.Random(seed).sample(range(2_000), int(2_000 * changed)):
            edited[place] = "changed"
        one, other = " ".join(words), " ".join(edited)
        share, number = estimate_resemblance(
            make_sketch(shingles(one)), make_sketch(shingles(other))
        )
        assert number >= SKETCH_SHINGLES
        errors.append(share - shared(one, other))
    assert abs(float(np.mean(errors))) < 0.02
    assert float(np.std(errors)) < 0.06


def test_a_text_of_another_length_is_compared_as_far_as_both_samples_go():
    words = prose(4_000)
    half = make_sketch(shingles(" ".join(words[:2_000])))
    share, _ = estimate_resemblance(half, make_sketch(shingles(" ".join(words))))
    assert share == pytest.approx(0.5, abs=0.12)


def test_nothing_resembles_nothing():
    empty = make_sketch(shingles(""))
    assert estimate_resemblance(empty, empty) == (0.0, 0)


def test_what_does_not_count_is_left_out_of_a_sketch():
    page, template = prose(600), prose(400, seed=1)
    bare = make_sketch(shingles(" ".join(page)))
    framed = make_sketch(shingles(" ".join([*template, *page])))
    known = shingles(" ".join(template))
    assert estimate_resemblance(bare, framed)[0] < 0.75
    assert estimate_resemblance(bare, framed.without(known))[0] > 0.95


@given(st.lists(st.integers(0, 50)), st.lists(st.integers(0, 50)))
def test_common_hashes_are_counted(ours, others):
    one = np.array(sorted(set(ours)), np.uint64)
    other = np.array(sorted(set(others)), np.uint64)
    assert count_common_hashes(one, other) == len(set(ours) & set(others))


@given(st.lists(st.integers(0, 50)), st.lists(st.integers(0, 50)))
def test_without_is_the_difference_of_sets(ours, others):
    one = np.array(sorted(set(ours)), np.uint64)
    other = np.array(sorted(set(others)), np.uint64)
    assert hashes_not_in(one, other).tolist() == sorted(set(ours) - set(others))


def test_containment_is_the_share_of_the_smaller_text():
    words = [f"word{number}" for number in range(2_000)]
    whole, part = (make_sketch(shingles(" ".join(each))) for each in (words, words[:800]))
    share, number = estimate_containment(whole, part)
    assert share == 1.0 and number > 30
    assert estimate_containment(part, whole) == (share, number)
    assert estimate_resemblance(whole, part)[0] < 0.6


def test_texts_without_common_shingles_contain_nothing_of_each_other():
    one, other = (
        make_sketch(shingles(" ".join(f"{kind}{n}" for n in range(300)))) for kind in "ab"
    )
    assert estimate_containment(one, other)[0] == 0.0
    empty = make_sketch(shingles(""))
    assert estimate_containment(one, empty) == (0.0, 0)
