"""The keyword classifier ranks pages by their keywords."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from focused.classifier.keyword_classifier import KeywordClassifier
from focused.errors import ConfigurationError
from focused.web.page import Page

FILLER = "this page has many words that say nothing of the matter at all " * 5


@pytest.fixture(scope="module")
def classifier() -> KeywordClassifier:
    return KeywordClassifier(["whale", "baleen plate", "cetac*"])


def relevance(classifier: KeywordClassifier, text: str = "", title: str = "") -> float:
    return classifier.classify(Page("http://a.test/", title=title, text=FILLER + text)).relevance


def test_a_page_without_keywords_has_relevance_zero(classifier):
    assert relevance(classifier) == 0.0


def test_more_keywords_tell_more(classifier):
    one = relevance(classifier, "a whale")
    two = relevance(classifier, "a whale, a cetacean")
    three = relevance(classifier, "a whale, a cetacean, its baleen plate")
    assert 0.0 < one < two < three <= 1.0


def test_a_keyword_weighs_more_in_the_title_than_in_the_text(classifier):
    assert relevance(classifier, title="The whale") > relevance(classifier, "the whale")


def test_a_long_page_must_repeat_a_keyword_as_often(classifier):
    assert relevance(classifier, "a whale " + FILLER * 20) < relevance(classifier, "a whale")


def test_a_phrase_counts_only_where_its_words_stand_in_a_row(classifier):
    assert relevance(classifier, "a baleen plate") > 0.0
    assert relevance(classifier, "the plate was not of baleen") == 0.0


def test_a_beginning_matches_words_that_begin_so(classifier):
    assert relevance(classifier, "cetology") == 0.0
    assert relevance(classifier, "cetaceans") == relevance(classifier, "cetacea") > 0.0


@pytest.mark.parametrize(
    ("keyword", "text"),
    [
        ("鯨", "海に鯨がいる"),
        ("鯨", "鯨の歌"),
        ("鯨", "大きい鯨は歌う"),
        ("鯨類", "日本の海には多くの鯨類が生息している"),
    ],
)
def test_a_keyword_is_found_in_scripts_without_spaces(keyword, text):
    assert relevance(KeywordClassifier([keyword]), text) > 0.0
    assert relevance(KeywordClassifier([keyword]), "海に魚がいる") == 0.0


def test_a_frequent_word_weighs_less_than_a_rare_one():
    common, rare = KeywordClassifier(["system", "whale"]), KeywordClassifier(["whale", "krill"])
    assert common.score_texts(["a system"])[0] < rare.score_texts(["some krill"])[0]


def test_scores_of_keywords_in_short_texts_add_up(classifier):
    none, one, two = classifier.score_texts(["a boat", "whale", "whale, cetacean"])
    assert none == 0.0 < one < two <= 4.0
    assert classifier.score_texts([]).shape == (0,)


def test_a_page_of_a_few_words_is_not_classified(classifier):
    assert not classifier.classify(Page("http://a.test/", text="whale whale")).known


@pytest.mark.parametrize("keywords", [[], ["whale", " * "], ["!?"]])
def test_keywords_without_a_word_are_an_error(keywords):
    with pytest.raises(ConfigurationError, match=r"training\.keywords"):
        KeywordClassifier(keywords)


@given(title=st.text(), text=st.text())
def test_any_page_can_be_classified(classifier, title, text):
    classified = classifier.classify(Page("http://a.test/", title=title, text=text))
    assert 0.0 <= classified.relevance <= 1.0
    assert classified.on_topic == (classified.relevance >= classifier.threshold)
