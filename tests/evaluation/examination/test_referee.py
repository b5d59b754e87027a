"""The referee: what a page is worth by the labels, and which pages never count."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd
import pytest

from focused.errors import ConfigurationError
from focused.evaluation.examination.referee import Referee
from focused.recorded.store import RecordedWeb
from tests.support.two_sides import build_web

Appoint = Callable[..., Referee]


@pytest.fixture
def referee(tmp_path: Path) -> Iterator[Appoint]:
    with RecordedWeb.open(build_web(tmp_path / "web")) as web:

        def appoint(*samples: str, good: str = "Top/Whales") -> Referee:
            return Referee(web, [good], samples)

        yield appoint


def test_seeds_are_drawn_from_their_side_and_never_from_training_pages(referee: Appoint) -> None:
    samples = [f"http://whales.test/whales-{n}" for n in range(38)]
    judge = referee(*samples)
    drawn = judge.draw_seeds(True, 2, random.Random(0))
    assert sorted(drawn) == ["http://whales.test/whales-38", "http://whales.test/whales-39"]
    assert all("trade" in url for url in judge.draw_seeds(False, 5, random.Random(0)))
    with pytest.raises(ConfigurationError, match=r"on-topic:3: .* only 2 labelled pages"):
        judge.draw_seeds(True, 3, random.Random(0))


def test_a_sample_that_redirects_makes_its_target_a_training_page(referee: Appoint) -> None:
    judge = referee("http://start.test/moved")
    assert "http://whales.test/whales-9" in judge.training_urls
    assert "https://whales.test/whales-9" in judge.training_urls
    assert not judge.is_relevant("http://whales.test/whales-9")


def test_an_oracle_sees_through_redirects(referee: Appoint) -> None:
    judge = referee()
    assert judge.is_relevant("http://start.test/moved")
    assert not judge.is_relevant("http://start.test/")
    assert not judge.is_relevant("http://nowhere.test/")


def test_the_same_content_counts_once_under_whatever_address(referee: Appoint) -> None:
    judge = referee()
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
    assert judge.verdicts(pages).tolist() == [True, False, False]
    assert judge.verdicts(pages[1:]).tolist() == [True, False]
    assert judge.hosts(pages) == 1


def test_a_topic_without_a_page_in_the_web_is_refused(referee: Appoint) -> None:
    with pytest.raises(ConfigurationError, match=r"Top/Stars.*nothing can be found there"):
        referee(good="Top/Stars")
