"""The generated web of the long crawl, and its report."""

from collections import Counter
from dataclasses import replace

import pytest
from long_crawl import drive
from long_meter import STAGES, Meter, Window, flatness, mean_us
from long_web import LongWeb

from focused.classifier.topic_classifier import LinearTopicClassifier
from focused.crawl import build_crawl
from focused.crawl.crawl_stats import StageTimes
from focused.link_scoring.apprentice import Apprentice
from focused.orderings import PolicyInputs, find_policy
from focused.storage.state_store import StateStore
from focused.web.html.parse import parse_page
from focused.web.page import Fetched, Page
from tests.support.made_up_topic import trained
from tests.support.simulated import topic, with_politeness

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> LinearTopicClassifier:
    return trained(tmp_path_factory.mktemp("model")).classifier


@pytest.fixture(scope="module")
def web(model: LinearTopicClassifier) -> LongWeb:
    return LongWeb(model, hosts=400, pages=100_000)


def page_at(web: LongWeb, url: str) -> Page:
    answer = web.answer(url, 0.0, 0.1)
    assert isinstance(answer, Fetched)
    page = parse_page(answer)
    assert isinstance(page, Page)
    return page


def linked(web: LongWeb, pages: int) -> list[str]:
    """URLs in the order of discovery."""
    found = dict.fromkeys(web.seeds(0, 5))
    for _, url in zip(range(pages), found.copy(), strict=False):
        found |= dict.fromkeys(link.url for link in page_at(web, url).links)
    return list(found)


def test_a_page_is_the_same_at_every_request(web, model):
    again = LongWeb(model, hosts=400, pages=100_000)
    for url in linked(web, 5):
        assert web.answer(url, 0.0, 0.1) == again.answer(url, 9.0, 0.1)


def test_most_links_lead_to_pages_and_a_few_to_what_is_none(web):
    kinds = Counter(type(web.answer(url, 0.0, 0.1)).__name__ for url in linked(web, 5))
    assert kinds["Fetched"] > 0.8 * kinds.total()


def test_pages_link_to_their_own_subject_more_than_by_chance(web):
    same = []
    for url in web.seeds(0, 5):
        same += [web.subject_of(link.url) == 0 for link in page_at(web, url).links]
    assert sum(same) / len(same) > 0.55


def test_a_crawl_is_measured_window_by_window(web, model, tmp_path):
    subject = with_politeness(topic(tmp_path, *web.seeds(0, 5)), per_address=False)
    store = StateStore.open(subject.output.folder / "state", {"topic": "whales"})
    stages = StageTimes()
    policy = find_policy("focused")(PolicyInputs(model, Apprentice(model)))
    crawl = build_crawl(subject, model, policy, store, stages=stages)
    crawl.seed(subject.seeds.urls, 0.0)
    yardstick = web.answer(subject.seeds.urls[0], 0.0, 0.1)
    assert isinstance(yardstick, Fetched)
    shown = []
    with Meter(crawl, stages, subject.output.folder, 20, yardstick) as meter:
        ended, _ = drive(crawl, web, 4, meter, 60, shown.append)
    crawl.close(1_000.0)
    assert ended == "the number of pages was reached"
    assert shown == meter.windows and [each.fetched for each in shown] == [20, 20, 20]
    assert all(each.cpu_us > 0 and each.links_waiting and each.hosts for each in shown)


def test_the_last_pages_are_held_against_the_first_after_the_warm_up():
    windows = [_window(10 * n, cost) for n, cost in enumerate((900, 100, 100, 150, 120, 120), 1)]
    found = flatness(windows, warm_up=10)
    assert found["first_us"] == pytest.approx(100) and found["last_us"] == pytest.approx(120)
    assert found["ratio"] == pytest.approx(1.2)
    assert found["by_yardstick"] == pytest.approx(1.2)


def test_a_window_counts_by_its_pages():
    few, many = _window(10, 100), replace(_window(40, 200), fetched=30)
    assert mean_us([few, many]) == pytest.approx(175)


def _window(pages: int, cost_us: float) -> Window:
    stages = dict.fromkeys(STAGES, cost_us / len(STAGES))
    return Window(pages, 10, 12, stages, 1.0, 300.0, 1.0, 100.0, 100.0, 1.0, 1.0, 5, 2, 0.5, 9.0)
