"""Of a first crawl's pages the best and the farthest off are taken for samples."""

from __future__ import annotations

from itertools import count, islice

from focused.labels.roles import role_of
from focused.learning.proposals import MAX_GOOD, MAX_OTHER, propose
from focused.web.page import Page


def urls(role: str, number: int) -> list[str]:
    """So many URLs of one role, each ending in its number."""
    found = (
        next(url for k in count() if role_of(url := f"http://a.test/{k}/{n}") == role)
        for n in count()
    )
    return list(islice(found, number))


def pages(*relevance: float, role: str = "teach") -> list[tuple[Page, float]]:
    return [
        (Page(url), each) for url, each in zip(urls(role, len(relevance)), relevance, strict=True)
    ]


def numbers(found) -> list[int]:
    return [int(page.url.rpartition("/")[2]) for page, _ in found]


def test_pages_from_the_threshold_on_are_good_the_best_first():
    found = propose(pages(0.3, 0.9, 0.2, 0.25), frozenset(), 0.25)
    assert numbers(found.good) == [1, 0, 3]


def test_pages_that_hardly_speak_of_it_are_others_and_those_between_neither():
    found = propose(pages(0.0, 0.04, 0.1, 0.24), frozenset(), 0.25)
    assert numbers(found.other) == [0, 1]


def test_a_seed_that_speaks_of_a_keyword_is_a_sample_and_a_hub_is_none():
    seeds = set(urls("teach", 2))
    found = propose(pages(0.01, 0.0, 0.9), seeds, 0.25)
    assert [page.url for page in found.seeds] == urls("teach", 1)
    assert numbers(found.good) == [2]
    assert found.other == ()


def test_neither_side_is_more_than_somebody_can_look_through():
    found = propose(pages(*[0.9] * 500, *[0.0] * 500), frozenset(), 0.25)
    assert (len(found.good), len(found.other)) == (MAX_GOOD, MAX_OTHER)


def test_pages_that_are_the_judges_are_not_proposed_for_they_could_measure_no_model_then():
    found = propose(pages(0.9, 0.9, 0.0, role="judge"), frozenset(), 0.25)
    assert (found.good, found.other) == ((), ())


def test_a_seed_is_a_sample_whoevers_lot_it_is_for_somebody_said_so():
    [judges] = urls("judge", 1)
    found = propose(pages(0.9, role="judge"), {judges}, 0.25)
    assert [page.url for page in found.seeds] == [judges]
