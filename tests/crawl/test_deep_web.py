"""Records behind a search form are found by the topic's words and by those of the records."""

from dataclasses import replace

import pytest

from focused.crawl.deep_web import QuerySelector
from focused.topic import Budget, DeepWeb, Scope
from tests.support.search_site import HOST, ROOT, SearchSite
from tests.support.simulated import topic

SCOPE = Scope(near_duplicates=False)
PROBES = DeepWeb((HOST,), queries=60)


def whales(folder, deep_web=PROBES, **sections):
    subject = topic(folder, ROOT, delay_s=0.0, scope=SCOPE, deep_web=deep_web, **sections)
    return replace(subject, training=replace(subject.training, keywords=("whale*",)))


def test_a_form_of_a_host_that_is_not_named_is_not_sent(simulate, tmp_path):
    site = SearchSite()
    simulate(whales(tmp_path, DeepWeb(("other.test",))), site).run()
    assert site.queries == []


def test_most_relevant_records_are_found_within_the_budget_of_queries(simulate, tmp_path):
    site = SearchSite()
    rows = simulate(whales(tmp_path), site).run().rows
    assert site.queries[0] == "whale"
    assert len(set(site.queries)) <= PROBES.queries
    assert all(site.queries.count(query) <= PROBES.result_pages for query in set(site.queries))
    assert len(site.relevant & set(rows)) >= 0.9 * len(site.relevant)


def test_no_query_is_sent_where_robots_txt_disallows_results(simulate, tmp_path):
    site = SearchSite(robots="User-agent: *\nDisallow: /find\n")
    simulate(whales(tmp_path), site).run()
    assert site.queries == []


def test_a_form_that_brings_nothing_new_is_left(simulate, tmp_path):
    site = SearchSite(records=30)
    crawl = simulate(whales(tmp_path, replace(PROBES, stop_after=5)), site).run()
    assert site.relevant <= set(crawl.rows)
    assert len(set(site.queries)) < PROBES.queries


def test_a_crawl_that_was_stopped_asks_no_query_twice(simulate, tmp_path):
    site = SearchSite()
    simulate(whales(tmp_path, budget=Budget(pages=40)), site).run().close()
    before = set(site.queries)
    simulate(whales(tmp_path, budget=Budget(pages=120)), site).run()
    first_pages = [query for query in site.queries if query in before]
    assert before < set(site.queries)
    assert all(first_pages.count(query) <= PROBES.result_pages for query in before)


def test_keywords_are_asked_first_then_words_of_relevant_pages():
    selector = QuerySelector(("whale", "sea"))
    assert [selector.next_query(), selector.next_query(), selector.next_query()] == [
        "whale",
        "sea",
        None,
    ]
    for _ in range(4):
        selector.observe(["ocean", "and"], 1.0)
        selector.observe(["stone", "and"], 0.0)
    asked = [selector.next_query() for _ in range(3)]
    assert asked.index("ocean") < asked.index("stone")


@pytest.mark.parametrize("word", ["ab", "x1y2", "2024"])
def test_short_words_and_numbers_are_no_queries(word):
    selector = QuerySelector()
    selector.observe([word], 1.0)
    assert selector.next_query() is None


def test_words_as_frequent_as_those_that_brought_most_are_preferred():
    selector = QuerySelector()
    for number in range(64):
        rare = [f"rare{chr(97 + number % 26)}{chr(97 + number // 26)}"]
        selector.observe(["oftena", "oftenb", "oftenc", "oftend", "oftene", *rare], 1.0)
    for _ in range(3):
        query = selector.next_query() or ""
        for _ in range(0 if query.startswith("often") else 20):
            selector.credit(query, 1.0)
    assert (selector.next_query() or "").startswith("rare")


def test_what_a_query_brought_is_remembered_in_order():
    selector = QuerySelector(("whale", "sea"))
    for query in ("whale", "sea"):
        assert selector.next_query() == query
    selector.credit("whale", 0.75)
    selector.credit("unknown", 1.0)
    assert selector.last_yields(5) == [0.75, 0.0]
