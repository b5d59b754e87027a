"""A model that is replaced during a crawl, or between two runs, is used."""

from dataclasses import replace
from pathlib import Path

import pytest
import sklearn.linear_model  # noqa: F401  # a model is replaced while a crawl runs: no time to import

from focused.classifier.model_file import load_model, save_model
from tests.live.test_training import start, write
from tests.live.webs import wait_for_answers
from tests.support.crawling import Finished, finish
from tests.support.made_up_topic import words
from tests.support.recorded_web import MemoryWeb, html, page, served

SEED = "http://start.test/"
NEW = [f"http://new{n % 3}.test/{kind}/{n}" for n in range(120) for kind in ("cheese", "garden")]
SAMPLES = [
    (category, f"http://{kind}{n % 4}.test/{n}")
    for category, kind in (("Top/Food/Cheese", "cheese"), ("Top/Home/Garden", "garden"))
    for n in range(14)
]


def web() -> MemoryWeb:
    """Samples, and 240 pages on three hosts that all hang on one."""
    pages = [page(SEED, html("start", *NEW))]
    for category, url in SAMPLES:
        kind, number = "cheese" if "Food" in category else "garden", url.rpartition("/")[2]
        pages.append(page(url, html(f"{kind} {number}", text=words(kind, int(number)))))
    for url in NEW:
        kind, number = url.split("/")[-2:]
        pages.append(page(url, html(kind, text=words(kind, 100 + int(number)))))
    return MemoryWeb(*pages)


def never(path: Path) -> None:
    """Replace the model by one that calls nothing on topic."""
    made = load_model(path)
    calibration = replace(made.classifier.calibration, threshold=0.9999)
    save_model(replace(made, classifier=replace(made.classifier, calibration=calibration)), path)


@pytest.fixture(scope="module")
def retrained(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """A crawl whose model was replaced when it had some twenty pages."""
    topic = write(tmp_path_factory.mktemp("retrained"), SAMPLES)
    with served(web()) as site:
        crawl = start(topic, site)
        # Samples with their robots.txt, then the seed and the first pages.
        wait_for_answers(site, len(SAMPLES) + 8 + 24, crawl)
        never(topic.parent / "models" / "cheese.joblib")
        return finish(crawl, topic)


def test_the_crawl_ends_in_order(retrained):
    assert retrained.status == 0, retrained.output
    assert set(NEW) <= set(retrained.fetched())


def test_pages_are_classified_by_one_model_and_then_by_the_other(retrained):
    pages = retrained.pages.sort_values("seq")
    models = list(dict.fromkeys(pages["model"]))
    assert len(models) == 2
    first = pages["model"] == models[0]
    assert first.sum() >= 10 and (~first).sum() >= 10
    assert list(first) == sorted(first, reverse=True)
    assert pages[first]["on_topic"].any() and not pages[~first]["on_topic"].any()


def test_the_log_tells_of_it(retrained):
    log = (retrained.folder / "crawl.log").read_text(encoding="utf-8")
    assert "classifies from now on" in log
