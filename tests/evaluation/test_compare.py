"""Comparing policies: who judges, what counts, what is told."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from focused.cli import main
from focused.errors import ConfigurationError
from focused.evaluation.examination.examiner import (
    Candidate,
    Result,
    Terms,
    area_under,
    examine,
    parse_seeds,
    plan,
)
from focused.evaluation.examination.referee import Referee
from focused.evaluation.examination_report import run_row, summary
from focused.learning.protocols import Visit
from focused.policies import POLICIES, Aids
from focused.recorded.store import RecordedWeb, RecordedWebWriter
from focused.topic_file import load_topic
from focused.web.page import Judgement, Link, Page
from tests.support.crawling import ROOT, write_topic
from tests.support.keyword_guide import WhaleJudge, WhaleScorer
from tests.support.recorded_web import html

HTML = {"content-type": "text/html; charset=utf-8"}
WORDS = {
    "Top/Whales": ("whale", "blubber", "harpoon", "krill", "baleen", "spout", "fluke", "pod"),
    "Top/Trade": ("ledger", "price", "tariff", "market", "invoice", "freight", "bank", "bond"),
}


def build_web(folder: Path, each: int = 40) -> Path:
    """Two categories on two hosts; the start links to both, each page to the next ones."""
    rng = random.Random(1)
    writer = RecordedWebWriter(folder, "two-sides", "test")
    labels = []
    start = []
    for category, words in WORDS.items():
        name = category.split("/")[1].lower()
        urls = [f"http://{name}.test/{name}-{n}" for n in range(each)]
        start += urls[:2]
        for n, url in enumerate(urls):
            links = urls[n + 1 : n + 4]
            text = " ".join(rng.choices(words, k=80))
            writer.add(url, 200, HTML, html(f"{name} {n}", *links, text=f"{text} {n}"))
            labels.append((url, category))
    writer.add("http://start.test/", 200, HTML, html("Start", *reversed(start)))
    writer.add("http://start.test/moved", 301, {"location": "http://whales.test/whales-9"}, b"")
    writer.finish(labels)
    return folder


def write_compared(folder: Path) -> Path:
    # One connection and patience: what a policy chooses, not which host is free, decides.
    politeness = "concurrency = 1\npatience = 10"
    path = write_topic(folder, "http://start.test/", delay_s=1.0, politeness=politeness)
    lines = [
        f"{category}\thttp://{(low := category.split('/')[1].lower())}.test/{low}-{n}\t\t\n"
        for category in WORDS
        for n in range(1, 40, 4)
    ]
    (folder / "directory.tsv").write_text("".join(lines))
    return path


def candidate(folder: Path, samples: Sequence[str] = ()) -> Candidate:
    topic = load_topic(write_compared(folder))
    return Candidate(topic, WhaleJudge(), WhaleScorer(), frozenset(samples))


def run_all(folder: Path, *policies: str, jobs: int = 1, **changed: Any) -> dict[str, Result]:
    web = build_web(folder / "web")
    seeds, terms = changed.pop("seeds", "topic"), Terms(**{"budget": 20} | changed)
    trials = plan(["whales"], policies, [seeds], 1)
    results = examine(web, {"whales": candidate(folder)}, trials, terms, jobs=jobs)
    return {each.trial.policy: each for each in results}


class ContraryJudge(WhaleJudge):
    def judge(self, page: Page) -> Judgement:
        wrong = super().judge(page)
        return Judgement(1 - wrong.relevance, not wrong.on_topic)


def test_the_labels_judge_whatever_the_classifier_says(tmp_path: Path) -> None:
    web, terms = build_web(tmp_path / "web"), Terms(20)
    ours = candidate(tmp_path)
    contrary = replace(ours, judge=ContraryJudge())
    harvests = [
        next(examine(web, {"whales": each}, plan(["whales"], ["bfs"], ["topic"], 1), terms)).harvest
        for each in (ours, contrary)
    ]
    assert harvests[0] == harvests[1] > 0


def test_training_pages_count_neither_as_harvest_nor_as_fetched(tmp_path: Path) -> None:
    web = build_web(tmp_path / "web")
    # An address that differs in scheme from the recorded one is the same page.
    samples = [f"https://whales.test/whales-{n}" for n in range(0, 40, 2)]
    ours = candidate(tmp_path, samples)
    trials = plan(["whales"], ["oracle"], ["topic"], 1)
    result = next(examine(web, {"whales": ours}, trials, Terms(1000)))
    assert result.relevant == 20
    assert (int(result.verdicts.sum()), result.recall) == (20, 1.0)
    assert result.verdicts.size == 1 + 40 + 20  # the start, all of trade, the untrained whales


def test_policies_that_look_ahead_beat_those_that_do_not(tmp_path: Path) -> None:
    results = run_all(tmp_path, "focused", "anchor", "oracle", "bfs", "dfs", "random")
    for seeing in ("focused", "anchor", "oracle"):
        for blind in ("bfs", "random"):
            assert results[seeing].harvest > results[blind].harvest, (seeing, blind)
    assert results["oracle"].harvest == 19 / 20  # all but the start


def test_several_processes_bring_what_one_brings(tmp_path: Path) -> None:
    one = run_all(tmp_path / "1", "focused", "random", seeds="on-topic:2")
    two = run_all(tmp_path / "2", "focused", "random", seeds="on-topic:2", jobs=2)
    for policy in ("focused", "random"):
        assert np.array_equal(one[policy].verdicts, two[policy].verdicts)
        assert one[policy].simulated_s == two[policy].simulated_s


def test_a_host_cap_bounds_what_one_host_gives(tmp_path: Path) -> None:
    result = run_all(tmp_path, "oracle", host_cap=5)["oracle"]
    assert (int(result.verdicts.sum()), result.hosts) == (5, 1)
    assert result.ended_because == "frontier is empty"


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


def test_all_policies_of_one_repeat_start_alike_and_repeats_differ(tmp_path: Path) -> None:
    web = build_web(tmp_path / "web")
    trials = plan(["whales"], ["bfs", "dfs"], ["off-topic:3"], 2)
    firsts = [
        tuple(each.verdicts[:3])
        for each in examine(web, {"whales": candidate(tmp_path)}, trials, Terms(3))
    ]
    assert firsts == [(False, False, False)] * 4
    again = list(examine(web, {"whales": candidate(tmp_path)}, trials, Terms(12)))
    assert again[0].simulated_s != again[2].simulated_s


@pytest.mark.parametrize("text", ["on-topic", "on-topic:0", "of-topic:5", "on-topic:-1", ""])
def test_seeds_that_are_no_seeds_are_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="--seeds"):
        parse_seeds(text)


def test_an_unknown_policy_is_refused_with_those_there_are() -> None:
    with pytest.raises(ConfigurationError, match=r"'sharp'; there are focused, .*bfs"):
        plan(["whales"], ["bfs", "sharp"], ["topic"], 1)


def test_what_is_asked_for_twice_is_run_once() -> None:
    assert len(plan(["whales"], ["bfs", "bfs"], ["topic", "topic"], 2)) == 2


def test_what_is_left_of_the_budget_counts_as_off_topic_in_the_area() -> None:
    assert area_under(np.array([True, True]), 2) == 1.0
    assert area_under(np.array([True, True]), 4) == pytest.approx((1 + 1 + 2 / 3 + 1 / 2) / 4)
    assert area_under(np.array([False, True]), 2) == pytest.approx(0.25)
    assert area_under(np.array([], dtype=bool), 3) == 0.0


def test_the_summary_holds_policies_against_breadth_first(tmp_path: Path) -> None:
    results, terms = run_all(tmp_path, "focused", "bfs"), Terms(20)
    rows = {row["policy"]: row for row in summary(list(results.values()), terms)}
    assert rows["bfs"]["ratio"] == 1.0
    ratio = results["focused"].harvest / results["bfs"].harvest
    assert rows["focused"]["ratio"] == pytest.approx(ratio)
    assert run_row(results["bfs"], terms)["curve"][-1] == [20, int(results["bfs"].verdicts.sum())]


def compare(folder: Path, *options: str) -> Any:
    topic = write_compared(folder)
    return CliRunner().invoke(
        main, ["compare", "--web", str(folder / "web"), "--topic", str(topic), *options]
    )


def test_the_command_trains_compares_and_writes(tmp_path: Path) -> None:
    build_web(tmp_path / "web")
    wanted, pictures = tmp_path / "new" / "out.json", tmp_path / "plots"
    done = compare(
        tmp_path, "--policies", "focused,bfs", "--budget", "15", "--seeds", "topic",
        "--seeds", "off-topic:2", "--json", str(wanted), "--out", str(pictures),
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    whole = json.loads(wanted.read_text())
    assert {(run["policy"], run["seeds"]) for run in whole["runs"]} == {
        (policy, seeds) for policy in ("focused", "bfs") for seeds in ("topic", "off-topic:2")
    }
    needed = "web topic policy seeds repeat budget fetched on_topic harvest recall area hosts"
    for run in whole["runs"]:
        assert {*needed.split(), "cpu_s", "curve"} <= run.keys()
        assert run["harvest"] == run["on_topic"] / run["fetched"]
        assert (run["web"], run["fetched"]) == ("two-sides", 15)
    assert [row["policy"] for row in whole["summary"]] == ["focused", "bfs"]
    assert "Harvest by labels at 15 pages" in done.output
    names = {path.name for path in pictures.iterdir()}
    assert names == {"whales-topic.png", "whales-off-topic-2.png"}


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--policies", "sharp"], "no policy is named 'sharp'"),
        (["--seeds", "some"], "--seeds: 'some'"),
        (["--seeds", "on-topic:500"], "has only"),
        (["--json", "{folder}/whales.toml/x.json"], "cannot be made"),
    ],
)
def test_what_cannot_be_compared_is_told_in_a_line(
    tmp_path: Path, options: list[str], told: str
) -> None:
    build_web(tmp_path / "web")
    done = compare(tmp_path, *[each.format(folder=tmp_path) for each in options])
    assert done.exit_code == 2
    assert told in done.output and "Traceback" not in done.output


def test_the_policy_in_the_docs_orders_links_as_it_says() -> None:
    text = (ROOT / "docs" / "compare.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    exec(text.partition("```python\n")[2].partition("```")[0], names)
    short = names["policy"](Aids(WhaleJudge(), WhaleScorer(), lambda url: False))
    links = [Link("http://a.test/long"), Link("http://a.test/")]
    scores = short.scorer.score(Visit(Page("http://a.test/x"), Judgement(0.5, True)), links).scores
    assert scores[1] > scores[0]


def test_the_docs_name_every_policy_and_every_option() -> None:
    text = (ROOT / "docs" / "compare.md").read_text(encoding="utf-8")
    options = [each.opts[0] for each in main.commands["compare"].params]
    for word in (*POLICIES, *options):
        assert f"`{word}`" in text or f"`{word} " in text or f" {word} " in text, word
