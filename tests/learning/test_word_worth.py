"""What words were worth, as the crawl has seen it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from focused.learning.word_worth import MAX_WORDS_NATS, WordWorth

lessons = st.lists(
    st.tuples(st.sets(st.sampled_from("abcdefgh"), max_size=5), st.floats(0, 1)), max_size=40
)


def taught(*cases: tuple[str, float], times: int = 10) -> WordWorth:
    worth = WordWorth()
    for text, relevance in cases * times:
        worth.learn(text.split(), relevance)
    return worth


def told(worth: WordWorth, *words: str) -> float:
    """What one text of these words is told."""
    return float(worth.evidence([words])[0])


def test_words_never_met_say_nothing():
    assert told(WordWorth(), "whale") == 0.0
    assert told(taught(("whale", 0.9)), "harpoon") == 0.0
    assert told(taught(("whale", 0.9))) == 0.0


def test_words_that_stood_on_what_was_relevant_speak_for_it_and_others_against():
    worth = taught(("whale", 0.9), ("ledger", 0.1))
    assert told(worth, "whale") > 0.5
    assert told(worth, "ledger") < -0.5


def test_an_unknown_word_takes_nothing_from_those_that_are_known():
    worth = taught(("whale", 0.9), ("ledger", 0.1))
    assert told(worth, "whale", "harpoon") == told(worth, "whale")


def test_what_stands_on_everything_says_nothing():
    worth = taught(("next whale", 0.9), ("next ledger", 0.1))
    assert told(worth, "next") == pytest.approx(0.0, abs=0.05)


def test_a_word_says_more_the_more_often_it_was_met():
    once, often = (taught(("ledger", 0.1), times=50) for _ in range(2))
    once.learn(["whale"], 0.9)
    for _ in range(10):
        often.learn(["whale"], 0.9)
    assert told(often, "whale") > told(once, "whale") > 0.0


def test_two_words_that_say_the_same_do_not_count_double():
    worth = taught(("sperm whale", 0.6), ("ledger", 0.3), times=3)
    one, both = told(worth, "whale"), told(worth, "sperm", "whale")
    assert one < both < 2 * one


def test_small_relevances_are_noise_where_nothing_is_on_topic():
    worth = taught(("ledger", 0.01), times=200)
    for _ in range(5):
        worth.learn(["tariff"], 0.05)
    assert 0.0 < told(worth, "tariff") < 0.3


def test_the_rate_is_the_mean_relevance_of_what_was_met():
    assert taught(("whale", 0.9), ("ledger", 0.1), times=500).rate == pytest.approx(0.5, abs=0.01)
    assert WordWorth().rate == 0.5


def test_the_memory_is_bounded_and_words_met_again_are_kept():
    worth = WordWorth(max_words=50)
    for n in range(500):
        word = "".join(chr(97 + int(digit)) for digit in f"{n:04}")
        worth.learn([word, "whale" if n % 2 else "trade"], float(n % 2))
        assert len(worth) <= 50
    assert told(worth, "whale") > 0.0


@given(lessons, st.lists(st.sampled_from("abcdefghij")))
def test_evidence_stays_within_its_bounds_and_the_rate_between_0_and_1(cases, words):
    worth = WordWorth()
    for each, relevance in cases:
        worth.learn(each, relevance)
    assert abs(told(worth, *words)) <= MAX_WORDS_NATS
    assert 0.0 < worth.rate < 1.0


@given(lessons, lessons)
def test_restored_it_goes_on_as_if_nothing_had_been(before, after):
    worth = WordWorth(max_words=6)
    for words, relevance in before:
        worth.learn(sorted(words), relevance)
    again = WordWorth.restored(worth.state(), max_words=6)
    for words, relevance in after:
        worth.learn(sorted(words), relevance)
        again.learn(sorted(words), relevance)
    # The order of words too: it says what is forgotten first.
    assert again.state() == worth.state()
    assert again.rate == worth.rate
    assert told(again, *"abcdefgh") == told(worth, *"abcdefgh")


@given(lessons)
def test_each_lesson_counts_at_once_and_asking_in_between_changes_nothing(cases):
    asked, silent = WordWorth(), WordWorth()
    for words, relevance in cases:
        for worth in (asked, silent):
            worth.learn(words, relevance)
        answers = asked.evidence("abcdefgh")
        assert np.array_equal(answers, WordWorth.restored(silent.state()).evidence("abcdefgh"))


@given(lessons, st.lists(st.lists(st.sampled_from("abcdefghij"), max_size=6), max_size=8))
def test_many_texts_are_told_what_each_is_told_alone(cases, texts):
    worth = WordWorth()
    for words, relevance in cases:
        worth.learn(sorted(words), relevance)
    assert worth.evidence(texts).tolist() == [told(worth, *text) for text in texts]
    assert [worth.evidence_of(text) for text in texts] == pytest.approx(worth.evidence(texts))
    assert worth.evidence(texts) == pytest.approx([plainly(cases, text) for text in texts])


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
