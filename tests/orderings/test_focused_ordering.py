"""Our own policy and its ablations: each leaves out what its name says, and nothing else."""

import random
from dataclasses import dataclass, fields

import numpy as np
import pytest
from msgspec.structs import replace

from focused.classifier.calibration import expit
from focused.crawl.policy import Policy
from focused.errors import ConfigurationError
from focused.frontier.queued_link import NO_EXPLORATION
from focused.link_scoring.apprentice import Apprentice
from focused.link_scoring.linear_model import load_link_prior
from focused.link_scoring.link_features import FEATURE_FAMILIES, FEATURE_INDEX, FEATURE_NAMES
from focused.link_scoring.protocols import OnlineLinkScorer, PageContext
from focused.orderings import PolicyInputs, find_policy, ordering_names
from focused.orderings.policy_names import ABLATION_PREFIX
from focused.web.page import Classification, Link, Page
from tests.support.queueing import queued
from tests.support.simple_learner import SimpleLearner
from tests.support.whale_models import WhaleClassifier, WhaleScorer

ABLATIONS = [name for name in ordering_names() if name.startswith(ABLATION_PREFIX)]
PRIOR = load_link_prior()
LINKS = [
    Link(
        f"http://h{n % 3}.test/{'deep/' * (n % 4)}{'whale' if n % 2 else 'trade'}-{n}",
        "a whale" if n % 5 < 2 else f"trade {n}",
        "whale of a context" if n % 3 == 0 else "bank",
        tag_path=f"ul/{n % 4}",
    )
    for n in range(60)
]


class MeaningfulWhaleClassifier(WhaleClassifier):
    """Gives texts of different length different meanings."""

    def score_meanings(self, texts):
        return np.array([float(len(text) % 3) for text in texts])


def made(name: str) -> Policy:
    classifier = MeaningfulWhaleClassifier()
    return find_policy(name)(PolicyInputs(classifier, Apprentice(classifier)))


def visit(relevance: float = 0.7, url: str = "http://h0.test/") -> PageContext:
    return PageContext(Page(url, links=tuple(LINKS)), Classification(relevance, relevance >= 0.5))


def taught(name: str, examples: int = 200) -> OnlineLinkScorer:
    """The policy's scorer after some pages of a crawl, the same for every policy."""
    scorer = made(name).scorer
    assert isinstance(scorer, OnlineLinkScorer)
    rng = random.Random(1)
    for n in range(examples):
        page = visit(rng.random(), f"http://h{n % 5}.test/{n}")
        (link,) = queued(scorer, page, [rng.choice(LINKS)])
        good = rng.random() < (0.8 if "whale" in link.anchor else 0.1)
        text = "whale in the sea" if good else "bank and bond"
        target = Page(link.url, text=text)
        scorer.learn(scorer.make_example(link, target, 0.9 if good else 0.1))
    return scorer


@dataclass(frozen=True)
class ScoreColumns:
    """Scores, rank scores and features of links, row i for link i."""

    scores: np.ndarray
    rank_scores: np.ndarray
    features: np.ndarray


def merged_scores(scorer: OnlineLinkScorer) -> ScoreColumns:
    """Waiting links merged with those of a page so that all features occur."""
    waiting = queued(scorer, visit(0.6, "http://h1.test/1"), LINKS[::2])
    before = [waiting[n // 2] if n % 2 == 0 else None for n in range(len(LINKS))]
    features = tuple(np.full(len(FEATURE_NAMES), 2.0))
    page = visit(0.4)
    merged = scorer.score_merged(
        PageContext(page.page, page.classification, 3, 0.4, features), LINKS, before
    )
    columns = zip(*((each.score, each.rank_score, each.features) for each in merged), strict=True)
    return ScoreColumns(*map(np.array, columns))


def by_prior(found: ScoreColumns, *left_out: str) -> np.ndarray:
    weights = PRIOR.weights.copy()
    weights[[FEATURE_INDEX[name] for name in left_out]] = 0.0
    return np.asarray(expit(PRIOR.bias + found.features @ weights))


def differing(one: Policy, other: Policy) -> set[str]:
    names = {each.name for each in fields(Policy)} - {"scorer", "name"}
    return {name for name in names if getattr(one, name) != getattr(other, name)}


def test_the_families_have_every_feature_once():
    assert sorted(name for family in FEATURE_FAMILIES.values() for name in family) == sorted(
        FEATURE_NAMES
    )


def test_focused_uses_the_live_crawls_apprentice():
    apprentice = Apprentice(WhaleClassifier())
    assert find_policy("focused")(PolicyInputs(WhaleClassifier(), apprentice)).scorer is apprentice


def test_a_custom_scorer_that_learns_gets_the_exploration_bonus():
    own = find_policy("focused")(PolicyInputs(WhaleClassifier(), SimpleLearner()))
    assert not differing(own, made("focused"))
    assert own.exploration.new_host_bonus > 0.0


def test_one_that_does_not_learn_orders_by_its_scores_alone():
    """Its scores lie in [0, 1]: a bonus in nats would dominate them."""
    own = find_policy("focused")(PolicyInputs(WhaleClassifier(), WhaleScorer()))
    assert own.exploration == NO_EXPLORATION
    assert own.worth_waiting_for < 0.5


@pytest.mark.parametrize("name", ABLATIONS)
def test_an_ablation_has_its_name_and_its_own_state(name):
    apprentice = Apprentice(WhaleClassifier())
    policy = find_policy(name)(PolicyInputs(WhaleClassifier(), apprentice))
    assert policy.name == name
    assert isinstance(policy.scorer, Apprentice)
    assert policy.scorer is not apprentice


@pytest.mark.parametrize("name", ABLATIONS)
def test_a_custom_scorer_has_no_ablations(name):
    with pytest.raises(ConfigurationError, match="WhaleScorer"):
        find_policy(name)(PolicyInputs(WhaleClassifier(), WhaleScorer()))


@pytest.mark.parametrize("name", ABLATIONS)
def test_but_for_exploration_an_ablation_is_another_scorer_and_no_more(name):
    found = differing(made(name), made("focused"))
    assert found == ({"exploration"} if name == "focused-without-exploration" else set())


def test_without_exploration_unknown_hosts_get_no_bonus():
    assert made("focused-without-exploration").exploration == NO_EXPLORATION
    one, other = (
        merged_scores(taught("focused-without-exploration")),
        merged_scores(taught("focused")),
    )
    assert np.array_equal(one.scores, other.scores)
    assert np.array_equal(one.rank_scores, other.rank_scores)


def test_the_pages_of_this_test_give_all_evidence_a_say():
    found = merged_scores(taught("focused")).features
    assert all(np.ptp(found[:, FEATURE_INDEX[name]]) for name in FEATURE_NAMES)


@pytest.mark.parametrize("family", FEATURE_FAMILIES)
def test_without_a_family_its_evidence_has_no_weight_and_all_other_as_much(family):
    found = merged_scores(
        taught(f"focused-without-{family}", examples=20)
    )  # too few to move weights
    assert found.scores == pytest.approx(by_prior(found, *FEATURE_FAMILIES[family]))
    ours = merged_scores(taught("focused", examples=20))
    assert np.array_equal(found.features, ours.features)
    assert ours.scores == pytest.approx(by_prior(ours))


@pytest.mark.parametrize("family", ["parents", "text", "url"])  # trained once, by the page
def test_a_family_that_is_left_out_does_not_come_back_by_learning(family):
    def louder(policy: str) -> tuple[float, float]:
        scorer = taught(policy)
        (link,) = queued(scorer, visit(), LINKS[:1])
        features = np.array(link.features)
        features[[FEATURE_INDEX[name] for name in FEATURE_FAMILIES[family]]] += 3.0
        more = replace(link, features=tuple(features.tolist()))
        first, second = scorer.rescore([link, more])
        return first.score, second.score

    before, after = louder(f"focused-without-{family}")
    assert before == after
    before, after = louder("focused")
    assert before != after


def test_what_is_left_learns_to_stand_in_for_a_family_that_is_left_out():
    """The online update must not explain by the family what is then scored without it."""
    scorer = made("focused-without-parents").scorer
    assert isinstance(scorer, Apprentice)
    rng = random.Random(2)
    for _ in range(400):
        strength = rng.choice([-3.0, 3.0])
        features = np.zeros(len(FEATURE_NAMES))
        features[[FEATURE_INDEX["parent"], FEATURE_INDEX["parents"], FEATURE_INDEX["context"]]] = (
            strength
        )
        (link,) = queued(scorer, visit(), LINKS[:1])
        link = replace(link, features=tuple(features.tolist()))
        scorer.learn(scorer.make_example(link, Page(link.url), 0.95 if strength > 0 else 0.05))

    def score(strength: float) -> float:
        features = np.zeros(len(FEATURE_NAMES))
        features[FEATURE_INDEX["context"]] = strength
        (link,) = queued(scorer, visit(), LINKS[:1])
        return scorer.rescore([replace(link, features=tuple(features.tolist()))])[0].score

    assert score(3.0) > 0.8
    assert score(-3.0) < 0.2


def test_without_a_prior_all_links_score_alike_until_the_first_update():
    assert len(set(merged_scores(taught("focused-without-prior", examples=0)).scores.tolist())) == 1
    assert len(set(merged_scores(taught("focused-without-prior")).scores.tolist())) > 10


def test_without_learning_the_priors_weights_stay_and_places_are_still_learned():
    frozen, ours = (merged_scores(taught(name)) for name in ("focused-without-learning", "focused"))
    assert frozen.scores == pytest.approx(by_prior(frozen))
    assert ours.scores != pytest.approx(by_prior(ours), abs=0.01)
    assert np.array_equal(frozen.features, ours.features)
    assert frozen.features[:, FEATURE_INDEX["siblings"]].any()


def test_without_tunnelling_the_priority_is_the_score():
    found, ours = (
        merged_scores(taught(name)) for name in ("focused-without-tunnelling", "focused")
    )
    assert np.array_equal(found.scores, ours.scores)
    assert found.rank_scores == pytest.approx(np.log(found.scores / (1.0 - found.scores)))
