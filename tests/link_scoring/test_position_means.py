"""Mean relevance of link positions relative to the crawl."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from focused.link_scoring.running_means import MAX_POSITIONS, PositionMeans, position_key

HERE, THERE = position_key("http://a.test/"), position_key("http://b.test/")
relevances = st.floats(0, 1)
means = st.floats(0.001, 0.999)


def taught(*relevance: float) -> PositionMeans:
    places = PositionMeans()
    for each in relevance:
        places.learn(HERE, each)
    return places


def test_an_unknown_position_has_feature_zero():
    assert taught(0.9).features([THERE], 0.1)[0] == 0.0


def test_a_position_above_the_mean_is_positive_and_below_negative():
    assert taught(0.9, 0.9).features([HERE], 0.3)[0] > 0.5
    assert taught(0.1, 0.1).features([HERE], 0.6)[0] < -0.5


def test_an_average_position_has_feature_zero():
    assert taught(0.25, 0.25, 0.25).features([HERE], 0.25)[0] == pytest.approx(0.0)


def test_more_links_give_a_stronger_feature():
    features = [taught(*[0.9] * links).features([HERE], 0.2)[0] for links in (1, 3, 10, 100)]
    assert features == sorted(features)
    assert features[0] < 1.0 < features[-1]


@given(st.lists(relevances, min_size=1), means)
def test_the_feature_is_finite_and_has_the_sign_of_the_difference(found, mean):
    feature = taught(*found).features([HERE], mean)[0]
    assert abs(feature) < 20.0
    better = sum(found) / len(found) - mean
    assert feature * better >= -1e-9


@given(st.lists(relevances), relevances, means)
def test_a_more_relevant_target_never_lowers_its_position(found, last, mean):
    lower, higher = taught(*found, last * 0.5), taught(*found, last)
    assert higher.features([HERE], mean)[0] >= lower.features([HERE], mean)[0]


def test_the_memory_is_bounded_and_the_newer_half_stays():
    places = PositionMeans()
    for number in range(MAX_POSITIONS + 1):
        places.learn(number, 0.9)
    assert len(places) == MAX_POSITIONS // 2 + 1
    youngest, oldest = places.features([MAX_POSITIONS, 0], 0.1)
    assert youngest > 0.0 == oldest


@given(st.text(), st.text())
def test_position_keys_distinguish_their_parts(one, other):
    assert (position_key(one, "p") == position_key(other, "p")) is (one == other)
    assert 0 <= position_key(one + "\ud800") < 2**64
