"""What a page says, in any order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from focused.web.page import Link, Page
from focused.web.word_bag import MIN_WORDS, NO_BAG, may_be_sorted, word_bag

WORDS = st.lists(st.sampled_from(["ant", "bee", "cat", "Dog", "élan", "鯨"]), min_size=MIN_WORDS)


def bag(words: list[str]) -> bytes:
    return word_bag(Page("http://a.test/", text=" ".join(words)))


@given(WORDS, st.randoms(use_true_random=False))
def test_order_case_and_digits_do_not_count(words, rng) -> None:
    other = [f"{word.upper()}{rng.randrange(10)}" for word in words]
    rng.shuffle(other)
    assert bag(words) == bag(other) != NO_BAG


@given(WORDS, st.sampled_from(["ant", "bee", "cat"]))
def test_each_word_counts_as_often_as_it_stands_there(words, word) -> None:
    assert bag(words) != bag([*words, word])
    assert bag(words) != bag([*words, word, word])


def test_a_page_of_few_words_has_none() -> None:
    assert bag(["whale"] * (MIN_WORDS - 1)) == NO_BAG
    assert bag([str(n) for n in range(100)]) == NO_BAG


@given(st.text())
def test_any_text_has_one(text: str) -> None:
    assert len(word_bag(Page("http://a.test/", text=text))) == len(NO_BAG)


def test_it_is_asked_of_pages_that_may_stand_under_another_url() -> None:
    url = "http://a.test/list"
    assert may_be_sorted(Page(f"{url}?sort=up"))
    assert may_be_sorted(Page(url, links=(Link(f"{url}?sort=up"),)))
    assert may_be_sorted(Page(url, canonical="http://a.test/"))
    assert not may_be_sorted(Page(url, links=(Link(f"{url}/1?x=2"),), canonical=url))
