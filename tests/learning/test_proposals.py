"""Of a first crawl's pages the best and the farthest off are taken for samples."""

from __future__ import annotations

from focused.learning.proposals import MAX_GOOD, MAX_OTHER, propose
from focused.web.page import Page


def pages(*relevance: float) -> list[tuple[Page, float]]:
    return [(Page(f"http://a.test/{n}"), each) for n, each in enumerate(relevance)]


def numbers(found) -> list[int]:
    return [int(page.url.rpartition("/")[2]) for page, _ in found]


def test_pages_from_the_threshold_on_are_good_the_best_first():
    found = propose(pages(0.3, 0.9, 0.2, 0.25), frozenset(), 0.25)
    assert numbers(found.good) == [1, 0, 3]


def test_pages_that_hardly_speak_of_it_are_others_and_those_between_neither():
    found = propose(pages(0.0, 0.04, 0.1, 0.24), frozenset(), 0.25)
    assert numbers(found.other) == [0, 1]


def test_a_seed_that_speaks_of_a_keyword_is_a_sample_and_a_hub_is_none():
    seeds = {"http://a.test/0", "http://a.test/1"}
    found = propose(pages(0.01, 0.0, 0.9), seeds, 0.25)
    assert [page.url for page in found.seeds] == ["http://a.test/0"]
    assert numbers(found.good) == [2]
    assert found.other == ()


def test_neither_side_is_more_than_somebody_can_look_through():
    found = propose(pages(*[0.9] * 500, *[0.0] * 500), frozenset(), 0.25)
    assert (len(found.good), len(found.other)) == (MAX_GOOD, MAX_OTHER)
