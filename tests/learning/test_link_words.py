"""What the words of links were worth, as the crawl has seen it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from focused.learning.link_words import MAX_WORDS_NATS, LinkWords

HERE = "http://h.test/"


def taught(*lessons: tuple[str, float], times: int = 10) -> LinkWords:
    words = LinkWords()
    for anchor, relevance in lessons * times:
        words.learn(HERE, anchor, relevance)
    return words


def test_words_never_met_say_nothing():
    assert LinkWords().evidence(HERE, "whale") == 0.0
    assert taught(("whale", 0.9)).evidence("http://elsewhere.example/", "harpoon") == 0.0


def test_words_that_led_to_relevant_pages_speak_for_a_link_and_others_against():
    words = taught(("whale", 0.9), ("ledger", 0.1))
    assert words.evidence(HERE, "whale") > 0.5
    assert words.evidence(HERE, "ledger") < -0.5


def test_the_words_of_an_address_are_learned_too():
    words = LinkWords()
    for n in range(10):
        words.learn(f"http://a.test/whales/{n}", "", 0.9)
        words.learn(f"http://a.test/ledgers/{n}", "", 0.1)
    assert words.evidence("http://a.test/whales/new", "") > 0.0
    assert words.evidence("http://a.test/ledgers/new", "") < 0.0


def test_what_every_link_says_says_nothing():
    words = taught(("next whale", 0.9), ("next ledger", 0.1))
    assert words.evidence("http://other.example/", "next") == pytest.approx(0.0, abs=0.05)


def test_small_relevances_are_noise_where_nothing_is_on_topic():
    words = taught(("ledger", 0.01), times=200)
    for _ in range(5):
        words.learn("http://x.example/", "tariff", 0.05)
    assert 0.0 < words.evidence("http://x.example/", "tariff") < 0.3


def test_the_memory_is_bounded():
    words = LinkWords(max_words=50)
    for n in range(500):
        word = "".join(chr(97 + int(digit)) for digit in f"{n:04}")
        words.learn("http://h.test/", f"{word} {'whale' if n % 2 else 'trade'}", float(n % 2))
        assert len(words) <= 50
    assert words.evidence("http://h.test/", "whale") > 0.0


@given(st.lists(st.tuples(st.text(max_size=30), st.floats(0, 1)), max_size=30), st.text())
def test_evidence_stays_within_its_bounds(lessons, anchor):
    words = LinkWords()
    for text, relevance in lessons:
        words.learn(HERE, text, relevance)
    assert abs(words.evidence(HERE, anchor)) <= MAX_WORDS_NATS
