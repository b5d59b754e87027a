"""Ground truth: which pages are on topic by labels, and which never count."""

import functools
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd
import pytest

from focused.errors import ConfigurationError
from focused_lab.ground_truth import GroundTruth
from focused_lab.recorded_web.recorded_web import RecordedWeb
from focused_lab.simulation.link_graph import open_link_graph
from focused_lab.simulation.parsed_web import ParsedWeb
from tests.lab.two_sides import build_web
from tests.support.recorded_web import html, page, record_web

MakeGroundTruth = Callable[..., GroundTruth]


@pytest.fixture
def ground_truth(tmp_path: Path) -> Iterator[MakeGroundTruth]:
    with RecordedWeb.open(build_web(tmp_path / "web")) as web:

        def swap(*samples: str, good: str = "Top/Whales") -> GroundTruth:
            return GroundTruth(web, [good], samples)

        yield swap


def test_seeds_are_sampled_on_or_off_topic_and_never_from_training_pages(ground_truth):
    samples = [f"http://whales.test/whales-{n}" for n in range(38)]
    truth = ground_truth(*samples)
    drawn = truth.sample_seeds(True, 2, random.Random(0))
    assert sorted(drawn) == ["http://whales.test/whales-38", "http://whales.test/whales-39"]
    assert all("trade" in url for url in truth.sample_seeds(False, 5, random.Random(0)))
    with pytest.raises(ConfigurationError, match=r"on-topic:3: .* only 2 labelled pages"):
        truth.sample_seeds(True, 3, random.Random(0))


def test_a_sample_that_redirects_makes_its_target_a_training_page(ground_truth):
    truth = ground_truth("http://start.test/moved")
    assert "http://whales.test/whales-9" in truth.training_urls
    assert "https://whales.test/whales-9" in truth.training_urls
    assert not truth.is_relevant("http://whales.test/whales-9")


def test_an_oracle_sees_through_redirects(ground_truth):
    truth = ground_truth()
    assert truth.is_relevant("http://start.test/moved")
    assert not truth.is_relevant("http://start.test/")
    assert not truth.is_relevant("http://nowhere.test/")


def test_the_same_content_counts_once_under_whatever_address(ground_truth):
    truth = ground_truth()
    url = "http://whales.test/whales-3"
    other = "https://whales.test/whales-3"
    pages = pd.DataFrame(
        {
            "url": [url, other, "http://trade.test/trade-1"],
            "outcome": "fetched",
            "training": False,
            "duplicate_of": [None, url, None],
            "host": ["whales.test", "whales.test", "trade.test"],
        }
    )
    assert truth.relevance_of(pages).tolist() == [True, False, False]
    assert truth.relevance_of(pages[1:]).tolist() == [True, False]
    assert truth.count_hosts(pages) == 1


@pytest.fixture
def copied(tmp_path: Path) -> Iterator[MakeGroundTruth]:
    """Two pages on whales, each at two URLs without a redirect, and one on trade."""
    texts = {"one": "krill", "one-again": "krill", "two": "pod", "two-again": "pod", "bank": "gold"}
    pages = [page(f"http://a.test/{name}", html("Page", text=text)) for name, text in texts.items()]
    labels = [(f"http://a.test/{name}", "Top/Whales") for name in texts if name != "bank"]
    with ParsedWeb(RecordedWeb.open(record_web(tmp_path / "web", *pages, labels=labels))) as web:

        def swap(*samples: str) -> GroundTruth:
            graph = functools.partial(open_link_graph, web)
            return GroundTruth(web.web, ["Top/Whales"], samples, graph=graph)

        yield swap


def test_a_copy_of_a_training_page_counts_as_little_as_the_page(copied):
    truth = copied("http://a.test/one")
    assert "http://a.test/one-again" in truth.training_urls
    assert not truth.is_relevant("http://a.test/one-again")
    assert truth.relevant == {"http://a.test/two", "http://a.test/two-again"}
    assert truth.countable_pages == 3


def test_what_can_be_found_is_contents_not_addresses(copied):
    assert (len(copied().relevant), copied().relevant_count) == (4, 2)
    assert copied("http://a.test/one").relevant_count == 1


def test_reachable_are_contents_without_training_pages(copied):
    pages = [f"http://a.test/{name}" for name in ("one", "one-again", "two", "bank")]
    assert copied().count_reachable(pages) == 2
    assert copied("http://a.test/one").count_reachable(pages) == 1


def test_a_sample_that_is_no_page_has_no_copies(copied):
    assert copied("http://a.test/robots.txt", "http://b.test/").countable_pages == 5


def test_a_topic_without_a_page_in_the_web_is_refused(ground_truth):
    with pytest.raises(ConfigurationError, match=r"Top/Stars.*nothing can be found there"):
        ground_truth(good="Top/Stars")


def test_of_a_training_page_its_copies_and_unlabelled_pages_there_is_no_verdict(copied):
    truth = copied("http://a.test/one")
    for url in ("one", "one-again", "bank", "nowhere"):
        assert truth.known_relevance(f"http://a.test/{url}") is None
    assert truth.known_relevance("http://a.test/two") is True


def test_a_verdict_is_of_the_page_that_a_redirect_leads_to(ground_truth):
    truth = ground_truth()
    assert truth.known_relevance("http://start.test/moved") is True
    assert truth.known_relevance("http://trade.test/trade-1") is False
    assert truth.known_relevance("http://start.test/") is None
