"""Scores against labels over all runs of a comparison."""

import pytest

from focused.errors import ComparisonError
from focused_lab.analysis.comparison_analysis import analyse_runs, analysis_to_dict
from focused_lab.analysis.comparison_runs import parse_comparison, runs_of
from tests.lab.analysis.comparison_rows import Row, document, run

LOW, HIGH = [1, 40, 8, 6.0, 6.5], [8, 10, 9, 8.5, 1.0]


def scored(*bins: list[float], **changed: object) -> Row:
    return run("focused", 0.4, score_bins=list(bins), **changed)


def test_counts_of_all_runs_are_added_up():
    rows = [scored(LOW, HIGH), scored([1, 60, 12, 9.0, 9.5], repeat=1), run("bfs", 0.2)]
    (found,) = analyse_runs(runs_of(rows)).calibration
    assert (found.policy, found.runs, found.pages) == ("focused", 2, 110)
    low, high = found.bins
    assert (low.low, low.high, low.pages) == (0.1, 0.2, 100)
    assert (low.score, low.on_topic.mean) == pytest.approx((0.15, 0.2))
    assert (high.pages, high.score, high.on_topic.mean) == pytest.approx((10, 0.85, 0.9))


def test_calibration_error_and_brier_score_are_over_all_pages():
    (found,) = analyse_runs(runs_of([scored(LOW, HIGH)])).calibration
    assert found.calibration_error == pytest.approx((2.0 + 0.5) / 50)
    assert found.brier == pytest.approx(7.5 / 50)
    assert found.brier_reference == pytest.approx(0.34 * 0.66)


def test_a_bin_that_one_run_alone_filled_has_no_interval():
    rows = [scored(LOW, HIGH), scored([1, 60, 30, 9.0, 9.5], repeat=1)]
    (found,) = analyse_runs(runs_of(rows)).calibration
    low, high = found.bins
    assert low.on_topic.low is not None and low.on_topic.high is not None
    assert low.on_topic.low == pytest.approx(0.2) and low.on_topic.high == pytest.approx(0.5)
    assert high.on_topic.low is None


@pytest.mark.parametrize("bins", [None, []])
def test_runs_without_score_bins_have_no_table(bins):
    assert analysis_to_dict([run("focused", 0.4, score_bins=bins)])["calibration"] == []


@pytest.mark.parametrize(
    ("bins", "message"),
    [
        ([LOW, LOW], r"runs\[0\]\.score_bins has a repeated bin"),
        ([[1, 4, 5, 1.0, 1.0]], r"runs\[0\]\.score_bins has more pages on topic than pages"),
        ([[10, 4, 2, 1.0, 1.0]], r"`\$\.runs\[0\]\.score_bins\[0\]\[0\]`"),
    ],
)
def test_damaged_counts_are_reported_with_their_place(bins, message):
    with pytest.raises(ComparisonError, match=message):
        parse_comparison(document([scored(*bins)]))
