"""A judge by keywords alone ranks pages by how much they speak of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from focused.errors import ConfigurationError
from focused.learning.keyword_judge import KeywordJudge
from focused.web.page import Page

FILLER = "this page has many words that say nothing of the matter at all " * 5


@pytest.fixture(scope="module")
def judge() -> KeywordJudge:
    return KeywordJudge(["whale", "baleen plate", "cetac*"])


def relevance(judge: KeywordJudge, text: str = "", title: str = "") -> float:
    return judge.judge(Page("http://a.test/", title=title, text=FILLER + text)).relevance


def test_a_page_that_speaks_of_no_keyword_has_no_relevance(judge):
    assert relevance(judge) == 0.0


def test_more_keywords_tell_more(judge):
    one = relevance(judge, "a whale")
    two = relevance(judge, "a whale, a cetacean")
    three = relevance(judge, "a whale, a cetacean, its baleen plate")
    assert 0.0 < one < two < three <= 1.0


def test_a_keyword_in_the_title_tells_more_than_in_the_text(judge):
    assert relevance(judge, title="The whale") > relevance(judge, "the whale")


def test_a_long_page_must_repeat_a_keyword_as_often(judge):
    assert relevance(judge, "a whale " + FILLER * 20) < relevance(judge, "a whale")


def test_a_phrase_counts_only_where_its_words_stand_in_a_row(judge):
    assert relevance(judge, "a baleen plate") > 0.0
    assert relevance(judge, "the plate was not of baleen") == 0.0


def test_a_beginning_matches_words_that_begin_so(judge):
    assert relevance(judge, "cetology") == 0.0
    assert relevance(judge, "cetaceans") == relevance(judge, "cetacea") > 0.0


@pytest.mark.parametrize("text", ["海に鯨がいる", "鯨の歌", "大きい鯨は歌う"])
def test_a_keyword_of_one_character_is_found_in_scripts_without_spaces(text):
    assert relevance(KeywordJudge(["鯨"]), text) > 0.0
    assert relevance(KeywordJudge(["鯨"]), "海に魚がいる") == 0.0


def test_a_word_that_stands_everywhere_tells_less_than_a_rare_one():
    common, rare = KeywordJudge(["system", "whale"]), KeywordJudge(["whale", "krill"])
    assert common.verdicts(["a system"])[0] < rare.verdicts(["some krill"])[0]


def test_verdicts_of_short_texts_add_up_and_say_nothing_of_others(judge):
    none, one, two = judge.verdicts(["a boat", "whale", "whale, cetacean"])
    assert none == 0.0 < one < two <= 4.0
    assert judge.verdicts([]).shape == (0,)


def test_a_page_of_a_few_words_is_not_judged(judge):
    assert not judge.judge(Page("http://a.test/", text="whale whale")).known


def test_keywords_of_scripts_without_spaces_are_found():
    judge = KeywordJudge(["鯨類"])
    assert (
        judge.judge(Page("http://a.test/", text="日本の海には多くの鯨類が生息している")).relevance
        > 0
    )


@pytest.mark.parametrize("keywords", [[], ["whale", " * "], ["!?"]])
def test_keywords_without_a_word_are_an_error(keywords):
    with pytest.raises(ConfigurationError, match=r"training\.keywords"):
        KeywordJudge(keywords)


@given(title=st.text(), text=st.text())
def test_any_page_can_be_judged(judge, title, text):
    judged = judge.judge(Page("http://a.test/", title=title, text=text))
    assert 0.0 <= judged.relevance <= 1.0
    assert judged.on_topic == (judged.relevance >= judge.threshold)
