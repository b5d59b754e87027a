"""The contract of every link scorer; those of the orderings: test_every_policy.py."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from link_log import NoisyLinkScorer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from focused.link_scoring.apprentice import Apprentice
from focused.link_scoring.linear_model import load_link_prior, uninformed_prior
from focused.link_scoring.protocols import (
    ConstantLinkScorer,
    LinkScorer,
    OnlineLinkScorer,
    PageContext,
    decode_example,
)
from focused.link_scoring.sklearn_scorer import SklearnLinkScorer
from focused.storage.rows import pack
from focused.web.page import Classification, Link, Page
from tests.support.queueing import queued
from tests.support.whale_models import WhaleClassifier, WhaleScorer

PAGE = Page("http://a.test/")


def boosted() -> LinkScorer:
    """Fitted on the values of anchor and parent, by the features of another scorer."""
    rng = np.random.default_rng(1)
    rows = rng.random((200, 2)).round(1)
    good = rows.sum(axis=1) > 1.0
    return SklearnLinkScorer.over(HistGradientBoostingClassifier().fit(rows, good), WhaleScorer())


def own_features() -> LinkScorer:
    """Fitted on a feature of one's own."""
    lengths = np.arange(1.0, 41.0)[:, None]
    short = LogisticRegression().fit(lengths, lengths[:, 0] < 20)
    return SklearnLinkScorer(
        short, lambda visit, links: np.array([[float(len(one.url))] for one in links]), ["length"]
    )


LEARNERS: dict[str, Callable[[], OnlineLinkScorer]] = {
    "apprentice": lambda: Apprentice(WhaleClassifier()),
    "apprentice without a prior": lambda: Apprentice(
        WhaleClassifier(), uninformed_prior(load_link_prior())
    ),
    "apprentice that does not learn weights": lambda: Apprentice(WhaleClassifier(), learns=False),
    "apprentice with noised worths": lambda: NoisyLinkScorer(Apprentice(WhaleClassifier()), seed=1),
}
SCORERS: dict[str, Callable[[], LinkScorer]] = {
    **LEARNERS,
    "own estimator over another's features": boosted,
    "own estimator over own features": own_features,
    "uninformed": ConstantLinkScorer,
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


def visit(scorer: LinkScorer, relevance: float = 0.9) -> PageContext:
    features = (0.0,) * len(scorer.feature_names)
    return PageContext(PAGE, Classification(relevance, relevance >= 0.5), 2, 0.4, features)


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


def test_links_of_a_seed_are_scored_without_its_features(scorer):
    found = scorer.score(PageContext(PAGE, Classification(0.9, on_topic=True)), links(5))
    assert found.scores.shape == (5,)


@pytest.mark.parametrize("name", SCORERS)
@settings(deadline=None)  # the first question may load a library
@given(
    odd=st.lists(
        st.builds(
            Link,
            url=st.sampled_from(["https://home.test/a", "http://b.test/%ZZ%ff?x=Å"]),
            anchor=st.text(),
            context=st.text() | st.sampled_from(["whale " * 50]),
            tag_path=st.text(),
        ),
        max_size=5,
    )
)
def test_any_links_are_scored_whatever_their_neighbours(scorers, name, odd):
    scorer = scorers[name]
    found = scorer.score(visit(scorer), odd)
    assert ((found.scores >= 0.0) & (found.scores <= 1.0)).all()
    alone = [scorer.score(visit(scorer), [link]).scores[0] for link in odd]
    assert found.scores == pytest.approx(alone)


# What every scorer that learns must keep besides.

learners = pytest.mark.parametrize("make", LEARNERS.values(), ids=LEARNERS)


def teach(learner: OnlineLinkScorer, pages: range) -> None:
    """Crawl some pages, one link of each: those whose number is even speak of whales."""
    for n in pages:
        text = f"whale {n}" if n % 2 == 0 else f"trade {n}"
        found = Link(f"http://h{n % 3}.test/{text}", text, text, tag_path=f"ul/{n % 4}")
        (link,) = queued(learner, visit(learner, 0.5), [found])
        example = learner.make_example(link, Page(link.url, text=text), 0.1 if n % 2 else 0.9)
        learner.learn(decode_example(pack(example)))


def answers(learner: OnlineLinkScorer) -> tuple[object, ...]:
    waiting = queued(learner, visit(learner, 0.3), links(20))
    return waiting, learner.rescore(waiting)


@learners
def test_it_is_known_for_one_that_learns(make):
    assert isinstance(make(), OnlineLinkScorer)


@learners
@pytest.mark.parametrize("count", [0, 1, 50])
@pytest.mark.parametrize("known", [False, True])
def test_each_link_has_one_merged_score(make, count, known):
    learner = make()
    teach(learner, range(30))
    before = queued(learner, visit(learner, 0.2), links(count)) if known else [None] * count
    found = learner.score_merged(visit(learner), links(count), before)
    assert len(found) == count
    for each in found:
        assert len(each.features) == len(learner.feature_names)
        assert 0.0 <= each.score <= 1.0
        assert np.isfinite((*each.features, each.rank_score)).all()


@learners
def test_new_links_are_scored_as_by_the_page_alone(make):
    learner = make()
    teach(learner, range(30))
    alone = learner.score(visit(learner), links(20))
    joined = learner.score_merged(visit(learner), links(20), [None] * 20)
    assert alone.scores.tolist() == [each.score for each in joined]
    assert alone.features.tolist() == [list(each.features) for each in joined]
    assert all(each.is_best_inlink for each in joined)


@learners
def test_rescoring_at_once_changes_nothing(make):
    learner = make()
    teach(learner, range(30))
    waiting = queued(learner, visit(learner), links(20))
    for link, again in zip(waiting, learner.rescore(waiting), strict=True):
        assert again.score == pytest.approx(link.score)
        assert again.rank_score == pytest.approx(link.priority)
        assert again.features == pytest.approx(link.features)


@learners
def test_a_link_rescored_alone_equals_rescoring_in_a_batch(make):
    learner = make()
    teach(learner, range(30))
    waiting = queued(learner, visit(learner), links(20))
    for link, among in zip(waiting, learner.rescore(waiting), strict=True):
        assert learner.rescore([link]) == [among]


@learners
def test_rescoring_no_links_returns_nothing(make):
    assert list(make().rescore([])) == []


@learners
def test_an_example_survives_encoding(make):
    learner = make()
    (link,) = queued(learner, visit(learner), links(1))
    example = learner.make_example(link, Page(link.url, title="A whale", text="whale and sea"), 0.9)
    assert decode_example(pack(example)) == example


@learners
def test_scoring_and_making_examples_do_not_change_the_model(make):
    learner = make()
    teach(learner, range(30))
    before = learner.state()
    waiting, _ = answers(learner)
    learner.make_example(waiting[0], Page(waiting[0].url, text="whale"), 0.9)
    assert learner.state() == before


@learners
@pytest.mark.parametrize("taught", [0, 1, 24, 25, 60])
def test_restored_it_answers_the_same_and_learns_on_the_same(make, taught):
    one, other = make(), make()
    teach(one, range(taught))
    other.restore(one.state())
    assert answers(other) == answers(one)
    for learner in (one, other):
        teach(learner, range(taught, taught + 40))
    assert answers(other) == answers(one)
    assert other.state() == one.state()


@learners
def test_links_like_productive_ones_rank_higher_after_learning(make):
    learner = make()
    # In the places of those that were taught, on one of their hosts.
    places = (("whale", "ul/0"), ("trade", "ul/3"))
    like = [Link(f"http://h0.test/{each}", each, tag_path=place) for each, place in places]
    teach(learner, range(60))
    whale, trade = queued(learner, visit(learner, 0.5), like)
    untaught = queued(make(), visit(learner, 0.5), like)
    assert whale.score / trade.score > untaught[0].score / untaught[1].score
