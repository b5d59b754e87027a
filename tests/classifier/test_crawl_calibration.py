"""Relevances are tempered for the pages of a crawl, and nothing changes sides."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from focused.classifier.calibration import (
    PIVOT_LOG_ODDS,
    TEMPERATURE,
    logit,
    temper,
    temper_relevance,
)
from focused.classifier.topic_classifier import LinearTopicClassifier, sigmoid
from focused.web.page import Classification, Page
from tests.support.made_up_topic import page, trained

KINDS = ("cheese", "garden")
relevances = st.floats(0.001, 0.999)  # the classifier gives no others


@pytest.fixture(scope="module")
def classifier(tmp_path_factory: pytest.TempPathFactory) -> LinearTopicClassifier:
    return trained(tmp_path_factory.mktemp("cheese")).classifier


@given(relevances, relevances)
def test_a_more_relevant_page_stays_more_relevant(one, other):
    low, high = sorted([one, other])
    assert temper_relevance(low) <= temper_relevance(high)
    if high - low > 1e-9:
        assert temper_relevance(low) < temper_relevance(high)


@given(relevances)
def test_the_untempered_relevance_follows_from_the_tempered_one(relevance):
    from_pivot = logit(temper_relevance(relevance)) - PIVOT_LOG_ODDS
    assert sigmoid(PIVOT_LOG_ODDS + TEMPERATURE * from_pivot) == pytest.approx(relevance)


@given(st.floats(-7, 7))
def test_log_odds_move_towards_the_pivot_and_not_past_it(log_odds):
    before, after = log_odds - PIVOT_LOG_ODDS, temper(log_odds) - PIVOT_LOG_ODDS
    assert abs(after) <= abs(before)
    assert before * after >= 0.0


@given(relevances, st.floats(0.01, 0.99))
def test_relevance_and_threshold_are_tempered_together(relevance, threshold):
    if relevance >= threshold:
        assert temper_relevance(relevance) >= temper_relevance(threshold)
    elif threshold - relevance > 1e-9:
        assert temper_relevance(relevance) < temper_relevance(threshold)


def test_what_is_on_topic_is_decided_before_tempering(classifier):
    before = classifier.calibration.threshold
    assert classifier.threshold == temper_relevance(before)
    for found in (classifier.classify(page(kind, n)) for kind in KINDS for n in range(20)):
        assert found.relevance == temper_relevance(found.guiding_relevance)
        assert found.on_topic == (found.guiding_relevance >= before)
        assert found.on_topic == (found.relevance >= classifier.threshold)


def test_a_page_that_is_not_classified_keeps_the_prior(classifier):
    found = classifier.classify(Page("http://a.example/"))
    assert found.relevance == found.guiding_relevance == classifier.calibration.prior


def test_a_classifier_that_does_not_temper_guides_by_its_relevance():
    assert Classification(0.3, on_topic=False).guiding_relevance == 0.3


def test_tempered_relevances_are_probabilities():
    ends = np.array([temper_relevance(sigmoid(side * 100)) for side in (-1, 1)])
    assert (ends > 0).all()
    assert (ends < 1).all()
