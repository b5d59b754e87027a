"""Scores compared with outcomes, and the reliability diagram."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import brier_score_loss

from focused.reports.reliability import (
    count_bins,
    reliability,
    score_errors,
    scored_pages,
)
from tests.support.crawl_folders import failed, frame, good_page, page

A, B, C = "http://a.example/", "http://b.example/", "http://c.example/"
scored = st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=60)


def counted(pairs: list[tuple[float, bool]]) -> tuple[np.ndarray, np.ndarray]:
    scores, on_topic = zip(*pairs, strict=True)
    return np.array(scores, dtype=np.float64), np.array(on_topic, dtype=bool)


def test_mean_scores_are_compared_with_classifications():
    pages = frame(
        [
            page(A, score=0.12, relevance=0.2),
            good_page(A + "1", score=0.18, relevance=0.8),
            good_page(B, score=1.0, relevance=0.9),
        ]
    )
    table = reliability(pages)
    assert table is not None and table.pages == 3
    low, high = table.bins
    assert (low.low, low.high, low.pages, low.by_labels) == (0.1, 0.2, 2, None)
    assert (low.score, low.relevance, low.on_topic) == pytest.approx((0.15, 0.5, 0.5))
    assert (high.low, high.high, high.pages, high.score) == (0.9, 1.0, 1, 1.0)
    assert table.by_classifier.calibration_error == pytest.approx(2 / 3 * 0.35)
    assert table.by_classifier.brier == pytest.approx((0.12**2 + 0.82**2) / 3)
    assert table.by_classifier.brier_reference == pytest.approx(2 / 9)
    assert table.by_labels is None


def test_labels_evaluate_the_same_scores_too():
    pages = frame([good_page(A, score=0.8), page(B, score=0.8)])
    table = reliability(pages, {A: False, B: True, C: True})
    assert table is not None and table.by_labels is not None
    assert [(row.on_topic, row.by_labels) for row in table.bins] == [(0.5, 0.5)]
    assert table.by_classifier.brier == pytest.approx((0.04 + 0.64) / 2)
    table = reliability(pages, {A: True, B: True})
    assert table is not None and table.by_labels is not None
    assert table.by_labels.calibration_error == pytest.approx(0.2)


def test_pages_without_a_label_have_no_part_in_what_labels_say():
    rows = [page(A, score=0.8), page(B, score=0.86), page(C, score=0.1)]
    table = reliability(frame(rows), {A: True})
    assert table is not None and table.by_labels is not None
    assert table.by_labels.calibration_error == pytest.approx(0.2)
    low, high = table.bins
    assert (low.pages, low.labelled, low.by_labels) == (1, 0, None)
    assert (high.pages, high.labelled, high.label_score, high.by_labels) == (2, 1, 0.8, 1.0)
    without = reliability(frame(rows), {})
    assert without is not None and without.by_labels is None


def test_what_nobody_predicted_and_what_does_not_count_has_no_part():
    rows = [
        good_page(A, parent=None, score=1.0, depth=0),
        good_page(A + "moved", parent=A, score=1.0, depth=0),  # where a seed's redirect leads
        page(A + "feed", outcome="feed", parent=None, relevance=None, depth=0),
        good_page(B, training=True),
        page(B + "copy", duplicate_of=A),
        page(B + "unclassified", relevance=None),
        failed(C, "timeout"),
        page(C + "counts"),
    ]
    assert scored_pages(frame(rows))["url"].tolist() == [C + "counts"]
    assert reliability(frame(rows[:-1])) is None


def test_a_score_finds_its_bin_and_an_unknown_one_none():
    table = reliability(frame([page(A, score=0.83)]))
    assert table is not None
    found = table.bin_of(0.899)
    assert found is not None and found.pages == 1
    assert table.bin_of(0.9) is None


@given(scored)
def test_every_page_is_in_one_bin_that_spans_its_score(pairs):
    rows = [page(f"{A}{i}", score=s, on_topic=t) for i, (s, t) in enumerate(pairs)]
    table = reliability(frame(rows))
    assert table is not None
    assert sum(row.pages for row in table.bins) == len(pairs)
    assert all(row.low - 1e-9 <= row.score <= row.high + 1e-9 for row in table.bins)
    assert 0.0 <= table.by_classifier.calibration_error <= 1.0


@given(scored)
def test_the_brier_score_is_that_of_scikit_learn(pairs):
    scores, on_topic = counted(pairs)
    expected = float(np.mean((scores - on_topic) ** 2))
    if len(set(on_topic.tolist())) == 2:
        expected = brier_score_loss(on_topic, scores)
    assert score_errors(count_bins(scores, on_topic)).brier == pytest.approx(expected, abs=1e-5)


@given(scored, scored)
def test_counts_of_two_crawls_add_up_to_those_of_both(one, other):
    apart = count_bins(*counted(one)) + count_bins(*counted(other))
    together = count_bins(*counted(one + other))
    assert score_errors(apart).brier == pytest.approx(score_errors(together).brier, abs=1e-5)
    added = np.zeros(10)
    for count in apart:
        added[count.place] += count.pages
    assert [added[count.place] for count in together] == [count.pages for count in together]


def test_a_run_keeps_ten_counts_at_most_whatever_it_fetched():
    rng = np.random.default_rng(0)
    scores = rng.random(20_000)
    counts = count_bins(scores, rng.random(20_000) < scores)
    assert len(counts) == 10
    assert score_errors(counts).calibration_error < 0.02


def test_nothing_has_no_error():
    assert (
        score_errors([]).calibration_error,
        score_errors([]).brier,
        score_errors([]).brier_reference,
    ) == (0, 0, 0)
