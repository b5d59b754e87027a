"""Spam in a crawl: it neither counts nor guides, as the topic file asks."""

import random
from dataclasses import replace

import pytest

from focused.crawl.spam_filter import rate_text
from focused.spam.spam_training import fit_spam_classifier, repeat_keywords
from focused.web.host_names import site_key
from focused.web.page import Classification, FailureKind, Page
from tests.support.prose import prose_pages
from tests.support.simulated import page, site, topic
from tests.support.whale_models import StrictWhaleClassifier, WhaleClassifier

GOOD, SPAM = "http://good.test/", "http://spam.test/"
SPAM_PAGES = 30


class RatingClassifier(WhaleClassifier):
    """Pages about whales are on topic; spam is rated by the documentation's prose."""

    def __init__(self) -> None:
        self.spam = fit_spam_classifier(prose_pages()[::2], seed=1)


@pytest.fixture(scope="module")
def classifier() -> RatingClassifier:
    return RatingClassifier()


@pytest.fixture(scope="module")
def web():
    rng, texts = random.Random(2), [page.text for page in prose_pages()]
    good = [page(f"{GOOD}{i}", f"{GOOD}{i + 1}", text=f"whale {texts[i]}") for i in range(15)]
    spam = [
        page(
            f"{SPAM}{i}",
            f"{SPAM}{i + 1}",
            text=f"whale {repeat_keywords(rng.sample(texts, 6), 250, rng)}",
        )
        for i in range(SPAM_PAGES)
    ]
    return site(
        page("http://seed.test/", f"{GOOD}0", f"{SPAM}0", text=f"whale {texts[40]}"), *good, *spam
    )


def crawled(simulate, folder, web, classifier, action):
    subject = topic(folder, "http://seed.test/")
    subject = replace(subject, scope=replace(subject.scope, spam=action))
    return simulate(subject, web, classifier=classifier).run()


def test_a_spam_site_is_closed_and_good_pages_are_harvested(simulate, tmp_path, web, classifier):
    crawl = crawled(simulate, tmp_path, web, classifier, "avoid")
    assert len(crawl.on_topic(GOOD)) == 15
    assert len(crawl.on_topic(SPAM)) < 10
    assert len([url for _, url in crawl.asked if url.startswith(SPAM)]) < SPAM_PAGES
    assert "trap: spam site" in {line.kind for line in crawl.crawl.traps.stats.lines()}
    assert crawl.crawl.counters.of_features["spam"] > 0


def test_a_site_that_was_requested_by_a_spider_or_an_operator_is_trusted(
    simulate, tmp_path, web, classifier
):
    subject = topic(tmp_path, "http://seed.test/")
    crawl = simulate(subject, web, classifier=classifier)
    crawl.crawl.enqueue_url(f"{SPAM}0", 1.0, crawl.now)
    crawl.run()
    assert len(crawl.on_topic(SPAM)) == SPAM_PAGES


def test_report_stores_the_probability_and_changes_nothing(simulate, tmp_path, web, classifier):
    crawl = crawled(simulate, tmp_path, web, classifier, "report")
    assert len(crawl.on_topic(SPAM)) == SPAM_PAGES
    assert crawl.rows[f"{SPAM}{SPAM_PAGES - 1}"]["spam"] > 0.5
    assert crawl.rows[f"{GOOD}14"]["spam"] < 0.1


def test_ignore_rates_nothing(simulate, tmp_path, web, classifier):
    crawl = crawled(simulate, tmp_path, web, classifier, "ignore")
    assert not any("spam" in row for row in crawl.rows.values())


@pytest.mark.parametrize(
    ("relevance", "on_topic", "is_rated"),
    [(0.9, True, True), (0.2, False, True), (0.01, True, True), (0.01, False, False)],
)
def test_texts_far_off_topic_are_not_rated(classifier, relevance, on_topic, is_rated):
    texts = [page.text for page in prose_pages()]
    made = Page(SPAM, text=repeat_keywords(texts, 250, random.Random(2)))
    evidence = rate_text(made, Classification(relevance, on_topic), classifier)
    assert (evidence is not None) is is_rated


@pytest.mark.parametrize(("word", "is_rated"), [("whale", True), ("ship", False)])
def test_only_pages_near_the_topic_are_rated_and_vouch_for_the_sites_they_link_to(
    simulate, tmp_path, classifier, word, is_rated
):
    class Strict(StrictWhaleClassifier):
        spam = classifier.spam

    texts = [f"{word} {page.text}" for page in prose_pages()[:2]]
    pages = [page(f"{GOOD}{i}", "http://linked.test/", text=text) for i, text in enumerate(texts)]
    seed = page("http://seed.test/", f"{GOOD}0", f"{GOOD}1")
    crawl = simulate(topic(tmp_path, "http://seed.test/"), site(seed, *pages), classifier=Strict())
    crawl.run()
    linked = crawl.store.tables.get("site_trust", site_key("http://linked.test/"))
    assert (linked is not None) is is_rated
    assert all((crawl.rows[f"{GOOD}{i}"]["spam"] > 0.0) is is_rated for i in range(2))


def test_a_killed_crawl_knows_the_closed_site(simulate, tmp_path, web, classifier):
    crawl = crawled(simulate, tmp_path, web, classifier, "avoid")
    reasons = {row["failure"] for row in crawl.rows.values()}
    crawl.close()
    again = crawled(simulate, tmp_path, web, classifier, "avoid")
    assert again.crawl.traps.refusal_reason(f"{SPAM}new") == "trap: spam site"
    assert FailureKind.INTERNAL_ERROR not in reasons
