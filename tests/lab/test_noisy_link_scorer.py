"""Noisy order: links are sampled by their odds, each with fixed noise."""

import math
from typing import Any

import numpy as np
import pytest
from link_log import STRAY_SHARE, NoisyLinkScorer

from focused.frontier.queued_link import QueuedLink, link_key
from focused.link_scoring.apprentice import Apprentice
from focused.link_scoring.linear_model import load_link_prior
from focused.link_scoring.protocols import OnlineLinkScorer, PageContext
from focused.web.page import Classification, Link, Page
from tests.support.whale_models import WhaleClassifier

URLS = [f"http://a.test/whales/{n}" for n in range(200)]
LINKS = [Link(url, anchor=f"whale {n}") for n, url in enumerate(URLS)]
VISIT = PageContext(Page("http://a.test/"), Classification(0.8, on_topic=True), 0, 0.5, ())


def waiting(url: str, features: Any) -> QueuedLink:
    return QueuedLink(
        link_key(url), url, "a.test", 0.0, 0.5, 1, "http://a.test/", "", tuple(features), 0.0
    )


def apprentice() -> Apprentice:
    return Apprentice(WhaleClassifier(), load_link_prior(), depth_penalty=0.0)


def test_scores_and_features_are_unchanged_and_rank_scores_noisy():
    own = apprentice().score_merged(VISIT, LINKS, [None] * len(LINKS))
    noised = NoisyLinkScorer(apprentice(), 1).score_merged(VISIT, LINKS, [None] * len(LINKS))
    for one, other in zip(noised, own, strict=True):
        assert (one.score, one.features) == (other.score, other.features)
        assert one.rank_score != other.rank_score


def test_a_link_has_the_same_noise_however_often_it_is_scored():
    scorer = NoisyLinkScorer(apprentice(), 1)
    found = scorer.score_merged(VISIT, LINKS[:3], [None] * 3)
    alone = scorer.score_merged(VISIT, LINKS[2:3], [None])
    again = scorer.rescore([waiting(URLS[2], found[2].features)])[0]
    assert found[2].rank_score == alone[0].rank_score == pytest.approx(again.rank_score)


def test_another_seed_gives_other_noise():
    one, other = (
        NoisyLinkScorer(apprentice(), seed).score_merged(VISIT, LINKS, [None] * len(LINKS))
        for seed in (1, 2)
    )
    pairs = zip(one, other, strict=True)
    assert all(each.rank_score != another.rank_score for each, another in pairs)


def test_the_best_of_two_is_sampled_in_proportion_to_their_odds_except_strays():
    ours = apprentice()
    rows = np.zeros((2, len(ours.feature_names)))
    rows[0, ours.feature_names.index("url")] = 4.0
    links = [waiting(url, row) for url, row in zip(URLS, rows, strict=False)]
    better, worse = (each.rank_score for each in ours.rescore(links))
    draws = 4_000
    won = 0
    for seed in range(draws):
        first, second = (each.rank_score for each in NoisyLinkScorer(ours, seed).rescore(links))
        won += first > second

    def chance(nats: float) -> float:
        return 1 / (1 + math.exp(-nats))

    # A stray link has a rank_score of -2 nats, whatever its features.
    expected = (
        (1 - STRAY_SHARE) ** 2 * chance(better - worse)
        + STRAY_SHARE * (1 - STRAY_SHARE) * (chance(-2 - worse) + chance(better + 2))
        + STRAY_SHARE**2 / 2
    )
    assert won / draws == pytest.approx(expected, abs=0.03)
    assert expected > 0.55


def test_it_teaches_and_restores_the_scorer_it_stands_for():
    ours = apprentice()
    scorer = NoisyLinkScorer(ours, 1)
    assert isinstance(scorer, OnlineLinkScorer)
    before = ours.state()
    link = waiting(URLS[0], [0.0] * len(ours.feature_names))
    scorer.learn(scorer.make_example(link, Page(URLS[0], text="whale"), 0.9))
    assert scorer.state() == ours.state() != before
    scorer.restore(before)
    assert ours.state() == before
