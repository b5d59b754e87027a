"""Our own policy, and its ablations: each leaves out what its name says, and nothing else."""

from __future__ import annotations

import random
from dataclasses import fields

import numpy as np
import pytest
from msgspec.structs import replace

from focused.crawl.policy import Policy
from focused.errors import ConfigurationError
from focused.frontier.exploration import NONE
from focused.learning.apprentice import Apprentice
from focused.learning.calibration import expit
from focused.learning.evidence import COLUMN, FEATURE_NAMES
from focused.learning.link_prior import load_prior
from focused.learning.protocols import JoinedScores, LearningScorer, Visit
from focused.policies import POLICIES, Aids
from focused.policies.apprenticed import ABLATIONS, FAMILIES
from focused.web.page import Judgement, Link, Page
from tests.support.keyword_guide import WhaleJudge, WhaleScorer
from tests.support.pupil import Pupil
from tests.support.queueing import queued

PRIOR = load_prior()
LINKS = [
    Link(
        f"http://h{n % 3}.test/{'deep/' * (n % 4)}{'whale' if n % 2 else 'trade'}-{n}",
        "a whale" if n % 5 < 2 else f"trade {n}",
        "whale of a context" if n % 3 == 0 else "bank",
        tag_path=f"ul/{n % 4}",
        navigation=n % 7 == 0,
    )
    for n in range(60)
]


def made(name: str) -> Policy:
    return POLICIES[name](Aids(WhaleJudge(), Apprentice(WhaleJudge())))


def visit(relevance: float = 0.7, url: str = "http://h0.test/") -> Visit:
    return Visit(Page(url, links=tuple(LINKS)), Judgement(relevance, relevance >= 0.5))


def taught(name: str, lessons: int = 200) -> LearningScorer:
    """The policy's scorer after some pages of a crawl, the same for every policy."""
    scorer = made(name).scorer
    assert isinstance(scorer, LearningScorer)
    rng = random.Random(1)
    for n in range(lessons):
        page = visit(rng.random(), f"http://h{n % 5}.test/{n}")
        (link,) = queued(scorer, page, [rng.choice(LINKS)])
        good = rng.random() < (0.8 if "whale" in link.anchor else 0.1)
        text = "whale in the sea" if good else "bank and bond"
        target = Page(link.url, text=text)
        scorer.learn(scorer.lesson(link, target, 0.9 if good else 0.1))
    return scorer


def told(scorer: LearningScorer) -> JoinedScores:
    """Links that wait, joined with those of a page in a way that all evidence is there."""
    waiting = queued(scorer, visit(0.6, "http://h1.test/1"), LINKS[::2])
    before = [waiting[n // 2] if n % 2 == 0 else None for n in range(len(LINKS))]
    evidence = tuple(np.full(len(FEATURE_NAMES), 2.0))
    page = visit(0.4)
    return scorer.score_joined(Visit(page.page, page.judgement, 3, 0.4, evidence), LINKS, before)


def by_prior(found: JoinedScores, *left_out: str) -> np.ndarray:
    weights = PRIOR.weights.copy()
    weights[[COLUMN[name] for name in left_out]] = 0.0
    return np.asarray(expit(PRIOR.bias + found.features @ weights))


def differing(one: Policy, other: Policy) -> set[str]:
    names = {each.name for each in fields(Policy)} - {"scorer", "name"}
    return {name for name in names if getattr(one, name) != getattr(other, name)}


def test_the_families_have_every_feature_once():
    assert sorted(name for family in FAMILIES.values() for name in family) == sorted(FEATURE_NAMES)


def test_ours_is_scored_by_the_live_crawls_own_apprentice():
    apprentice = Apprentice(WhaleJudge())
    assert POLICIES["focused"](Aids(WhaleJudge(), apprentice)).scorer is apprentice


def test_a_scorer_of_ones_own_that_learns_is_explored_with_as_ours_is():
    own = POLICIES["focused"](Aids(WhaleJudge(), Pupil()))
    assert not differing(own, made("focused"))
    assert own.exploration.unknown > 0.0


def test_one_that_does_not_learn_orders_by_its_scores_alone():
    """Its scores lie in [0, 1]: a bonus in nats would drown them."""
    own = POLICIES["focused"](Aids(WhaleJudge(), WhaleScorer()))
    assert own.exploration == NONE
    assert own.worth_waiting_for < 0.5


@pytest.mark.parametrize("name", ABLATIONS)
def test_an_ablation_goes_by_its_name_and_learns_on_its_own(name):
    apprentice = Apprentice(WhaleJudge())
    policy = POLICIES[name](Aids(WhaleJudge(), apprentice))
    assert policy.name == name
    assert isinstance(policy.scorer, Apprentice)
    assert policy.scorer is not apprentice


@pytest.mark.parametrize("name", ABLATIONS)
def test_where_a_users_own_scorer_guides_the_crawl_there_is_nothing_to_take_apart(name):
    with pytest.raises(ConfigurationError, match="WhaleScorer"):
        POLICIES[name](Aids(WhaleJudge(), WhaleScorer()))


@pytest.mark.parametrize("name", ABLATIONS)
def test_but_for_exploration_an_ablation_is_another_scorer_and_no_more(name):
    found = differing(made(name), made("focused"))
    assert found == ({"exploration"} if name == "focused-without-exploration" else set())


def test_without_exploration_nothing_is_hoped_of_unknown_hosts():
    assert made("focused-without-exploration").exploration == NONE
    one, other = told(taught("focused-without-exploration")), told(taught("focused"))
    assert np.array_equal(one.scores, other.scores)
    assert np.array_equal(one.worth, other.worth)


def test_the_pages_of_this_test_give_all_evidence_a_say():
    found = told(taught("focused")).features
    alike = {name for name in FEATURE_NAMES if not np.ptp(found[:, COLUMN[name]])}
    assert alike <= {"out_degree"}  # a page tells the same of all its links
    assert found[0, COLUMN["out_degree"]] > 0.0


@pytest.mark.parametrize("family", FAMILIES)
def test_without_a_family_its_evidence_has_no_weight_and_all_other_as_much(family):
    found = told(taught(f"focused-without-{family}", lessons=20))  # too few to move weights
    assert found.scores == pytest.approx(by_prior(found, *FAMILIES[family]))
    ours = told(taught("focused", lessons=20))
    assert np.array_equal(found.features, ours.features)
    assert ours.scores == pytest.approx(by_prior(ours))


@pytest.mark.parametrize("family", ["parents", "text", "url", "shape"])  # told once, by the page
def test_a_family_that_is_left_out_does_not_come_back_by_learning(family):
    def louder(policy: str) -> tuple[float, float]:
        scorer = taught(policy)
        (link,) = queued(scorer, visit(), LINKS[:1])
        evidence = np.array(link.evidence)
        evidence[[COLUMN[name] for name in FAMILIES[family]]] += 3.0
        more = replace(link, evidence=tuple(evidence.tolist()))
        first, second = scorer.rescore([link, more])
        return first.score, second.score

    before, after = louder(f"focused-without-{family}")
    assert before == after
    before, after = louder("focused")
    assert before != after


def test_what_is_left_learns_to_stand_in_for_a_family_that_is_left_out():
    """The correction must not explain by the family what is then scored without it."""
    scorer = made("focused-without-parents").scorer
    assert isinstance(scorer, Apprentice)
    rng = random.Random(2)
    for _ in range(400):
        strength = rng.choice([-3.0, 3.0])
        evidence = np.zeros(len(FEATURE_NAMES))
        evidence[[COLUMN["parent"], COLUMN["parents"], COLUMN["context"]]] = strength
        (link,) = queued(scorer, visit(), LINKS[:1])
        link = replace(link, evidence=tuple(evidence.tolist()))
        scorer.learn(scorer.lesson(link, Page(link.url), 0.95 if strength > 0 else 0.05))

    def score(strength: float) -> float:
        evidence = np.zeros(len(FEATURE_NAMES))
        evidence[COLUMN["context"]] = strength
        (link,) = queued(scorer, visit(), LINKS[:1])
        return scorer.rescore([replace(link, evidence=tuple(evidence.tolist()))])[0].score

    assert score(3.0) > 0.8
    assert score(-3.0) < 0.2


def test_without_a_prior_all_links_are_alike_until_the_crawl_teaches():
    assert len(set(told(taught("focused-without-prior", lessons=0)).scores.tolist())) == 1
    assert len(set(told(taught("focused-without-prior")).scores.tolist())) > 10


def test_without_learning_the_priors_weights_stay_and_words_are_still_learned():
    frozen, ours = (told(taught(name)) for name in ("focused-without-learning", "focused"))
    assert frozen.scores == pytest.approx(by_prior(frozen))
    assert ours.scores != pytest.approx(by_prior(ours), abs=0.01)
    assert np.array_equal(frozen.features, ours.features)
    assert frozen.features[:, COLUMN["anchor_words"]].any()


def test_without_tunnelling_links_are_worth_what_they_are_scored():
    found, ours = (told(taught(name)) for name in ("focused-without-tunnelling", "focused"))
    assert np.array_equal(found.scores, ours.scores)
    assert found.worth == pytest.approx(np.log(found.scores / (1.0 - found.scores)))
