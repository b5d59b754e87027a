"""Mean relevance of link positions relative to the crawl."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from focused.link_scoring.position_means import MAX_POSITIONS, PositionMeans, position_key

HERE, THERE = position_key("http://a.test/"), position_key("http://b.test/")
relevances = st.floats(0, 1)


def taught(*relevance: float, elsewhere: Sequence[float] = ()) -> PositionMeans:
    places = PositionMeans()
    for each in relevance:
        places.learn(HERE, each)
    for each in elsewhere:
        places.learn(THERE, each)
    return places


def feature(places: PositionMeans) -> float:
    return places.features([HERE])[0]


def test_an_unknown_position_has_feature_zero():
    assert feature(taught(elsewhere=[0.9])) == 0.0


def test_a_position_above_the_mean_is_positive_and_below_negative():
    assert feature(taught(0.9, 0.9, elsewhere=[0.2] * 20)) > 0.5
    assert feature(taught(0.1, 0.1, elsewhere=[0.8] * 20)) < -0.5


def test_an_average_position_has_feature_zero():
    assert feature(taught(0.25, 0.25, elsewhere=[0.25] * 1_000)) == pytest.approx(0.0, abs=0.01)


def test_more_links_give_a_stronger_feature():
    features = [feature(taught(*[0.9] * links, elsewhere=[0.2] * 999)) for links in (1, 3, 10, 100)]
    assert features == sorted(features)
    assert features[0] < 1.0 < features[-1]


@given(st.lists(relevances, min_size=1), st.lists(relevances))
def test_the_feature_is_finite_and_has_the_sign_of_the_difference(found, elsewhere):
    value = feature(taught(*found, elsewhere=elsewhere))
    assert abs(value) < 20.0
    mean = (sum(found) + sum(elsewhere) + 0.5) / (len(found) + len(elsewhere) + 1.0)
    assert value * (sum(found) / len(found) - mean) >= -1e-9


@given(st.lists(relevances), relevances)
def test_a_more_relevant_target_never_lowers_its_position(found, last):
    lower, higher = (taught(*found, each, elsewhere=[0.3] * 1_000) for each in (last / 2, last))
    assert feature(higher) >= feature(lower) - 1e-9


def test_the_memory_is_bounded_and_the_newer_half_stays():
    places = PositionMeans()
    for number in range(MAX_POSITIONS + 1):
        places.learn(number, 0.1 if number < MAX_POSITIONS else 0.9)
    assert len(places) == MAX_POSITIONS // 2 + 1
    youngest, oldest = places.features([MAX_POSITIONS, 0])
    assert youngest > 0.0 == oldest


@given(st.text(), st.text())
def test_position_keys_distinguish_their_parts(one, other):
    assert (position_key(one, "p") == position_key(other, "p")) is (one == other)
    assert 0 <= position_key(one + "\ud800") < 2**64
