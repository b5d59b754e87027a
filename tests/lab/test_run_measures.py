"""Measures of one run, computed by hand."""

from __future__ import annotations

import mmap
from pathlib import Path
from typing import cast

import numpy as np
import pandas as pd
import pytest

from focused_lab.analysis.comparison_runs import runs_of
from focused_lab.ground_truth import GroundTruth
from focused_lab.run_measures import (
    area_under_harvest,
    bin_scores,
    harvest_curve,
    pages_to_half_recall,
    peak_mb,
    reset_peak,
)
from tests.lab.two_sides import run_all


def test_what_is_left_of_the_budget_counts_as_off_topic_in_the_area():
    assert area_under_harvest(np.array([True, True]), 2) == 1.0
    assert area_under_harvest(np.array([True, True]), 4) == pytest.approx(
        (1 + 1 + 2 / 3 + 1 / 2) / 4
    )
    assert area_under_harvest(np.array([False, True]), 2) == pytest.approx(0.25)
    assert area_under_harvest(np.array([], dtype=bool), 3) == 0.0


def test_half_of_the_topic_is_found_with_the_page_that_makes_it_half():
    is_relevant = np.array([False, True, False, True, True])
    assert pages_to_half_recall(is_relevant, relevant=4) == 4
    assert pages_to_half_recall(is_relevant, relevant=5) == 5
    assert pages_to_half_recall(is_relevant, relevant=1) == 2
    assert pages_to_half_recall(is_relevant, relevant=7) is None
    assert pages_to_half_recall(np.array([], dtype=bool), relevant=1) is None


def test_a_curve_ends_at_the_last_page_and_has_a_hundred_points_at_most():
    assert harvest_curve(np.array([], dtype=bool)) == []
    assert harvest_curve(np.array([True, False, True])) == [[1, 1], [2, 1], [3, 2]]
    long = harvest_curve(np.ones(12_345, dtype=bool))
    assert (len(long), long[-1]) == (100, [12_345, 12_345])


def test_a_row_has_every_field_of_the_comparison(tmp_path):
    rows = run_all(tmp_path, "bfs", "oracle")
    for run, row in zip(runs_of(rows.values()), rows.values(), strict=True):
        assert set(row) == set(type(run).__struct_fields__)
        assert run.cpu_s is not None and run.cpu_s > 0
        assert run.peak_mb is not None and run.peak_mb > 1


def test_a_run_keeps_how_many_pages_on_topic_its_start_leads_to(tmp_path):
    assert run_all(tmp_path / "1", "bfs", budget="5")["bfs"]["reachable"] == 40
    row = run_all(tmp_path / "2", "bfs", budget="5", seeds=["off-topic:2"])["bfs"]
    assert (row["reachable"], row["relevant"], row["on_topic"]) == (0, 40, 0)


def test_crawl_and_stop_is_held_against_what_could_have_been_found(tmp_path):
    row = run_all(tmp_path / "1", "oracle", budget="20")["oracle"]
    assert (row["on_topic"], row["crawl_and_stop"], row["recall"]) == (19, 19 / 20, 19 / 40)
    row = run_all(tmp_path / "2", "oracle", budget="60")["oracle"]
    assert (row["crawl_and_stop"], row["crawl_and_stop_threshold"]) == (1.0, 1.0)
    assert row["half_recall_pages"] == 21


def test_the_peak_begins_anew_with_each_run():
    # Not by malloc, which may take it from memory that other tests freed, and keep it.
    with mmap.mmap(-1, 200_000_000) as ballast:
        ballast[:: mmap.PAGESIZE] = bytes(len(ballast[:: mmap.PAGESIZE]))
        with_it = peak_mb()
    reset_peak()
    without = peak_mb()
    assert with_it is not None and without is not None
    assert with_it > 200 and without < with_it - 150


def test_the_peak_of_a_process_that_is_none_is_unknown():
    assert peak_mb(Path("/proc/0")) is None


def test_a_run_keeps_its_scores_against_labels_where_they_are_probabilities(tmp_path):
    rows = run_all(tmp_path, "focused", "bfs", budget="30")
    assert rows["bfs"]["score_bins"] is None
    (run,) = runs_of([rows["focused"]])
    assert run.score_bins
    # The start is not predicted, and has no label
    assert sum(count.pages for count in run.score_bins) == run.fetched - 1
    assert sum(count.on_topic for count in run.score_bins) == run.on_topic


def test_a_page_without_a_label_says_nothing_about_its_score():
    class Labels:
        def known_relevance(self, url: str) -> bool | None:
            return {"http://a.test/good": True, "http://a.test/other": False}.get(url)

    pages = pd.DataFrame(
        {
            "url": [f"http://a.test/{name}" for name in ("good", "other", "unlabelled")],
            "score": [0.85, 0.15, 0.85],
        }
    ).assign(
        outcome="fetched",
        training=False,
        relevance=0.9,
        parent="http://a.test/",
        depth=1,
        duplicate_of=None,
    )
    bins = bin_scores("focused", cast(GroundTruth, Labels()), pages)
    assert bins is not None
    assert [(place, count, on_topic) for place, count, on_topic, *_ in bins] == [
        (1, 1, 0),
        (8, 1, 1),
    ]
