"""The order-independent hash of a page's words."""

from hypothesis import given
from hypothesis import strategies as st

from focused.text.content_signatures import (
    MIN_BAG_WORDS,
    NO_BAG_HASH,
    bag_of_words_hash,
    may_have_sort_parameters,
)
from focused.web.page import Link, Page

WORDS = st.lists(
    st.sampled_from(["ant", "bee", "cat", "Dog", "élan", "鯨"]), min_size=MIN_BAG_WORDS
)


def bag(words: list[str]) -> bytes:
    return bag_of_words_hash(Page("http://a.test/", text=" ".join(words)))


@given(WORDS, st.randoms(use_true_random=False))
def test_order_case_and_digits_do_not_count(words, rng):
    other = [f"{word.upper()}{rng.randrange(10)}" for word in words]
    rng.shuffle(other)
    assert bag(words) == bag(other) != NO_BAG_HASH


@given(WORDS, st.sampled_from(["ant", "bee", "cat"]))
def test_each_word_counts_with_its_frequency(words, word):
    assert bag(words) != bag([*words, word])
    assert bag(words) != bag([*words, word, word])


def test_a_page_of_few_words_has_no_hash():
    assert bag(["whale"] * (MIN_BAG_WORDS - 1)) == NO_BAG_HASH
    assert bag([str(n) for n in range(100)]) == NO_BAG_HASH


@given(st.text())
def test_any_text_has_one(text):
    assert len(bag_of_words_hash(Page("http://a.test/", text=text))) == len(NO_BAG_HASH)


def test_pages_that_may_be_sorted_are_detected():
    url = "http://a.test/list"
    assert may_have_sort_parameters(Page(f"{url}?sort=up"))
    assert may_have_sort_parameters(Page(url, links=(Link(f"{url}?sort=up"),)))
    assert may_have_sort_parameters(Page(url, canonical="http://a.test/"))
    assert not may_have_sort_parameters(Page(url, links=(Link(f"{url}/1?x=2"),), canonical=url))
