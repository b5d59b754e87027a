"""Replacing the classifier during a crawl."""

from collections.abc import Sequence

import numpy as np
import pytest

from focused.classifier.topic_classifier import SwappableClassifier
from focused.crawl.online_training import ModelHistory, ModelPeriod
from focused.link_scoring.apprentice import Apprentice
from focused.web.page import Classification, Page
from tests.support.simulated import page, site, topic

A = "http://a.test/"


class WordClassifier:
    """Speaks for pages and texts with its word."""

    threshold = 0.5

    def __init__(self, word: str) -> None:
        self._word = word

    def classify(self, page: Page) -> Classification:
        relevance = 0.95 if self._word in f"{page.title} {page.text}" else 0.05
        return Classification(relevance, relevance >= self.threshold)

    def score_texts(self, texts: Sequence[str]) -> np.ndarray:
        return np.array([3.0 if self._word in text else -3.0 for text in texts])


@pytest.fixture
def whales_then_trade(simulate, tmp_path):
    """A crawl whose first classifier looks for whales; its first page has links of both kinds."""
    whales = [f"{A}whale/{n}" for n in range(4)]
    trades = [f"{A}trade/{n}" for n in range(4)]
    web = site(
        page(A, *whales, *trades, text="whale and trade"),
        *(page(url, text=f"whale {url}") for url in whales),
        *(page(url, text=f"trade {url}") for url in trades),
    )
    office = SwappableClassifier(WordClassifier("whale"), "first")
    return simulate(topic(tmp_path, A), web, classifier=office, scorer=Apprentice(office))


def terms_of(simulation) -> Sequence[ModelPeriod]:
    return ModelHistory(simulation.classifier, simulation.scorer, simulation.store.tables).periods


def test_links_queued_are_scored_by_the_classifier_that_followed(whales_then_trade):
    crawl = whales_then_trade.run(pages=2)
    assert crawl.urls[-1].startswith(A + "whale")
    crawl.crawl.swap_model(WordClassifier("trade"), "second", crawl.now)
    crawl.run(pages=6)
    assert [url.split("/")[3] for url in crawl.urls[2:]] == ["trade"] * 4


def test_a_link_offered_first_is_scored_again_though_it_was_not_best(whales_then_trade):
    crawl = whales_then_trade.run(pages=1)
    crawl.crawl.swap_model(WordClassifier("trade"), "second", crawl.now)
    crawl.run(pages=2)
    last = crawl.settled[-1]
    anchor = last.link.features[Apprentice.feature_names.index("anchor")]
    assert anchor == (3.0 if "trade" in last.link.url else -3.0)


def test_the_links_of_one_host_are_scored_again_for_one_fetch(simulate, tmp_path):
    """Those of all hosts in a row would keep the reactor from its other work."""
    hosts = [f"http://h{n}.test/" for n in range(5)]
    links = [f"{host}whale/{n}" for host in hosts for n in range(4)]
    batches: list[int] = []

    class Counting(Apprentice):
        def rescore(self, links):
            batches.append(len(links))
            return super().rescore(links)

    office = SwappableClassifier(WordClassifier("whale"), "first")
    crawl = simulate(
        topic(tmp_path, A), site(page(A, *links)), classifier=office, scorer=Counting(office)
    )
    crawl.run(pages=1).crawl.swap_model(WordClassifier("trade"), "second", crawl.now)
    batches.clear()
    crawl.crawl.next(crawl.now)
    assert len([count for count in batches if count > 1]) == 1


def test_each_page_tells_which_classifier_classified_it(whales_then_trade):
    crawl = whales_then_trade.run(pages=3)
    crawl.crawl.swap_model(WordClassifier("trade"), "second", crawl.now)
    crawl.run()
    rows = sorted(crawl.rows.values(), key=lambda row: row["seq"])
    assert [row["model"] for row in rows] == ["first"] * 3 + ["second"] * 6
    on_topic = {row["url"] for row in rows[3:] if row["on_topic"]}
    assert on_topic and all("trade" in url for url in on_topic)


def test_a_restarted_crawl_knows_since_when_its_classifier_classifiers(whales_then_trade):
    crawl = whales_then_trade.run(pages=1)
    changed_at = crawl.now
    crawl.crawl.swap_model(WordClassifier("trade"), "second", changed_at)
    office = SwappableClassifier(WordClassifier("trade"), "second")
    crawl.classifier, crawl.scorer = office, Apprentice(office)
    crawl.restart(later_s=100.0).run(pages=6)
    assert [(term.classifier, term.since) for term in terms_of(crawl)][1:] == [
        ("second", changed_at)
    ]
    features = {each.link.url: each.link.features for each in crawl.settled[1:]}
    column = Apprentice.feature_names.index("anchor")
    assert {url: row[column] for url, row in features.items()} == {
        url: 3.0 if "trade" in url else -3.0 for url in features
    }


def test_a_crawl_taken_up_with_another_model_is_scored_by_that(whales_then_trade):
    crawl = whales_then_trade.run(pages=2)
    office = SwappableClassifier(WordClassifier("trade"), "second")
    crawl.classifier, crawl.scorer = office, Apprentice(office)
    crawl.restart(later_s=100.0).run(pages=6)
    assert [url.split("/")[3] for url in crawl.urls[2:]] == ["trade"] * 4
    assert [term.classifier for term in terms_of(crawl)] == ["first", "second"]


def test_the_same_model_taken_up_again_is_the_same_term(whales_then_trade):
    crawl = whales_then_trade.run(pages=2).restart(later_s=100.0).run(pages=4)
    assert len(terms_of(crawl)) == 1
