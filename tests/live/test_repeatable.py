"""One request at a time without delay over a recorded web: all runs fetch the same pages."""

import random
from pathlib import Path

from focused_lab.recorded_web.replay_faults import FaultPlan, parse_fault
from tests.support.crawling import crawl, write_topic
from tests.support.recorded_web import MemoryWeb, html, page, served

HOSTS = ("a", "b", "c", "d")
PAGES = 60


def web() -> MemoryWeb:
    """Sixty pages on four hosts, a third of them on topic, with random links."""
    rng = random.Random(16)
    urls = [f"http://{HOSTS[n % 4]}.test/{n if n else ''}" for n in range(PAGES)]
    pages = []
    for number, url in enumerate(urls):
        links = rng.sample(urls, 6)
        text = f"page {number} " + ("about a whale" if number % 3 == 0 else "about trade")
        pages.append(page(url, html(f"Page {number}", *links, text=text)))
    return MemoryWeb(*pages)


def fetched(folder: Path, *faults: str) -> list[str]:
    """The pages of one crawl in the order in which they came."""
    topic = write_topic(folder, "http://a.test/", budget="pages = 40")
    plan = FaultPlan(tuple(map(parse_fault, faults)))
    with served(web(), plan) as site:
        done = crawl(
            topic,
            site.address,
            FOCUSED_CONCURRENCY=1,
            FOCUSED_MODELS="tests.support.whale_models.learning_models",
        )
    assert done.status == 0, done.output
    return done.fetched()


def test_slow_answers_do_not_change_what_is_fetched_or_in_which_order(tmp_path):
    usual = fetched(tmp_path / "usual")
    assert len(usual) == 40
    assert fetched(tmp_path / "slow", "*:kind=latency,latency_s=0-0.05") == usual
