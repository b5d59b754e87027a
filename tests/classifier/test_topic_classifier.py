"""The linear topic classifier; what it shares with others: test_every_classifier.py."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from focused.classifier.topic_classifier import (
    MAX_TEXT_SCORE,
    TopicClassifier,
    likeliest_category,
)
from focused.topic import ESTIMATORS
from focused.web.page import Classification, Page
from tests.support.made_up_topic import page, trained


@pytest.fixture(scope="module", params=ESTIMATORS)
def classifier(request, tmp_path_factory) -> TopicClassifier:
    return trained(tmp_path_factory.mktemp("cheese"), estimator=request.param).classifier


def test_unseen_pages_of_the_topic_are_on_topic(classifier):
    found = [classifier.classify(page("cheese", n)) for n in range(1000, 1040)]
    assert sum(one.on_topic for one in found) >= 36


def test_unseen_pages_of_other_topics_are_not(classifier):
    found = [classifier.classify(page("garden", n)) for n in range(1000, 1040)]
    assert sum(one.on_topic for one in found) <= 2


@pytest.mark.parametrize(
    ("kind", "category"), [("cheese", "Top/Food/Cheese"), ("garden", "Top/Home/Garden")]
)
def test_unseen_pages_are_likeliest_of_their_category(classifier, kind, category):
    found = [likeliest_category(classifier, page(kind, n)) for n in range(1000, 1040)]
    assert found.count(category) >= 36


@pytest.mark.parametrize(
    "empty",
    [
        Page("http://a.example/"),
        Page("http://a.example/", text="cheese brie curd"),
        Page("http://a.example/", text="xyzzy plugh " * 500),
        Page("http://a.example/", text="\x00\ud800 \ufffd" * 100),
    ],
)
def test_a_page_with_hardly_a_known_word_gets_the_prior(classifier, empty):
    expected = Classification(classifier.calibration.prior, on_topic=False, known=False)
    assert classifier.classify(empty) == expected


def test_a_longer_page_of_the_same_words_is_classified_nearly_the_same(classifier):
    short = page("cheese", 3000)
    tenfold = Page(short.url, title=short.title, text=f"{short.text} " * 10)
    near = classifier.classify(short).relevance
    assert classifier.classify(tenfold).relevance == pytest.approx(near, abs=0.15)


def test_title_and_headings_weigh_more_than_their_length(classifier):
    text = " ".join((page("cheese", 1).text, page("garden", 1).text))
    cheese = Page("http://a.example/", title="brie cheddar", headings=("gouda",), text=text)
    garden = Page("http://a.example/", title="tulip hedge", headings=("lawn",), text=text)
    assert classifier.classify(cheese).relevance > classifier.classify(garden).relevance + 0.1


def test_relevance_is_never_quite_sure(classifier):
    pure = Page("http://a.example/", text="brie cheddar curd rennet whey gouda rind " * 50)
    found = classifier.classify(pure)
    assert 0.9 < found.guiding_relevance < 1.0
    assert found.relevance < found.guiding_relevance


def test_text_scores_are_positive_and_negative(classifier):
    verdicts = classifier.score_texts(["brie and cheddar", "tulip hedge", "Contact", ""])
    assert verdicts[0] > 0.5
    assert verdicts[1] < -0.5
    assert abs(verdicts[2]) < 0.5
    assert verdicts[3] == 0.0


def test_unknown_words_score_zero(classifier):
    assert classifier.score_texts(["xyzzy plugh"]).tolist() == [0.0]
    with_unknown = classifier.score_texts(["brie xyzzy", "brie"])
    assert with_unknown[0] == with_unknown[1]


@given(texts=st.lists(st.text() | st.sampled_from(["brie", "tulip", "brie cheddar " * 90])))
def test_a_text_score_is_bounded(classifier, texts):
    assert np.all(np.abs(classifier.score_texts(texts)) <= MAX_TEXT_SCORE)


@given(text=st.text(), title=st.text())
def test_any_page_is_classified(classifier, text, title):
    found = classifier.classify(Page("http://a.example/", title=title, text=text))
    assert 0.0 < found.relevance < 1.0
