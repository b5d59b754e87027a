"""What every scorer of links must keep; those of the policies: test_every_policy.py."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from focused.learning.apprentice import Apprentice
from focused.learning.own_estimators import EstimatorScorer
from focused.learning.protocols import LinkScorer, Visit
from focused.learning.uninformed import UninformedScorer
from focused.web.page import Judgement, Link, Page
from tests.support.keyword_guide import WhaleJudge, WhaleScorer

PAGE = Page("http://a.test/")


def boosted() -> LinkScorer:
    """Fitted on what anchor and parent are worth, by the features of another scorer."""
    rng = np.random.default_rng(1)
    rows = rng.random((200, 2)).round(1)
    good = rows.sum(axis=1) > 1.0
    return EstimatorScorer.over(HistGradientBoostingClassifier().fit(rows, good), WhaleScorer())


def own_features() -> LinkScorer:
    """Fitted on a feature of one's own."""
    lengths = np.arange(1.0, 41.0)[:, None]
    short = LogisticRegression().fit(lengths, lengths[:, 0] < 20)
    return EstimatorScorer(
        short, lambda visit, links: np.array([[float(len(one.url))] for one in links]), ["length"]
    )


SCORERS: dict[str, Callable[[], LinkScorer]] = {
    "apprentice": lambda: Apprentice(WhaleJudge()),
    "own estimator over another's features": boosted,
    "own estimator over own features": own_features,
    "uninformed": UninformedScorer,
    "keyword": WhaleScorer,
}


@pytest.fixture(scope="module")
def scorers() -> dict[str, LinkScorer]:
    return {name: make() for name, make in SCORERS.items()}


@pytest.fixture(params=SCORERS)
def scorer(request, scorers) -> LinkScorer:
    return scorers[request.param]


def links(count: int) -> list[Link]:
    return [Link(f"http://h{n % 3}.test/{n}", anchor=f"whale {n}" * (n % 2)) for n in range(count)]


def visit(scorer: LinkScorer, relevance: float = 0.9) -> Visit:
    evidence = (0.0,) * len(scorer.feature_names)
    return Visit(PAGE, Judgement(relevance, relevance >= 0.5), 2, 0.4, evidence)


@pytest.mark.parametrize("count", [0, 1, 50])
@pytest.mark.parametrize("relevance", [0.0, 0.4, 1.0])
def test_scores_are_probabilities_one_a_link(scorer, count, relevance):
    found = scorer.score(visit(scorer, relevance), links(count))
    assert found.scores.shape == (count,)
    assert found.features.shape == (count, len(scorer.feature_names))
    assert np.isfinite(found.features).all()
    assert ((found.scores >= 0.0) & (found.scores <= 1.0)).all()


def test_the_features_have_a_name_each(scorer):
    assert len(set(scorer.feature_names)) == len(scorer.feature_names)


def test_scoring_alone_changes_nothing(scorer):
    first, second = (scorer.score(visit(scorer), links(20)) for _ in range(2))
    assert np.array_equal(first.scores, second.scores)
    assert np.array_equal(first.features, second.features)


def test_a_seeds_links_are_scored_without_evidence_of_the_way(scorer):
    found = scorer.score(Visit(PAGE, Judgement(0.9, on_topic=True)), links(5))
    assert found.scores.shape == (5,)


@pytest.mark.parametrize("name", SCORERS)
@settings(deadline=None)  # the first question may load a library
@given(anchors=st.lists(st.text(), max_size=5), context=st.text())
def test_any_anchor_and_context_are_scored(scorers, name, anchors, context):
    scorer = scorers[name]
    odd = [Link(f"http://a.test/{n}", text, context) for n, text in enumerate(anchors)]
    found = scorer.score(visit(scorer), odd)
    assert ((found.scores >= 0.0) & (found.scores <= 1.0)).all()
