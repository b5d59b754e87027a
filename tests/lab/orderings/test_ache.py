"""ACHE: links are scored by their page first, then by the trained classifier."""

import pytest

from focused.orderings import PolicyInputs
from focused.web.page import Link
from focused_lab.orderings.ache import with_batch_size
from tests.lab.orderings.policy_walk import RELEVANT, Walk
from tests.support.whale_models import WhaleClassifier, WhaleScorer

A = "http://a.test/"
BATCH = 20
LAST = 8


def walk(*seeds: str, seed: int = 0, batch: int = BATCH) -> Walk:
    return Walk(
        with_batch_size(PolicyInputs(WhaleClassifier(), WhaleScorer(), seed), batch), *seeds
    )


def urls(name: str, count: int) -> list[str]:
    return [f"http://{name}.test/{n}" for n in range(count)]


def anchored(anchor: str, count: int) -> list[Link]:
    return [Link(url, anchor=anchor) for url in urls(f"{anchor}-host", count)]


def taught(relevance_of_ledgers: float = 0.1) -> tuple[Walk, list[Link], list[Link]]:
    """A batch except for its last page: ten harpoons and eight ledgers came, the others wait."""
    crawl = walk(A)
    harpoons, ledgers = anchored("harpoon", 20), anchored("ledger", 20)
    crawl.fetch(A, *harpoons, *ledgers)
    for n in range(BATCH // 2):
        crawl.fetch(harpoons[n].url, relevance=RELEVANT)
        if n < LAST:  # the start is part of the batch
            crawl.fetch(ledgers[n].url, relevance=relevance_of_ledgers)
    return crawl, harpoons, ledgers


def test_before_it_has_learned_links_of_relevant_pages_come_first():
    crawl = walk(f"{A}good", f"{A}bad")
    good, bad = urls("good", 50), urls("bad", 50)
    crawl.fetch(f"{A}bad", *bad)
    crawl.fetch(f"{A}good", *good, relevance=RELEVANT)
    assert set(crawl.order[:50]) == set(good)


def test_ties_are_broken_by_hash_and_depend_on_the_seed():
    orders = []
    for seed in (1, 1, 2):
        crawl = walk(A, seed=seed)
        crawl.fetch(A, *urls("b", 50))
        orders.append(crawl.order)
    assert orders[0] == orders[1] != orders[2]
    assert orders[0] != sorted(orders[0]) != urls("b", 50)


def test_after_a_batch_all_waiting_links_are_rescored():
    crawl, harpoons, ledgers = taught()
    assert not crawl.moved
    waiting = {link.url for link in (*harpoons, *ledgers)} & crawl.queue.keys()
    assert len(waiting) == 22
    crawl.fetch(ledgers[LAST].url)
    assert crawl.moved.keys() == waiting - {ledgers[LAST].url}
    assert crawl.order[:10] and all("harpoon" in url for url in crawl.order[:10])


def test_new_links_are_scored_by_the_trained_model():
    crawl, _, ledgers = taught()
    crawl.fetch(ledgers[LAST].url)
    source = ledgers[10].url
    harpoon, ledger = crawl.fetch(
        source,
        Link("http://new.test/1", anchor="harpoon"),
        Link("http://new.test/2", anchor="ledger"),
        relevance=0.0,
    )
    assert harpoon > 0.5 > ledger


def test_priorities_are_tenths_of_probability_with_a_hash_within():
    crawl, harpoons, ledgers = taught()
    crawl.fetch(ledgers[LAST].url)
    tenths = {int(crawl.priority(link.url) * 10) for link in harpoons[10:]}
    assert len(tenths) == 1
    assert len({crawl.priority(link.url) for link in harpoons[10:]}) == 10
    assert all(0.0 <= priority < 1.0 for priority in crawl.moved.values())


def test_a_batch_of_one_class_trains_no_model():
    crawl, _, ledgers = taught(relevance_of_ledgers=RELEVANT)
    crawl.fetch(ledgers[LAST].url, relevance=RELEVANT)
    assert crawl.moved == {}
    crawl.fetch(ledgers[10].url, *urls("dull", 30))
    for url in urls("dull", 18):
        crawl.fetch(url)
    assert crawl.moved == {}
    crawl.fetch("http://dull.test/18")
    assert crawl.priority("http://ledger-host.test/11") > crawl.priority("http://dull.test/19")


def test_a_redirect_gets_its_targets_relevance():
    crawl, harpoons, ledgers = taught()
    straight = ledgers[LAST].url
    crawl.redirect(straight, f"{A}moved")
    assert crawl.moved == {}
    crawl.fetch(f"{A}moved")
    assert crawl.moved
    assert crawl.priority(harpoons[10].url) > crawl.priority(ledgers[10].url)


@pytest.mark.parametrize("outcome", ["failed", "redirected"])
def test_what_brought_no_page_is_no_part_of_a_batch(outcome):
    crawl, _, ledgers = taught()
    if outcome == "failed":
        crawl.fail(ledgers[LAST].url)
    else:
        crawl.redirect(ledgers[LAST].url, f"{A}moved")
    assert crawl.moved == {}
