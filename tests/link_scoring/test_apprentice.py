"""The apprentice scores links of one page and of several pages."""

from collections.abc import Sequence

import numpy as np
import pytest
from msgspec.structs import replace

from focused.classifier.calibration import expit
from focused.classifier.topic_classifier import SwappableClassifier
from focused.link_scoring.apprentice import Apprentice
from focused.link_scoring.linear_model import DEFAULT_PRIOR
from focused.link_scoring.link_features import FEATURE_INDEX, FEATURE_NAMES
from focused.link_scoring.protocols import PageContext
from focused.web.page import Link
from tests.link_scoring.apprentices import (
    LINKS,
    PLAIN,
    PRIOR,
    KeywordClassifier,
    named_features,
    new_apprentice,
    seen,
)
from tests.support.queueing import queued


def features(link: Link, visit: PageContext | None = None) -> dict[str, float]:
    return named_features(new_apprentice().score(visit or seen(), [link]).features[0])


# What is known of a link


def test_a_bare_link_on_an_uninformative_page_counts_one_inlink():
    assert features(PLAIN) == {"in_links": 1.0}


@pytest.mark.parametrize(
    ("change", "name", "value"),
    [
        ({"anchor": "good"}, "anchor", 2.0),
        ({"context": "bad"}, "context", -2.0),
        ({"url": "https://home.example/some-good-page"}, "url", 2.0),
        ({"url": "https://home.example/SomePage.goodThing"}, "url", 2.0),
    ],
)
def test_each_part_of_a_link_sets_its_own_feature(change, name, value):
    assert features(replace(PLAIN, **change)) == {"in_links": 1.0, name: value}


@pytest.mark.parametrize(("relevance", "nats"), [(0.0, -4.0), (1.0, 4.0)])
def test_the_page_sets_the_relevance_of_the_parent(relevance, nats):
    found = features(PLAIN, seen(relevance))
    assert found["parent"] == found["parents"] == pytest.approx(nats)


def test_links_since_the_last_page_on_topic_are_counted_along_the_way():
    off_topic = [seen(0.1), seen(0.1), seen(0.1)]
    found = features(PLAIN, seen(0.9))
    told_since = [found.get("since", 0.0)]
    for visit in off_topic:
        row = tuple(found.get(name, 0.0) for name in FEATURE_NAMES)
        found = features(PLAIN, PageContext(visit.page, visit.classification, features=row))
        told_since.append(found["since"])
    assert told_since == [0.0, 1.0, 2.0, 3.0]


# What makes the score


def test_before_any_example_the_score_is_that_of_the_prior(apprentice):
    scored = apprentice.score(seen(0.8), LINKS)
    assert scored.scores == pytest.approx(expit(PRIOR.bias + scored.features @ PRIOR.weights))


def test_rank_scores_of_links_of_one_folder_order_as_their_scores(apprentice):
    same_folder = [link for link in LINKS if "whale" in link.url]
    same_folder = [replace(link, anchor="good " * n) for n, link in enumerate(same_folder)]
    found = apprentice.score_merged(seen(), same_folder, [None] * 5)
    ranks, scores = [each.rank_score for each in found], [each.score for each in found]
    assert np.argsort(ranks).tolist() == np.argsort(scores).tolist() == [*range(5)]


def test_without_a_prior_of_ones_own_the_shipped_one_is_taken():
    assert Apprentice(KeywordClassifier()).prior.name == DEFAULT_PRIOR


@pytest.mark.parametrize("name", ["anchor", "parent"])
def test_an_ignored_feature_is_reported_and_has_no_weight(name):
    blind = new_apprentice(without=[name])
    loud = replace(PLAIN, anchor="good good")
    found = blind.score(seen(0.9), [loud])
    assert found.features[0, FEATURE_INDEX[name]] > 1.0
    found.features[0, FEATURE_INDEX[name]] = 0.0
    assert found.scores == pytest.approx(expit(PRIOR.bias + found.features @ PRIOR.weights))


# What several pages tell of one target


def test_a_less_relevant_page_lowers_the_score_and_keeps_the_best_inlink(apprentice):
    (one,) = queued(apprentice, seen(0.9), [replace(PLAIN, anchor="good", tag_path="p/a")])
    poor = replace(PLAIN, anchor="else", tag_path="ul/a")
    (both,) = queued(apprentice, seen(0.1, "https://b.example/"), [poor], [one])
    assert (both.anchor, both.parent, both.tag_path_key) == (
        one.anchor,
        one.parent,
        one.tag_path_key,
    )
    assert both.score < one.score


def test_a_more_relevant_page_raises_the_score_and_becomes_the_best_inlink(apprentice):
    (one,) = queued(apprentice, seen(0.1), [replace(PLAIN, anchor="else", tag_path="ul/a")])
    better = replace(PLAIN, anchor="more", tag_path="p/a")
    (both,) = queued(apprentice, seen(0.9, "https://b.example/"), [better], [one])
    assert (both.anchor, both.parent) == ("more", "https://b.example/")
    assert both.tag_path_key != one.tag_path_key
    assert both.score > one.score


@pytest.mark.parametrize("number", [1e9, -1e9, np.inf, -np.inf, np.nan])
def test_any_number_of_a_classifier_of_ones_own_gives_a_score(number):
    class Odd(KeywordClassifier):
        def score_texts(self, texts: Sequence[str]) -> np.ndarray:
            return np.full(len(texts), number)

    apprentice = Apprentice(Odd(), PRIOR)
    waiting = queued(apprentice, seen(), LINKS)
    apprentice.classifier_swapped(waiting[0].found_at)
    for found in (*waiting, *apprentice.rescore(waiting)):
        assert 0.0 < found.score < 1.0
        assert np.isfinite(found.features).all()


@pytest.mark.parametrize("number", [1e6, -1e300, np.inf, np.nan])
def test_impossible_features_of_another_crawl_give_a_score(apprentice, number):
    (link,) = queued(apprentice, seen(), [PLAIN])
    (found,) = apprentice.rescore([replace(link, features=(number, *link.features[1:]))])
    assert 0.0 < found.score < 1.0
    assert np.isfinite(found.rank_score)


# The classifier was replaced


def test_an_earlier_swap_that_is_reported_later_changes_nothing():
    """Crawls that share a scorer report theirs in any order: those of a restored one are old."""
    classifier = KeywordClassifier()
    learner = Apprentice(classifier, PRIOR)
    (link,) = queued(learner, seen(), [replace(PLAIN, anchor="good")])
    outdated = replace(link, found_at=15.0)
    learner.classifier_swapped(20.0)
    learner.classifier_swapped(10.0)
    classifier.asked.clear()
    learner.rescore([outdated])
    assert "good" in classifier.asked


# Meaning


class MeaningClassifier(KeywordClassifier):
    """Rates by meaning alone: three nats for each ``melody``."""

    def score_meanings(self, texts):
        return np.array([3.0 * text.count("melody") for text in texts])


def test_anchor_context_and_url_are_rated_by_their_meaning():
    link = Link("https://home.example/melody", "melody", "melody and melody")
    features = named_features(
        queued(Apprentice(MeaningClassifier(), PRIOR), seen(), [link])[0].features
    )
    assert features["anchor_meaning"] == 3.0
    assert features["context_meaning"] == 6.0
    assert features["url_meaning"] == 3.0
    assert not {"anchor", "url", "context"} & features.keys()


def test_a_classifier_that_knows_no_meaning_gives_none():
    (found,) = queued(
        Apprentice(KeywordClassifier(), PRIOR), seen(), [replace(PLAIN, anchor="good")]
    )
    features = named_features(found.features)
    assert features["anchor"] == 2.0
    assert not {"anchor_meaning", "url_meaning"} & features.keys()


def test_a_new_classifier_rates_the_meaning_of_queued_links_again():
    swappable = SwappableClassifier(KeywordClassifier())
    learner = Apprentice(swappable, PRIOR)
    (link,) = queued(learner, seen(), [replace(PLAIN, anchor="melody")])
    swappable.swap(MeaningClassifier(), "new")
    learner.classifier_swapped(link.found_at)
    (again,) = learner.rescore([link])
    assert named_features(again.features)["anchor_meaning"] == 3.0
