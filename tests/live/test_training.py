"""Training live: the directory's pages are fetched politely, a model is trained, the crawl runs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from focused_lab.recorded_web.replay_server import AccessLogEntry
from tests.live.webs import answered, wait_for_answers
from tests.support.crawling import ROOT, finish
from tests.support.forked import ForkedCommand
from tests.support.made_up_topic import topic_text, words
from tests.support.recorded_web import MemoryWeb, Served, html, impolite, page, redirect, served

DELAY_S = 0.1
SEED = "http://start.test/"
MOVED = "http://cheese0.test/new"
TOPIC = topic_text(SEED, DELAY_S)


def samples() -> list[tuple[str, str]]:
    """Twelve pages about cheese and sixteen about gardens, on four hosts each."""
    cheese = [("Top/Food/Cheese", f"http://cheese{n % 4}.test/{n}") for n in range(12)]
    return cheese + [("Top/Home/Garden", f"http://garden{n % 4}.test/{n}") for n in range(16)]


def web() -> MemoryWeb:
    pages = []
    for number, (category, url) in enumerate(samples()):
        kind = "cheese" if "Food" in category else "garden"
        pages.append(page(url, html(f"{kind} {number}", text=words(kind, number))))
    moved = pages.pop(0)
    pages += [redirect(moved.url, "/new"), page(MOVED, moved.body)]
    new = [f"http://new.test/{kind}/{n}" for kind in ("cheese", "garden") for n in range(5)]
    pages.append(page(SEED, html("start", samples()[1][1], MOVED, *new)))
    for url in new:
        kind, number = url.split("/")[-2:]
        pages.append(page(url, html(kind, text=words(kind, 100 + int(number)))))
    robots = "User-agent: *\nDisallow: /5\n"
    return MemoryWeb(*pages, page("http://cheese1.test/robots.txt", robots))


def start(topic: Path, site: Served, **settings: object) -> ForkedCommand:
    """Run ``scrapy crawl topic`` without ``FOCUSED_MODELS``, so that it needs a model."""
    return ForkedCommand(
        arguments(topic, site, **settings), environment={"PYTHONWARNINGS": "default"}
    )


def arguments(topic: Path, site: Served, **settings: object) -> list[str]:
    options = ["-a", f"topic={topic}"]
    for name, value in {"FOCUSED_REPLAY": site.address, **settings}.items():
        options += ["-s", f"{name}={value}"]
    return ["scrapy", "crawl", "topic", *options]


def start_interpreter(topic: Path, site: Served, **settings: object) -> subprocess.Popen[str]:
    """The same in a process that has imported nothing yet."""
    return subprocess.Popen(
        [sys.executable, "-m", *arguments(topic, site, **settings)],
        cwd=ROOT,
        env=os.environ | {"PYTHONWARNINGS": "default"},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def write(folder: Path, listed: list[tuple[str, str]]) -> Path:
    """Write a topic file whose directory lists these samples."""
    lines = ("\t".join((category, url, "A page")) for category, url in listed)
    (folder / "directory.tsv").write_text("\n".join(lines) + "\n")
    topic = folder / "cheese.toml"
    topic.write_text(TOPIC)
    return topic


class TwoRuns:
    """The same command twice: the first trains, the second has its model."""

    def __init__(self, folder: Path) -> None:
        self.topic = write(folder, samples())
        with served(web()) as site:
            self.first = finish(start(self.topic, site), self.topic)
            ended_at = time.monotonic()
            file = folder / "modules"
            extension = '{"tests.live.modules_at_start.ModulesAtStart": 0}'
            again = start_interpreter(self.topic, site, EXTENSIONS=extension, MODULES_FILE=file)
            self.second = finish(again, self.topic)
            self.modules_at_start = set(file.read_text().split())
        self.accesses = [each for each in site.accesses if each.start < ended_at]
        self.asked_again = [each for each in site.accesses if each.start >= ended_at]


SLOW_TO_IMPORT = (
    "focused.rounds",
    "fsspec",
    "sklearn",
    "pandas",
    "pyarrow",
    "matplotlib",
    "joblib",
    "rich",
    "scipy.stats",
    "scipy.optimize",
    "markdown_it",
    "pypdfium2",
)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> TwoRuns:
    return TwoRuns(tmp_path_factory.mktemp("runs"))


def test_a_crawl_without_a_model_says_that_it_trains_and_does(runs):
    assert runs.first.status == 0, runs.first.output
    assert "Traceback" not in runs.first.output
    assert "there is no model yet" in runs.first.output
    models = runs.topic.parent / "models"
    assert (models / "cheese.joblib").is_file()
    card = next(path for path in models.iterdir() if path.suffix == ".md").read_text()
    assert "Top/Food" in card


def test_the_trained_model_tells_the_pages_apart(runs):
    pages = runs.first.pages
    new = pages[pages["host"] == "new.test"]
    assert len(new) == 10
    assert list(new["on_topic"]) == ["cheese" in url for url in new.index]


def test_samples_are_fetched_as_politely_as_any_page(runs):
    by_host: dict[str, list[AccessLogEntry]] = {}
    for access in sorted(runs.accesses, key=lambda x: x.start):
        by_host.setdefault(access.host, []).append(access)
    assert {accesses[0].path for accesses in by_host.values()} == {"/robots.txt"}
    assert not impolite(runs.accesses, DELAY_S, slack_s=0.02)
    assert "/5" not in [x.path for x in by_host["cheese1.test"]]
    assert {x.user_agent for x in runs.accesses} == {"FocusedTest/0.1 (+http://example.org/bot)"}


def test_a_sample_that_moved_is_found_at_its_new_address(runs):
    samples_folder = runs.topic.parent / "models" / "cheese.samples"
    assert (samples_folder / "pages.warc.gz").is_file()
    assert ("cheese0.test", "/new") in [(x.host, x.path) for x in runs.accesses]


@pytest.mark.parametrize("url", [samples()[1][1], MOVED], ids=["listed", "moved"])
def test_sample_pages_are_no_harvest(runs, url):
    row = runs.first.pages.loc[url]
    assert row["on_topic"]
    assert row["training"]


def test_the_second_crawl_has_its_model_and_asks_for_nothing_again(runs):
    assert runs.second.status == 0, runs.second.output
    assert "no model" not in runs.second.output
    assert runs.asked_again == []
    pd.testing.assert_frame_equal(runs.second.pages, runs.first.pages)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_samples_are_fetched_stops_and_the_same_command_continues(tmp_path, how):
    topic = write(tmp_path, samples())
    with served(web()) as site:
        process = start(topic, site)
        wait_for_answers(site, 14, process)
        process.send_signal(how)
        stopped = finish(process, topic)
        trained_on_half = (tmp_path / "models/cheese.joblib").exists()
        before = answered(site)
        ended = finish(start(topic, site), topic)
    assert stopped.status == 130, stopped.output
    assert "Traceback" not in stopped.output
    assert "resumes" in stopped.output.splitlines()[-1]
    assert not trained_on_half
    asked = [f"http://{x.host}{x.path}" for x in site.accesses]
    only_sampled = {url for _, url in samples()} - {samples()[1][1]}
    assert only_sampled.isdisjoint(set(asked[:before]) & set(asked[before:]))
    assert ended.status == 0, ended.output
    assert len(ended.fetched()) == 13


def test_with_a_model_a_crawl_begins_without_what_is_slow_to_import(runs):
    assert "focused.crawl.loop" in runs.modules_at_start
    assert runs.modules_at_start.isdisjoint(SLOW_TO_IMPORT)
