"""How links of one place fared, held against the crawl."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from focused.learning import places as places_module
from focused.learning.places import Places, place_of

HERE, THERE = place_of("http://a.test/"), place_of("http://b.test/")
relevances = st.floats(0, 1)
means = st.floats(0.001, 0.999)


def taught(*relevance: float) -> Places:
    places = Places()
    for each in relevance:
        places.learn(HERE, each)
    return places


def test_a_place_never_met_says_nothing():
    assert taught(0.9).evidence(THERE, 0.1) == 0.0


def test_a_place_that_paid_better_than_the_crawl_speaks_for_its_links_and_one_worse_against():
    assert taught(0.9, 0.9).evidence(HERE, 0.3) > 0.5
    assert taught(0.1, 0.1).evidence(HERE, 0.6) < -0.5


def test_a_place_as_good_as_the_crawl_says_nothing():
    assert taught(0.25, 0.25, 0.25).evidence(HERE, 0.25) == pytest.approx(0.0)


def test_more_links_of_one_kind_say_more():
    said = [taught(*[0.9] * links).evidence(HERE, 0.2) for links in (1, 3, 10, 100)]
    assert said == sorted(said)
    assert said[0] < 1.0 < said[-1]


@given(st.lists(relevances, min_size=1), means)
def test_evidence_has_the_sign_of_what_came_and_is_finite(found, mean):
    said = taught(*found).evidence(HERE, mean)
    assert abs(said) < 20.0
    better = sum(found) / len(found) - mean
    assert said * better >= -1e-9


@given(st.lists(relevances), relevances, means)
def test_a_better_target_never_makes_its_place_worse(found, last, mean):
    lower, higher = taught(*found, last * 0.5), taught(*found, last)
    assert higher.evidence(HERE, mean) >= lower.evidence(HERE, mean)


def test_the_memory_is_bounded_and_the_newer_half_stays(monkeypatch):
    monkeypatch.setattr(places_module, "MAX_PLACES", 10)
    places = Places()
    for number in range(25):
        places.learn(number, 0.9)
        assert len(places.rows()) <= 10
    assert places.evidence(24, 0.1) > 0.0
    assert places.evidence(0, 0.1) == 0.0


def test_restored_from_its_rows_it_goes_on_as_if_nothing_had_been():
    places = taught(0.9, 0.2)
    again = Places(places.rows())
    for each in (places, again):
        each.learn(HERE, 0.7)
        each.learn(THERE, 0.1)
    assert again.rows() == places.rows()
    assert again.evidence(HERE, 0.3) == places.evidence(HERE, 0.3)


def test_what_is_learned_later_does_not_come_into_rows_taken_before():
    places = taught(0.9)
    Places(places.rows()).learn(HERE, 0.1)
    assert places.rows() == {HERE: (1, 0.9)}


@given(st.text(), st.text())
def test_a_places_number_tells_its_names_apart_whatever_they_hold(one, other):
    assert (place_of(one, "p") == place_of(other, "p")) is (one == other)
    assert 0 <= place_of(one + "\ud800") < 2**64
