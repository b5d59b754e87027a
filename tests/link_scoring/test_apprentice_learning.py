"""The apprentice learns from examples and restores its state."""

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from focused.classifier.calibration import expit
from focused.frontier.queued_link import QueuedLink
from focused.link_scoring.apprentice import Apprentice
from focused.link_scoring.link_features import FEATURE_NAMES
from focused.link_scoring.protocols import PageContext, TrainingExample
from focused.web.page import Link, Page
from tests.link_scoring.apprentices import (
    HOME,
    LINKS,
    PLAIN,
    PRIOR,
    example,
    examples_of_a_crawl,
    named_features,
    new_apprentice,
    seen,
)
from tests.support.queueing import queued


def asked(learner: Apprentice, link: Link, visit: PageContext | None = None) -> dict[str, float]:
    return named_features(learner.score(visit or seen(), [link]).features[0])


def test_links_of_a_productive_page_rank_higher(apprentice):
    for _ in range(5):
        apprentice.learn(example(0.9, parent=HOME))
        apprentice.learn(example(0.1, parent="https://far.example/"))
    assert asked(apprentice, PLAIN)["siblings"] > 0.1
    assert asked(apprentice, PLAIN, seen(url="https://far.example/"))["siblings"] < -0.1
    assert "siblings" not in asked(apprentice, PLAIN, seen(url="https://new.example/"))


def test_links_in_a_productive_tag_path_rank_higher_on_other_pages(apprentice):
    listed, elsewhere = replace(PLAIN, tag_path="ul/li/a"), replace(PLAIN, tag_path="p/a")
    (found,) = queued(apprentice, seen(), [listed])
    for _ in range(5):
        apprentice.learn(apprentice.make_example(found, Page(found.url), 0.9))
        apprentice.learn(example(0.1))
    other_page = seen(url="https://home.example/second")
    assert asked(apprentice, listed, other_page)["tag_path"] > 0.1
    assert "tag_path" not in asked(apprentice, elsewhere, other_page)
    other_site = replace(listed, url="https://new.example/")
    assert "tag_path" not in asked(apprentice, other_site, other_page)


def test_an_example_holds_the_fetched_link_and_the_relevance_of_its_page(apprentice):
    (link,) = queued(apprentice, seen(0.9), [replace(PLAIN, anchor="go", tag_path="p/a")])
    found = apprentice.make_example(link, Page(link.url, text="the whale in the sea"), 0.7)
    assert (found.url, found.anchor, found.parent) == (link.url, "go", HOME)
    assert (found.tag_path_key, found.features, found.relevance) == (
        link.tag_path_key,
        link.features,
        0.7,
    )


def test_a_seed_has_no_features_and_teaches_nothing_of_links(apprentice):
    seed = QueuedLink(b"k", "https://home.example/harpoon", "home.example", 4.0, 1.0)
    found = apprentice.make_example(seed, Page(seed.url, text="a whale"), 0.9)
    assert found.features == ()
    before = asked(apprentice, PLAIN)
    for _ in range(30):
        apprentice.learn(found)
    assert asked(apprentice, PLAIN) == before


def after_links_that_kept_their_promise(**options) -> Apprentice:
    """Links with a scored context lead to relevant pages, others do not."""
    learner = new_apprentice(**options)
    for n in range(500):
        loud = n % 2 == 0
        row = {"context": 2.0 if loud else 0.0}
        learner.learn(example(0.95 if loud else 0.05, features=row))
    return learner


def by_context(learner: Apprentice) -> float:
    """By how many nats a good context raises a score."""
    links = [replace(PLAIN, context="good"), PLAIN]
    scores = learner.score(seen(), links).scores
    return float(np.diff(np.log(scores / (1 - scores)))[0]) * -1.0


def test_a_predictive_feature_gains_weight():
    untaught = new_apprentice()
    assert by_context(after_links_that_kept_their_promise()) > by_context(untaught) + 0.5


def test_one_that_does_not_learn_keeps_the_priors_weights_and_still_learns_places():
    frozen = after_links_that_kept_their_promise(learns=False)
    assert by_context(frozen) == pytest.approx(by_context(new_apprentice()))
    frozen.learn(example(0.0, parent=HOME))
    scored = frozen.score(seen(0.8), LINKS)
    assert scored.scores == pytest.approx(expit(PRIOR.bias + scored.features @ PRIOR.weights))
    assert named_features(scored.features[-1])["siblings"] < 0.0


def test_correct_predictions_leave_the_scores_unchanged():
    """Calibrated from the start, calibrated to the end."""
    learner = new_apprentice()
    rng = np.random.default_rng(3)
    for row in rng.normal(size=(1_000, len(FEATURE_NAMES))):
        share = float(expit(PRIOR.bias + row @ PRIOR.weights))
        learner.learn(example(share, features=dict(zip(FEATURE_NAMES, row.tolist(), strict=True))))
    assert by_context(learner) == pytest.approx(by_context(new_apprentice()), abs=0.1)


def test_a_link_scored_again_is_scored_as_if_it_had_just_been_found(apprentice):
    link = replace(PLAIN, anchor="good harpoon", tag_path="p/a")
    (old,) = queued(apprentice, seen(0.8), [link])
    (unchanged,) = apprentice.rescore([old])
    assert (unchanged.score, unchanged.features) == (pytest.approx(old.score), old.features)
    assert unchanged.rank_score == pytest.approx(old.priority)
    for _ in range(30):
        apprentice.learn(example(0.0, parent=HOME))
        apprentice.learn(example(0.9))
    (new,) = queued(apprentice, seen(0.8), [link])
    (again,) = apprentice.rescore([old])
    assert again.score == pytest.approx(new.score)
    assert again.rank_score == pytest.approx(new.priority)
    assert again.features == pytest.approx(new.features)
    assert again.score < old.score


# What it keeps


def answers(learner: Apprentice) -> tuple[object, ...]:
    (one,) = queued(learner, seen(0.3), [LINKS[0]])
    joined = learner.score_merged(seen(0.8), LINKS, [one, *[None] * (len(LINKS) - 1)])
    again = learner.rescore([one])
    return joined, again


def test_a_state_is_plain_data():
    learner = new_apprentice()
    for each in examples_of_a_crawl(60):
        learner.learn(each)
    kept = msgspec.msgpack.decode(learner.state())
    assert kept["relevance_found"] == pytest.approx(
        sum(each.relevance for each in examples_of_a_crawl(60))
    )


@settings(deadline=None)
@given(
    st.lists(
        st.builds(
            TrainingExample,
            url=st.sampled_from(["https://home.example/a", "http://b.example/%ZZ%ff?x=Å"]),
            anchor=st.text(),
            parent=st.text(),
            tag_path_key=st.integers(0, 2**64 - 1),
            features=st.just((0.0,) * len(FEATURE_NAMES)) | st.just(()),
            relevance=st.floats(0, 1),
        )
    ).map(lambda some: some * 9)
)
def test_any_examples_leave_probabilities_and_a_restorable_state(examples):
    learner, again = new_apprentice(), new_apprentice()
    for each in examples:
        learner.learn(each)
    scores = learner.score(seen(), LINKS).scores
    assert np.all((scores > 0) & (scores < 1))
    again.restore(learner.state())
    assert again.score(seen(), LINKS).scores.tolist() == scores.tolist()
