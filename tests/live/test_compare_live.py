"""``focused compare --live``: the same runs as real crawls, measured alike."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from focused.errors import StateError
from focused.topic.topic_file import load_topic
from focused_lab.analysis.comparison_runs import ExperimentSettings
from focused_lab.comparison_files import RUN_LOG_FILE
from focused_lab.live_runs import cut_at_budget, live_topic, run_live_trials, topic_to_toml
from focused_lab.run_measures import RunRecord
from focused_lab.runner import WebContext
from focused_lab.web_sources import ExperimentWeb
from tests.lab.two_sides import build_web, compare, planned, prepared_topic, write_compared
from tests.support.crawling import ROOT
from tests.support.forked import HANGS_AFTER_S

ASKED = ("--policies", "focused", "--budget", "15", "--seeds", "off-topic:2", "--host-cap", "6")


def rows(folder: Path) -> list[RunRecord]:
    whole = json.loads((folder / "comparison" / "comparison.json").read_text())
    found: list[RunRecord] = whole["runs"]
    return found


@pytest.fixture
def sides(tmp_path: Path) -> Path:
    build_web(tmp_path / "web")
    write_compared(tmp_path)
    return tmp_path


def test_a_real_crawl_honours_start_and_cap_and_gives_what_the_simulated_one_does(sides):
    compare(sides, *ASKED)
    (simulated,) = rows(sides)
    compare(sides, *ASKED, "--live")
    (real,) = rows(sides)
    same = ("seeds", "budget", "host_cap", "fetched", "on_topic", "harvest", "area", "curve")
    assert {key: real[key] for key in same} == {key: simulated[key] for key in same}
    assert 0 < real["fetched"] < 15
    assert (simulated["simulated_s"] is None, real["simulated_s"]) == (False, None)
    assert real["cpu_s"] > 0 and real["peak_mb"] > 1
    assert not list((sides / "comparison" / "live").iterdir())
    again = compare(sides, *ASKED, "--live")
    assert "1 of 1 runs were done before" in again.stderr


def test_a_policy_that_no_real_crawl_can_have_is_refused(sides):
    done = compare(sides, "--policies", "bfs,oracle", "--live", status=2)
    assert "sees the labels" in done.stderr.splitlines()[-1] and "Traceback" not in done.output
    journal = sides / "comparison" / RUN_LOG_FILE
    assert not journal.exists() or not journal.read_text()


def test_ctrl_c_ends_the_crawls_under_way_and_leaves_nothing_of_them(sides):
    process = subprocess.Popen(
        [
            sys.executable, "-m", "focused.cli", "compare", "--web", sides / "web", "--topic",
            sides / "whales.toml", "--out", sides / "comparison", "--live", "--delay-s", "60",
            "--policies", "bfs,dfs", "--jobs", "2",
        ],
        cwd=ROOT, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    live = sides / "comparison" / "live"
    while len(list(live.glob("*/crawl/settings.json"))) < 2:
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, output = process.communicate(timeout=HANGS_AFTER_S)
    assert process.returncode == 130, output
    assert "stopped: 0 of 2 runs are done" in output and "Traceback" not in output
    assert not list(live.iterdir())


def test_a_crawl_that_does_not_end_in_order_is_reported_in_its_own_words(sides):
    ours = prepared_topic(sides)
    plan = planned(sides / "web", ours, "bfs", delay_s=0.0)
    webs = {"two-sides": ExperimentWeb("two-sides", sides / "web")}
    trials = [replace(plan.trials[0], policy="sharp")]
    runs = run_live_trials(webs, {"whales": ours}, trials, plan.settings, sides / "live")
    with pytest.raises(StateError, match=r"crawl of sharp on whales failed: .*'sharp'"):
        next(runs)
    assert (sides / "live" / "1" / "output.txt").is_file()


def test_a_trials_topic_file_says_what_the_topic_says(sides):
    scope = 'deny_paths = ["a\\\\.b", "\\"q\\""]\nlanguages = ["en"]'
    ours = prepared_topic(sides, scope=scope)
    odd = replace(ours, topic=replace(ours.topic, description='tab\t, "quotes", ü and \x7f'))
    plan = planned(sides / "web", odd, "bfs", host_caps=[3], budget="x1", seeds=["on-topic:2"])
    web_context = WebContext(ExperimentWeb("two-sides", sides / "web"))
    web_context.select_topic(odd)
    topic = live_topic(plan.trials[0], web_context, ExperimentSettings(delay_s=0.5), sides / "run")
    web_context.close()
    (sides / "run").mkdir()
    topic.path.write_text(topic_to_toml(topic), encoding="utf-8")
    assert load_topic(topic.path) == topic
    assert (topic.seeds.urls, topic.scope.max_pages_per_host) == (plan.trials[0].start, 3)
    assert topic.politeness.delay_s == 0.5


def test_what_was_fetched_beyond_the_budget_is_cut_and_training_pages_are_no_part_of_it(sides):
    urls = [f"http://whales.test/whales-{n}" for n in range(6)]
    ours = prepared_topic(sides, samples=["https://whales.test/whales-1"])
    trial = planned(sides / "web", ours, "bfs", budget="3").trials[0]
    pages = pd.DataFrame(
        {"url": urls, "outcome": "fetched", "training": False, "duplicate_of": None}
    )
    pages.loc[2, "outcome"] = "failed"
    web_context = WebContext(ExperimentWeb("two-sides", sides / "web"))
    web_context.select_topic(ours)
    kept = cut_at_budget(trial, web_context.ground_truth, pages)
    assert web_context.samples == 1
    web_context.close()
    assert list(kept["url"]) == urls[:5]
    assert list(kept["training"]) == [False, True, False, False, False]
