"""How often a crawl does what costs time: bounds that no machine's speed moves.

A small crawl of a made-up web, by the real classifier and apprentice, parser, store and archive.
Who parses a page twice, or commits for each link, is told by one of these. Where a bound is a
number it stands a tenth above what was counted when it was set.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
from long_web import LongWeb
from selectolax.lexbor import LexborHTMLParser

from focused.classifier.topic_classifier import LinearTopicClassifier
from focused.link_scoring.apprentice import Apprentice
from focused.link_scoring.static_features import compute_static_features
from focused.storage.journal import Journal
from focused.storage.tables import Tables
from focused.text import word_hashes
from focused.web.page import Outcome, Page
from tests.support.counting import Count, count_calls, count_method
from tests.support.made_up_topic import trained
from tests.support.simulated import Simulation, topic, with_politeness

PAGES = 150
_WRITES = ("put", "put_many", "put_meta", "delete", "add", "add_many", "discard")
_LIFE = ("replay", "commit_transaction", "abort")


class Answers:
    """What the web answers, as the mapping that a simulation asks; remembers what was asked."""

    def __init__(self, web: LongWeb) -> None:
        self._web = web
        self.asked: list[str] = []

    def get(self, url: str, _: Outcome) -> Outcome:
        self.asked.append(url)
        return self._web.answer(url, 0.0, 0.1)


@dataclass
class Counted:
    """A crawl, and what was counted in it."""

    crawl: Simulation
    asked: list[str]
    counts: Mapping[str, Count]

    def __getitem__(self, name: str) -> Count:
        return self.counts[name]

    @property
    def pages(self) -> list[Page]:
        return [each.page for each in self.crawl.settled if each.page is not None]

    @property
    def links(self) -> int:
        return sum(len(page.links) for page in self.pages)

    @property
    def chars(self) -> int:
        """Of the pages' visible text."""
        return sum(len(page.text) for page in self.pages)


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Counted]:
    folder = tmp_path_factory.mktemp("counted")
    classifier = trained(folder).classifier
    web = LongWeb(classifier, hosts=60, pages=20_000)
    subject = with_politeness(topic(folder, *web.seeds(0, 5)), per_address=False)
    with pytest.MonkeyPatch.context() as patch:
        counts = _count_all(patch)
        answers: Any = Answers(web)
        crawl = Simulation(subject, answers, classifier=classifier, scorer=Apprentice(classifier))
        crawl.run(pages=PAGES)
        yield Counted(crawl, answers.asked, {name: replace(each) for name, each in counts.items()})
        crawl.close()


def _count_all(patch: pytest.MonkeyPatch) -> dict[str, Count]:
    reads = Count()
    for name in vars(Tables):
        if not name.startswith("_") and name not in (*_WRITES, *_LIFE):
            count_method(patch, Tables, name, count=reads)
    return {
        "trees": count_calls(patch, LexborHTMLParser),
        "classified": count_method(patch, LinearTopicClassifier, "classify_hashed"),
        "verdicts": count_method(patch, LinearTopicClassifier, "score_texts"),
        "hashed": count_calls(patch, word_hashes._locate_words, _chars),
        "scored": count_method(patch, Apprentice, "score_merged", _links_scored),
        "texts": count_calls(patch, compute_static_features, lambda _, links: len(links)),
        "rescored": count_method(patch, Apprentice, "rescore"),
        "examples": count_method(patch, Apprentice, "learn"),
        "committed": count_method(patch, Journal, "append", lambda _, steps: len(steps)),
        "written": count_method(patch, Journal, "_write", lambda _, data: len(data)),
        "forced": count_method(patch, os, "fsync"),
        "reads": reads,
    }


def _chars(texts: Sequence[str]) -> int:
    return sum(map(len, texts))


def _links_scored(_: Apprentice, visit: object, links: list[object], waiting: object) -> int:
    return len(links)


def test_a_page_is_parsed_once(counted):
    assert counted["trees"].calls == len(counted.pages) >= PAGES


def test_a_page_is_classified_once(counted):
    assert counted["classified"].calls == len(counted.pages)


def test_the_links_of_a_page_are_scored_in_one_batch(counted):
    assert counted["scored"].calls <= len(counted.pages)
    assert counted["scored"].amount <= counted.links


def test_the_texts_of_links_that_are_not_scored_are_neither_hashed_nor_classified(counted):
    assert counted["texts"].amount == counted["scored"].amount < counted.links


def test_the_topic_model_is_asked_once_about_all_texts_of_a_page_s_links(counted):
    assert counted["verdicts"].calls <= 1.1 * len(counted.pages)


def test_the_words_of_a_page_are_hashed_once_and_those_around_its_links(counted):
    """Classification and training share them; all texts of its links are hashed together.

    The spam classifier hashes the text without its links. URL and anchor of a followed link are
    hashed when it is scored again, and when it is learned from.
    """
    of_followed = counted["rescored"].calls + counted["examples"].calls
    assert counted["hashed"].calls <= 3.2 * len(counted.pages) + of_followed
    assert counted["hashed"].amount <= 4.4 * counted.chars


def test_hardly_more_links_are_scored_again_than_are_offered(counted):
    assert counted["rescored"].calls <= 3.3 * len(counted.pages)


def test_a_page_is_trained_on_once(counted):
    assert counted["examples"].calls <= len(counted.pages)


def test_a_fetch_costs_one_commit_as_it_is_sent_and_one_as_it_is_settled(counted):
    seeding = 1
    assert counted["committed"].calls <= 2 * len(counted.asked) + seeding


def test_a_page_with_twenty_links_costs_ninety_writes(counted):
    assert counted["committed"].amount <= 100 * len(counted.pages)


def test_a_page_with_twenty_links_costs_seventeen_reads(counted):
    assert counted["reads"].calls <= 27 * len(counted.pages)


def test_a_page_with_twenty_links_costs_ten_kilobytes_of_journal(counted):
    assert counted["written"].amount <= 11_400 * len(counted.pages)


def test_no_page_waits_for_the_disk(counted):
    opening = 1
    assert counted["forced"].calls <= opening
