"""Before the topic is found, a meaning unlike the topic's does not lower a link's rank."""

import pytest

from focused.frontier.queued_link import QueuedLink
from focused.link_scoring.apprentice import Apprentice
from focused.link_scoring.linear_model import LinearModel
from focused.link_scoring.link_features import FEATURE_NAMES
from tests.link_scoring.apprentices import HOME, PRIOR, example, new_apprentice

MEANINGS = ("anchor_meaning", "context_meaning", "url_meaning")


def model() -> LinearModel:
    return LinearModel(PRIOR, (), learns=True, depth_penalty=0.0)


def rank_score(subject: LinearModel, **features: float) -> float:
    row = [features.get(name, 0.0) for name in FEATURE_NAMES]
    _, (found,) = subject.predict([row], [0], discounts_meaning=True)
    return found


def find_relevant_pages(subject: LinearModel, count: int) -> None:
    for _ in range(count):
        subject.learn((), 1.0, 1.0)


@pytest.mark.parametrize("name", MEANINGS)
def test_at_first_an_unlike_meaning_ranks_as_none(name):
    assert rank_score(model(), **{name: -3.0}) == pytest.approx(rank_score(model()))


@pytest.mark.parametrize("name", MEANINGS)
def test_the_topics_meaning_counts_from_the_first_page_on(name):
    assert rank_score(model(), **{name: 3.0}) == pytest.approx(rank_score(model()) + 1.2)


def test_once_the_topic_is_found_an_unlike_meaning_ranks_lower():
    subject = model()
    find_relevant_pages(subject, 3)
    half = rank_score(subject, anchor_meaning=-3.0)
    find_relevant_pages(subject, 300)
    assert half == pytest.approx(rank_score(subject) - 0.6)
    assert rank_score(subject, anchor_meaning=-3.0) < rank_score(subject) - 1.1


def test_the_discount_leaves_the_probability():
    row = [-3.0 if name == "url_meaning" else 0.0 for name in FEATURE_NAMES]
    with_discount = model().predict([row], [0], discounts_meaning=True)
    without = model().predict([row], [0])
    assert with_discount[0] == without[0]
    assert with_discount[1] > without[1]


def test_other_features_are_not_discounted():
    assert rank_score(model(), anchor=-3.0) == pytest.approx(rank_score(model()) - 1.2)


def unlike_rank(subject: Apprentice) -> float:
    """The rank score of a link whose anchor means something else than the topic."""
    features = tuple(-3.0 if name == "anchor_meaning" else 0.0 for name in FEATURE_NAMES)
    link = QueuedLink(
        key=b"", url=HOME, host="home.example", priority=0.0, score=0.0, depth=1, parent=HOME,
        anchor="", features=features, found_at=0.0,
    )  # fmt: skip
    return subject.rescore([link])[0].rank_score


def taught(*urls: str, discounts_meaning: bool = True) -> Apprentice:
    subject = new_apprentice(depth_penalty=0.0, discounts_meaning=discounts_meaning)
    for url in urls:
        subject.learn(example(0.0, url=url))
    return subject


def test_meaning_is_discounted_on_a_single_site():
    site = ("https://docs.home.example/a", HOME)
    bare = taught(*site, discounts_meaning=False)
    assert unlike_rank(taught(*site)) == pytest.approx(unlike_rank(bare) + 1.2, abs=0.01)


def test_among_several_sites_an_unlike_meaning_counts_in_full():
    sites = (HOME, "https://far.example2/")
    assert unlike_rank(taught(*sites)) == unlike_rank(taught(*sites, discounts_meaning=False))


def test_a_restored_apprentice_knows_whether_there_were_several_sites():
    for subject in (taught(HOME), taught(HOME, "https://far.example2/")):
        restored = new_apprentice(depth_penalty=0.0)
        restored.restore(subject.state())
        assert unlike_rank(restored) == unlike_rank(subject)
