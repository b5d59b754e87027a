"""The apprentice: features in nats, scores as probabilities, lessons that change them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from focused.learning.apprentice import Apprentice
from focused.learning.features import FEATURE_NAMES, MAX_PARENT_LOG_ODDS, link_features
from focused.learning.link_words import LinkWords
from focused.learning.protocols import LearningScorer, Visit
from focused.web.page import Judgement, Link, Page

PAGE = Page("https://home.example/page")
UNSURE = Judgement(0.5, on_topic=True)
PLAIN = Link("https://home.example/other")


class KeywordJudge:
    """Two nats for each ``good``, minus two for each ``bad``."""

    threshold = 0.5

    def judge(self, page: Page) -> Judgement:
        return UNSURE

    def verdicts(self, texts):
        return np.array([2.0 * (t.count("good") - t.count("bad")) for t in texts], dtype=float)


@pytest.fixture
def apprentice():
    return Apprentice(KeywordJudge())


def row(link: Link, judgement: Judgement = UNSURE, evidence: tuple = ()) -> dict[str, float]:
    visit = Visit(PAGE, judgement, evidence=evidence)
    (values,) = link_features(KeywordJudge(), LinkWords(), visit, [link])
    return dict(zip(FEATURE_NAMES, values.tolist(), strict=True))


def test_a_link_that_shows_nothing_has_no_evidence():
    assert set(row(PLAIN).values()) == {0.0}


@pytest.mark.parametrize(
    ("change", "name", "value"),
    [
        ({"anchor": "good"}, "anchor", 2.0),
        ({"context": "bad"}, "context", -2.0),
        ({"url": "https://home.example/some-good-page"}, "url", 2.0),
        ({"url": "https://home.example/SomePage.goodThing"}, "url", 2.0),
        ({"url": "https://elsewhere.example/"}, "other_host", 1.0),
    ],
)
def test_each_feature_tells_its_own_thing(change, name, value):
    found = row(replace(PLAIN, **change))
    assert found.pop(name) == value
    assert set(found.values()) == {0.0}


@pytest.mark.parametrize(("relevance", "nats"), [(0.0, -4.0), (1.0, 4.0), (0.5, 0.0)])
def test_the_parents_relevance_is_log_odds_within_bounds(relevance, nats):
    found = row(PLAIN, Judgement(relevance, on_topic=False))
    assert found["parent"] == pytest.approx(nats)
    assert abs(found["parent"]) <= MAX_PARENT_LOG_ODDS + 1e-9


@pytest.mark.parametrize("part", ["anchor", "context", "url"])
def test_words_of_the_topic_raise_the_score(apprentice, part):
    good, bad = (replace(PLAIN, **{part: f"https://home.example/{w}"}) for w in ("good", "bad"))
    scores = apprentice.score(Visit(PAGE, UNSURE), [good, PLAIN, bad]).scores
    assert scores[0] > scores[1] > scores[2]


def test_links_of_a_relevant_page_score_higher(apprentice):
    low, high = (
        apprentice.score(Visit(PAGE, Judgement(relevance, on_topic=False)), [PLAIN]).scores[0]
        for relevance in (0.1, 0.9)
    )
    assert high > low


def test_a_page_without_links_has_no_scores(apprentice):
    scored = apprentice.score(Visit(PAGE, UNSURE), [])
    assert scored.scores.shape == (0,)
    assert scored.features.shape == (0, len(apprentice.feature_names))


@given(
    relevance=st.floats(0, 1),
    links=st.lists(
        st.builds(
            Link,
            url=st.sampled_from(["https://home.example/a", "http://b.example/%ZZ%ff?x=Å"]),
            anchor=st.text(),
            context=st.sampled_from(["", "good " * 50, "bad " * 50]),
            nofollow=st.booleans(),
        )
    ),
)
def test_scores_are_probabilities_and_do_not_depend_on_neighbours(relevance, links):
    apprentice = Apprentice(KeywordJudge())
    judgement = Judgement(relevance, on_topic=False)
    scored = apprentice.score(Visit(PAGE, judgement), links)
    assert scored.features.shape == (len(links), len(apprentice.feature_names))
    assert np.all((scored.scores >= 0) & (scored.scores <= 1))
    alone = [apprentice.score(Visit(PAGE, judgement), [link]).scores[0] for link in links]
    assert scored.scores == pytest.approx(alone)


def test_half_of_what_a_page_inherited_goes_on_through_pages_off_topic():
    off_topic = Judgement(0.1, on_topic=False)
    from_good = row(PLAIN, Judgement(0.9, on_topic=True))
    one_step = row(PLAIN, off_topic, evidence=tuple(from_good.values()))
    two_steps = row(PLAIN, off_topic, evidence=tuple(one_step.values()))
    odds = [each["inherited"] for each in (from_good, one_step, two_steps)]
    assert [1 / (1 + np.exp(-each)) for each in odds] == pytest.approx([0.9, 0.45, 0.225])


def test_it_is_a_scorer_that_learns(apprentice):
    assert isinstance(apprentice, LearningScorer)


def test_words_of_links_that_led_to_relevant_pages_raise_a_score(apprentice):
    harpoon, ledger = (replace(PLAIN, anchor=anchor) for anchor in ("harpoon", "ledger"))
    for _ in range(5):
        apprentice.learn("https://other.example/1", "harpoon", 0.9)
        apprentice.learn("https://other.example/2", "ledger", 0.1)
    scores = apprentice.score(Visit(PAGE, UNSURE), [harpoon, PLAIN, ledger]).scores
    assert scores[0] > scores[1] > scores[2]


def test_a_link_scored_again_is_scored_as_if_it_had_just_been_found(apprentice):
    link = replace(PLAIN, anchor="good harpoon")
    old = apprentice.score(Visit(PAGE, UNSURE), [link])
    again = apprentice.rescore(link.url, link.anchor, tuple(old.features[0]))
    assert again[0] == pytest.approx(old.scores[0])
    for _ in range(5):
        apprentice.learn("https://other.example/1", "harpoon", 0.0)
        apprentice.learn("https://other.example/2", "else", 0.9)
    new = apprentice.score(Visit(PAGE, UNSURE), [link])
    again = apprentice.rescore(link.url, link.anchor, tuple(old.features[0]))
    assert again[0] == pytest.approx(new.scores[0])
    assert again[0] < old.scores[0]
    assert again[1] == pytest.approx(tuple(new.features[0]))
