"""Two-phase: the preliminary crawl orders the second."""

from collections.abc import Sequence

import numpy as np
import pytest

from focused.crawl import SettledFetch
from focused.crawl.policy import Policy
from focused.crawl.steps import ScoredLink
from focused.errors import ConfigurationError
from focused.frontier.queued_link import QueuedLink, link_key
from focused.link_scoring.protocols import PageContext
from focused.orderings import PolicyInputs
from focused.web.page import Classification, Link, Page
from focused.web.urls import host_of
from focused_lab.orderings.two_phase import LINKS_PER_TARGET, make_policy, relevance_by_url
from tests.support.whale_models import WhaleClassifier, WhaleScorer

A = "http://a.test/"


def queued(url: str, parent: str | None = None, hops: int = 0) -> QueuedLink:
    return QueuedLink(link_key(url), url, host_of(url), 0.0, 1.0, parent=parent, hops=hops)


def fetched(
    url: str, relevance: float, *links: Link, parent: str | None = None, hops: int = 0
) -> SettledFetch:
    scored = {link.url: ScoredLink(link, 0.5, (), 0.5) for link in links}
    classification = Classification(relevance, relevance >= 0.5)
    page = Page(url, links=links)
    link = queued(url, parent, hops)
    return SettledFetch(link, "fetched", page=page, classification=classification, scored=scored)


def first_crawl() -> list[SettledFetch]:
    """Forty links: harpoons are relevant, ledgers are not."""
    links = [Link(f"{A}{n}", anchor="harpoon" if n % 2 else "ledger") for n in range(40)]
    found = [fetched(link.url, 0.9 if n % 2 else 0.1) for n, link in enumerate(links)]
    return [fetched(A, 0.5, *links), *found]


def after(settled: Sequence[SettledFetch]) -> Policy:
    return make_policy(
        PolicyInputs(WhaleClassifier(), WhaleScorer(), preliminary_crawl=lambda ordered_by: settled)
    )


def scores(ordered_by: Policy, *links: Link, relevance: float = 0.5) -> list[float]:
    visit = PageContext(Page("http://b.test/"), Classification(relevance, relevance >= 0.5))
    return [float(score) for score in ordered_by.scorer.score(visit, links).scores]


def test_a_live_crawl_is_refused_with_the_reason():
    with pytest.raises(ConfigurationError, match=r"crawls twice .* use it in 'focused compare'"):
        make_policy(PolicyInputs(WhaleClassifier(), WhaleScorer()))


def test_the_first_crawl_is_best_first_and_made_once():
    names: list[str] = []

    def preliminary_crawl(ordered_by: Policy) -> Sequence[SettledFetch]:
        names.append(ordered_by.name)
        return first_crawl()

    make_policy(PolicyInputs(WhaleClassifier(), WhaleScorer(), preliminary_crawl=preliminary_crawl))
    assert names == ["best-first"]


def test_links_like_those_that_led_to_the_topic_come_first():
    harpoon, ledger = scores(
        after(first_crawl()),
        Link("http://b.test/x", anchor="a harpoon"),
        Link("http://b.test/y", anchor="a ledger"),
    )
    assert harpoon > 0.7 > 0.3 > ledger


def test_the_parents_relevance_counts_if_it_was_predictive():
    good = [Link(f"{A}good-{n}", anchor="next") for n in range(30)]
    bad = [Link(f"{A}bad-{n}", anchor="next") for n in range(30)]
    settled = [fetched(f"{A}1", 0.95, *good), fetched(f"{A}2", 0.05, *bad)]
    settled += [fetched(link.url, 0.9) for link in good]
    settled += [fetched(link.url, 0.1) for link in bad]
    ordered_by = after(settled)
    link = Link("http://b.test/x", anchor="next")
    assert scores(ordered_by, link, relevance=0.9) > scores(ordered_by, link, relevance=0.1)


def test_without_a_trained_classifier_it_is_best_first():
    ordered_by = after([fetched(A, 0.1)])
    assert ordered_by.name == "two-phase"
    assert scores(ordered_by, Link("http://b.test/x"), relevance=0.37) == [0.37]


def test_a_menu_does_not_outvote_what_is_linked_once():
    menu = Link(f"{A}menu", anchor="harpoon")
    pages = [fetched(f"{A}page-{n}", 0.5, menu) for n in range(500)]
    once = after([*first_crawl(), *pages[:LINKS_PER_TARGET], fetched(menu.url, 0.0)])
    often = after([*first_crawl(), *pages, fetched(menu.url, 0.0)])
    link = Link("http://b.test/x", anchor="harpoon")
    assert np.allclose(scores(once, link), scores(often, link))


def test_a_link_has_the_relevance_of_its_redirect_target():
    settled = [
        SettledFetch(queued(f"{A}old"), "redirected"),
        SettledFetch(queued(f"{A}older", f"{A}old", hops=1), "redirected"),
        fetched(f"{A}new", 0.8, parent=f"{A}older", hops=2),
        fetched(f"{A}other", 0.3, parent=f"{A}new"),
        SettledFetch(queued(f"{A}gone"), "failed", failure="gone"),
    ]
    assert relevance_by_url(settled) == {
        f"{A}new": 0.8,
        f"{A}older": 0.8,
        f"{A}old": 0.8,
        f"{A}other": 0.3,
    }
