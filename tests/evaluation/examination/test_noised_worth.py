"""A noised order: links drawn by their odds, each with one lot."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from focused.evaluation.examination.noised_worth import STRAYS, NoisedWorth
from focused.frontier.queued import QueuedLink, link_key
from focused.learning.apprentice import Apprentice
from focused.learning.link_prior import load_prior
from focused.learning.protocols import LearningScorer, Visit
from focused.web.page import Judgement, Link, Page
from tests.support.keyword_guide import WhaleJudge

URLS = [f"http://a.test/whales/{n}" for n in range(200)]
LINKS = [Link(url, anchor=f"whale {n}") for n, url in enumerate(URLS)]
VISIT = Visit(Page("http://a.test/"), Judgement(0.8, on_topic=True), 0, 0.5, ())


def waiting(url: str, evidence: Any) -> QueuedLink:
    return QueuedLink(
        link_key(url), url, "a.test", 0.0, 0.5, 1, "http://a.test/", "", tuple(evidence), 0.0
    )


def apprentice() -> Apprentice:
    return Apprentice(WhaleJudge(), load_prior(), rootward=0.0)


def test_scores_and_evidence_are_the_scorer_s_own_and_worths_are_not():
    own = apprentice().score_joined(VISIT, LINKS, [None] * len(LINKS))
    noised = NoisedWorth(apprentice(), 1).score_joined(VISIT, LINKS, [None] * len(LINKS))
    assert np.array_equal(noised.scores, own.scores)
    assert np.array_equal(noised.features, own.features)
    assert (noised.worth != own.worth).all()


def test_a_link_has_one_lot_however_often_it_is_found_and_scored():
    scorer = NoisedWorth(apprentice(), 1)
    found = scorer.score_joined(VISIT, LINKS[:3], [None] * 3)
    alone = scorer.score_joined(VISIT, LINKS[2:3], [None])
    again = scorer.rescore([waiting(URLS[2], found.features[2])])[0]
    assert found.worth[2] == alone.worth[0] == pytest.approx(again.worth)


def test_another_seed_draws_other_lots():
    one, other = (
        NoisedWorth(apprentice(), seed).score_joined(VISIT, LINKS, [None] * len(LINKS)).worth
        for seed in (1, 2)
    )
    assert (one != other).all()


def test_the_best_of_two_is_drawn_in_proportion_to_their_odds_but_for_strays():
    ours = apprentice()
    rows = np.zeros((2, len(ours.feature_names)))
    rows[0, ours.feature_names.index("url")] = 2.0
    links = [waiting(url, row) for url, row in zip(URLS, rows, strict=False)]
    better, worse = (each.worth for each in ours.rescore(links))
    draws = 4_000
    won = 0
    for seed in range(draws):
        first, second = (each.worth for each in NoisedWorth(ours, seed).rescore(links))
        won += first > second

    def chance(nats: float) -> float:
        return 1 / (1 + math.exp(-nats))

    # A stray is worth -2 nats, whatever speaks for it.
    expected = (
        (1 - STRAYS) ** 2 * chance(better - worse)
        + STRAYS * (1 - STRAYS) * (chance(-2 - worse) + chance(better + 2))
        + STRAYS**2 / 2
    )
    assert won / draws == pytest.approx(expected, abs=0.03)
    assert expected > 0.55


def test_it_teaches_and_restores_the_scorer_it_stands_for():
    ours = apprentice()
    scorer = NoisedWorth(ours, 1)
    assert isinstance(scorer, LearningScorer)
    before = ours.state()
    link = waiting(URLS[0], [0.0] * len(ours.feature_names))
    scorer.learn(scorer.lesson(link, Page(URLS[0], text="whale"), 0.9))
    assert scorer.state() == ours.state() != before
    scorer.restore(before)
    assert ours.state() == before
