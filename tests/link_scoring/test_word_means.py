"""Mean relevance of words."""

import math
from collections.abc import Collection, Sequence
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from focused.link_scoring.running_means import MAX_WORD_FEATURE_NATS, SLOT_BITS, WordMeans
from focused.text.word_hashes import HashedTexts, hash_word

WORDS = ("ant", "bee", "cat", "dog", "eel", "fox", "gnu", "hen", "ibis", "jay")
FIRST = WORDS[:8]

examples = st.lists(
    st.tuples(st.sets(st.sampled_from(FIRST), max_size=5), st.floats(0, 1)), max_size=40
)


def hashes(words: Collection[str]) -> NDArray[np.uint32]:
    return np.array(list(map(hash_word, words)), np.uint32)


def as_words(texts: Sequence[Sequence[str]]) -> HashedTexts:
    flat = [word for text in texts for word in text]
    return HashedTexts(hashes(flat), list(map(len, texts)))


def taught(*cases: tuple[str, float], times: int = 10) -> WordMeans:
    worth = WordMeans()
    for text, relevance in cases * times:
        worth.learn(hashes(text.split()), relevance)
    return worth


def feature_of(worth: WordMeans, *words: str) -> float:
    """Return the feature of one text of these words."""
    return worth.features(as_words([words]), [len(words)])[0]


def test_unknown_words_have_feature_zero():
    assert feature_of(WordMeans(), "whale") == 0.0
    assert feature_of(taught(("whale", 0.9)), "harpoon") == 0.0
    assert feature_of(taught(("whale", 0.9))) == 0.0


def test_words_of_relevant_targets_are_positive_and_others_negative():
    worth = taught(("whale", 0.9), ("ledger", 0.1))
    assert feature_of(worth, "whale") > 0.5
    assert feature_of(worth, "ledger") < -0.5


def test_an_unknown_word_takes_nothing_from_those_that_are_known():
    worth = taught(("whale", 0.9), ("ledger", 0.1))
    assert feature_of(worth, "whale", "harpoon") == feature_of(worth, "whale")


def test_a_word_on_everything_has_feature_zero():
    worth = taught(("next whale", 0.9), ("next ledger", 0.1))
    assert feature_of(worth, "next") == pytest.approx(0.0, abs=0.05)


def test_more_observations_give_a_stronger_feature():
    once, often = (taught(("ledger", 0.1), times=50) for _ in range(2))
    once.learn(hashes(["whale"]), 0.9)
    for _ in range(10):
        often.learn(hashes(["whale"]), 0.9)
    assert feature_of(often, "whale") > feature_of(once, "whale") > 0.0


def test_two_redundant_words_do_not_count_double():
    worth = taught(("sperm whale", 0.6), ("ledger", 0.3), times=3)
    one, both = feature_of(worth, "whale"), feature_of(worth, "sperm", "whale")
    assert one < both < 2 * one


def test_small_relevances_are_noise_where_nothing_is_on_topic():
    worth = taught(("ledger", 0.01), times=200)
    for _ in range(5):
        worth.learn(hashes(["tariff"]), 0.05)
    assert 0.0 < feature_of(worth, "tariff") < 0.3


def test_the_rate_is_the_mean_relevance_of_what_was_met():
    assert taught(("whale", 0.9), ("ledger", 0.1), times=500).rate == pytest.approx(0.5, abs=0.01)
    assert WordMeans().rate == 0.5


def test_colliding_words_share_their_mean():
    slots: dict[int, str] = {}
    for letters in product("abcdefgh", repeat=4):
        word = "".join(letters)
        other = slots.setdefault(hash_word(word) >> 32 - SLOT_BITS, word)
        if other != word:
            break
    assert feature_of(taught((word, 0.9), ("ledger", 0.1)), other) > 0.5


def test_the_counts_of_a_larger_table_are_added_up():
    larger = [2, 1.0, np.array([8, 11, 12], "<u4").tobytes(), np.ones(3, "<c8").tobytes()]
    _, _, slots, counts = WordMeans.restored(larger).state()
    assert np.frombuffer(slots, "<u4").tolist() == [8, 12]
    assert np.frombuffer(counts, "<c8").tolist() == [2, 1]


@given(examples, st.lists(st.sampled_from(WORDS)))
def test_features_are_bounded_and_the_rate_is_in_0_to_1(cases, words):
    worth = WordMeans()
    for each, relevance in cases:
        worth.learn(hashes(each), relevance)
    assert abs(feature_of(worth, *words)) <= MAX_WORD_FEATURE_NATS
    assert 0.0 < worth.rate < 1.0


@given(examples)
def test_each_observation_counts_at_once_and_reading_changes_nothing(cases):
    asked, silent = WordMeans(), WordMeans()
    for words, relevance in cases:
        for worth in (asked, silent):
            worth.learn(hashes(words), relevance)
        texts = as_words([[word] for word in FIRST])
        restored, limits = WordMeans.restored(silent.state()), [1] * len(FIRST)
        assert asked.features(texts, limits) == restored.features(texts, limits)


@given(examples, st.lists(st.lists(st.sampled_from(WORDS), max_size=6), max_size=8))
def test_texts_in_a_batch_equal_single_ones(cases, texts):
    worth = WordMeans()
    for words, relevance in cases:
        worth.learn(hashes(words), relevance)
    together = worth.features(as_words(texts), list(map(len, texts)))
    assert together == [feature_of(worth, *text) for text in texts]
    assert together == pytest.approx([plainly(cases, text) for text in texts], rel=1e-4, abs=1e-5)


@given(examples, st.lists(st.lists(st.sampled_from(WORDS), max_size=6), max_size=8))
def test_only_the_first_words_of_each_text_count(cases, texts):
    worth = WordMeans()
    for words, relevance in cases:
        worth.learn(hashes(words), relevance)
    limits = [n % 4 for n in range(len(texts))]
    beginnings = [text[:limit] for text, limit in zip(texts, limits, strict=True)]
    whole = [len(text) for text in beginnings]
    assert worth.features(as_words(texts), limits) == worth.features(as_words(beginnings), whole)


def plainly(cases: list[tuple[set[str], float]], text: list[str]) -> float:
    """What the words of one text are worth, word by word."""
    rate = (sum(relevance for _, relevance in cases) + 0.5) / (len(cases) + 1.0)
    known = []
    for word in text:
        of_word = [relevance for words, relevance in cases if word in words]
        if of_word:
            share = (sum(of_word) + 2.0) / (len(of_word) + 2.0 / rate)
            known.append(math.log(share / (1 - share)) - math.log(rate / (1 - rate)))
    return max(-6.0, min(6.0, sum(known) / math.sqrt(len(known)))) if known else 0.0
