"""A real crawl of a changing web runs on the clock of its server."""

import time

import pandas as pd

from focused.durations import DAY_S
from focused_lab.change_history import Change, ChangeKind
from focused_lab.changing_web.changing_replay import ChangingSource
from focused_lab.changing_web.changing_web import ChangingWeb
from focused_lab.freshness.crawl_evaluation import evaluate_crawl, read_crawl_visits, true_window
from focused_lab.recorded_web.replay_clock import ReplayClock
from tests.lab.changing_web.test_changing_web import (
    END,
    HOME,
    LOUD,
    NAMES,
    START,
    histories,
    record,
)
from tests.support.crawling import crawl, write_topic
from tests.support.recorded_web import served

SPEED = 100_000.0


def test_a_crawl_runs_on_the_server_s_clock_and_sees_what_exists_then(tmp_path):
    topic = write_topic(tmp_path, HOME)
    with record(tmp_path / "web") as web:
        changing = ChangingWeb(web, histories(Change(ChangeKind.CREATED, 360 * DAY_S, 50)), LOUD)
        clock = ReplayClock(START, time.time(), SPEED)
        with served(ChangingSource(changing, clock), clock=clock) as site:
            ended = crawl(topic, site.address, FOCUSED_CLOCK=clock)
            ended_at = clock()
        assert ended.status == 0, ended.output
        pages = pd.read_parquet(ended.folder / "pages.parquet").set_index("url")
        fetched = pages[pages["status"] == 200]
        assert set(fetched.index) >= {
            url for url in changing.page_urls if changing.exists_at(url, START)
        }
        assert (
            fetched["fetched_at"]
            .between(*(pd.Timestamp(at, unit="s", tz="UTC") for at in (START, ended_at)))
            .all()
        )
        # A response takes less than a second, but hours of the clock.
        assert fetched["elapsed_s"].max() < 60
        truth = changing.true_changes()
    assert HOME in fetched.index
    assert len(fetched) <= len(NAMES) + 2
    window = true_window(truth, START, END)
    evaluation = evaluate_crawl(window, START, read_crawl_visits(ended.folder))
    assert 0.0 < evaluation.result.freshness <= 1.0


def test_a_crawl_of_the_live_web_has_no_other_clock(tmp_path):
    topic = write_topic(tmp_path, HOME)
    ended = crawl(topic, "", FOCUSED_CLOCK="0,0,1")
    assert ended.status != 0
    assert "FOCUSED_REPLAY" in ended.output
