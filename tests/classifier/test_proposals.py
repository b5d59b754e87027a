"""Samples proposed from the first crawl."""

from itertools import count, islice

from focused.classifier.keyword_classifier import (
    MAX_PROPOSED_GOOD,
    MAX_PROPOSED_OTHER,
    KeywordClassifier,
    RatedPage,
    propose_samples,
)
from focused.labels.label_file import role_of
from focused.web.page import Link, Page


def urls(role: str, number: int) -> list[str]:
    """So many URLs of one role, each ending in its number."""
    found = (
        next(url for k in count() if role_of(url := f"http://a.test/{k}/{n}") == role)
        for n in count()
    )
    return list(islice(found, number))


def pages(*relevance: float, role: str = "training") -> list[RatedPage]:
    return [
        RatedPage(Page(url), each, each)
        for url, each in zip(urls(role, len(relevance)), relevance, strict=True)
    ]


def numbers(found) -> list[int]:
    return [int(page.url.rpartition("/")[2]) for page in found]


def test_the_best_fifth_from_the_threshold_on_is_good_the_best_first():
    found = propose_samples(pages(*[0.3] * 80, *[0.9] * 19, 0.95), frozenset(), 0.25)
    assert numbers(found.good)[0] == 99
    assert sorted(numbers(found.good)) == [*range(80, 100)]


def test_of_a_small_crawl_a_dozen_pages_may_be_good():
    found = propose_samples(pages(0.3, *[0.9] * 11, 0.4, *[0.1] * 7), frozenset(), 0.25)
    assert sorted(numbers(found.good)) == [*range(1, 13)]


def test_below_the_threshold_no_page_is_good_though_it_be_the_best():
    assert propose_samples(pages(*[0.2] * 10), frozenset(), 0.25).good == ()


def test_the_worst_half_is_others_the_worst_first_though_it_has_keywords():
    found = propose_samples(pages(*[0.9] * 12, *[0.4] * 10, 0.35, 0.3), frozenset(), 0.25)
    assert numbers(found.other)[:2] == [23, 22]
    assert len(found.other) == 12


def test_a_page_that_is_surely_on_topic_is_no_other_though_all_are():
    assert propose_samples(pages(*[0.9] * 10), frozenset(), 0.25).other == ()


def test_a_seed_with_a_keyword_is_a_sample_and_a_hub_is_not():
    seeds = set(urls("training", 2))
    found = propose_samples(pages(0.01, 0.0, 0.9), seeds, 0.25)
    assert [page.url for page in found.seeds] == urls("training", 1)
    assert numbers(found.good) == [2]
    assert found.other == ()


def test_neither_side_is_more_than_somebody_can_look_through():
    found = propose_samples(pages(*[0.9] * 500, *[0.0] * 500), frozenset(), 0.25)
    assert (len(found.good), len(found.other)) == (MAX_PROPOSED_GOOD, MAX_PROPOSED_OTHER)


def test_evaluation_pages_are_not_proposed():
    found = propose_samples(pages(0.9, 0.9, 0.0, role="evaluation"), frozenset(), 0.25)
    assert (found.good, found.other) == ((), ())


def test_a_seed_is_a_sample_even_if_its_hash_is_for_evaluation():
    [reserved] = urls("evaluation", 1)
    found = propose_samples(pages(0.9, role="evaluation"), {reserved}, 0.25)
    assert [page.url for page in found.seeds] == [reserved]


def test_an_index_whose_links_alone_have_the_keywords_is_not_good():
    first, second = urls("training", 2)
    titles = "brie from Meaux, gouda from Holland, and rennet for all of them"
    links = tuple(
        Link(f"http://a.test/{n}", anchor=title) for n, title in enumerate(titles.split(", "))
    )
    index = Page(first, "Contents", text=f"all pages of this site {titles}", links=links)
    article = Page(second, "How it is made", text=f"milk and rennet make gouda and brie {titles}")
    keywords = KeywordClassifier(["rennet", "gouda", "brie"])
    rated = [
        RatedPage(page, keywords.classify(page).relevance, keywords.relevance_without_links(page))
        for page in (index, article)
    ]
    found = propose_samples(rated, frozenset(), keywords.threshold)
    assert rated[0].relevance >= keywords.threshold
    assert found.good == (article,)


def test_a_page_without_words_has_no_relevance_without_its_links():
    assert KeywordClassifier(["brie"]).relevance_without_links(Page("http://a.test/")) == 0.0
