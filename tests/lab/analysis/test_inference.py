"""Intervals and ranks have their nominal coverage and agree with the literature."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from focused_lab.analysis.inference import (
    Estimate,
    bootstrap_weights,
    cluster_t_estimate,
    lower_median,
    mean_estimate,
    mean_estimates,
    median_interval,
    ratio_estimate,
)
from focused_lab.analysis.paired_comparison import PolicyRanks, critical_difference, rank_scores
from focused_lab.analysis.plots import CROSSBAR_WIDTH, curve_styles, plot_critical_difference

# Demšar, JMLR 7, 2006, table 6: ranks of C4.5, with m, with cf, with both, on 14 data sets
DEMSAR = np.array(
    [
        [4, 3, 2, 1],
        [1, 2, 3, 4],
        [4, 1, 2, 3],
        [4, 1, 3, 2],
        [4, 2, 3, 1],
        [1, 2.5, 4, 2.5],
        [3, 2, 4, 1],
        [2.5, 2.5, 4, 1],
        [4, 3, 2, 1],
        [2.5, 2.5, 2.5, 2.5],
        [4, 2.5, 1, 2.5],
        [3, 2, 4, 1],
        [4, 1, 2, 3],
        [3, 1, 4, 2],
    ]
)
NAMES = ("C4.5", "m", "cf", "m+cf")


def test_with_starts_alike_in_number_the_cluster_interval_is_that_of_the_cluster_means():
    values = np.random.default_rng(1).normal(size=(6, 5))
    clusters = [row for row in range(6) for _ in range(5)]
    found = cluster_t_estimate(clusters, values.ravel())
    expected = stats.ttest_1samp(values.mean(axis=1), 0.0).confidence_interval(0.95)
    assert found is not None
    assert (found.mean, found.low, found.high) == pytest.approx((values.mean(), *expected))


def test_a_single_cluster_has_no_cluster_interval():
    assert cluster_t_estimate(["a", "a"], np.array([0.0, 1.0])) == Estimate(0.5)
    assert cluster_t_estimate([], np.array([])) is None


def test_the_interval_covers_the_true_mean_about_as_often_as_it_says():
    rng = np.random.default_rng(3)
    clusters = [topic for topic in range(20) for _ in range(4)]
    covered = 0
    for _ in range(200):
        by_topic = rng.normal(0.4, 0.1, 20)
        values = by_topic[clusters] + rng.normal(0, 0.05, 80)
        estimate = mean_estimate(bootstrap_weights(clusters, rng, 400), values)
        assert estimate is not None and estimate.low is not None and estimate.high is not None
        covered += estimate.low <= 0.4 <= estimate.high
    assert 180 <= covered <= 199


def test_starts_of_one_topic_are_no_independent_evidence():
    rng = np.random.default_rng(0)
    values = np.repeat([0.1, 0.5, 0.3, 0.7], 25)
    of_topics = mean_estimate(bootstrap_weights(np.repeat(range(4), 25).tolist(), rng), values)
    as_if_alone = mean_estimate(bootstrap_weights(list(range(100)), rng), values)
    assert of_topics is not None and as_if_alone is not None
    assert of_topics.low is not None and as_if_alone.low is not None
    assert of_topics.low < as_if_alone.low - 0.05


@given(st.lists(st.integers(0, 4), min_size=1, max_size=30), st.integers(0, 2**32 - 1))
def test_each_resample_draws_as_many_topics_and_whole_topics_of_starts(clusters, seed):
    weights = bootstrap_weights(clusters, np.random.default_rng(seed), 50)
    assert weights.shape == (50, len(clusters))
    sizes = {cluster: clusters.count(cluster) for cluster in clusters}
    times = sum(
        weights[:, [n for n, each in enumerate(clusters) if each == cluster]].sum(axis=1) / size
        for cluster, size in sizes.items()
    )
    assert np.allclose(times, len(sizes))


@given(st.lists(st.floats(0, 1), min_size=2, max_size=20), st.integers(0, 1000))
def test_an_interval_lies_within_the_values(values, seed):
    weights = bootstrap_weights(list(range(len(values))), np.random.default_rng(seed), 100)
    estimate = mean_estimate(weights, np.array(values))
    assert estimate is not None and estimate.low is not None and estimate.high is not None
    assert min(values) - 1e-9 <= estimate.low <= estimate.high <= max(values) + 1e-9


def test_a_single_value_has_no_interval_and_none_has_no_mean():
    weights = bootstrap_weights([0, 1], np.random.default_rng(0))
    one, none = mean_estimates(weights, np.array([[0.3, np.nan], [np.nan, np.nan]]))
    assert one is not None and (one.mean, one.low, one.high) == (0.3, None, None)
    assert not one.excludes_zero
    assert none is None


def test_a_ratio_is_taken_over_the_starts_that_both_have():
    weights = bootstrap_weights([0, 1, 2], np.random.default_rng(0))
    mine, other = np.array([0.4, 0.6, 0.9]), np.array([0.2, 0.3, np.nan])
    ratio = ratio_estimate(weights, mine, other)
    assert ratio is not None and ratio.low is not None
    assert (ratio.mean, ratio.low, ratio.high) == pytest.approx((2.0, 2.0, 2.0))


def test_a_ratio_to_nothing_is_none_and_to_next_to_nothing_is_unbounded():
    weights = bootstrap_weights([0, 1], np.random.default_rng(0))
    assert ratio_estimate(weights, np.array([0.4, 0.4]), np.zeros(2)) is None
    ratio = ratio_estimate(weights, np.array([0.4, 0.4]), np.array([0.0, 0.2]))
    assert ratio is not None and (ratio.mean, ratio.high) == (4.0, None)


def test_ranks_friedman_and_critical_difference_are_those_of_demsars_example():
    ranks = rank_scores(NAMES, -DEMSAR, measure="auc", starts=14)
    expected = {"m+cf": 1.964, "m": 2.000, "cf": 2.893, "C4.5": 3.143}
    assert ranks.mean_ranks == pytest.approx(expected, abs=5e-4)
    assert list(ranks.mean_ranks) == list(expected)
    assert ranks.critical_difference == pytest.approx(1.25, abs=5e-3)
    # 9.28 there; SciPy corrects for ties: three pairs and a quadruple of 14 rows of four
    correction = 1 - (3 * (2**3 - 2) + (4**3 - 4)) / (14 * (4**3 - 4))
    assert ranks.friedman == pytest.approx(9.28 / correction, abs=0.01)
    assert not any(ranks.differ(one, other) for one, other in combinations(NAMES, 2))


@pytest.mark.parametrize(("policies", "q"), [(2, 1.960), (4, 2.569), (10, 3.164)])
def test_critical_differences_follow_nemenyis_table(policies, q):
    # Demšar's table 5 (a)
    expected = q * (policies * (policies + 1) / (6 * 12)) ** 0.5
    assert critical_difference(policies, 12) == pytest.approx(expected, abs=2e-3)


def crossbars(mean_ranks: dict[str, float], critical: float) -> list[tuple[float, float]]:
    """Return the ends of the bars that a diagram of these ranks draws."""
    ranks = PolicyRanks(
        measure="harvest", topics=9, starts=9, mean_ranks=mean_ranks, critical_difference=critical
    )
    figure = plot_critical_difference(ranks, curve_styles(list(mean_ranks)))
    bars = [line for line in figure.axes[0].lines if line.get_linewidth() == CROSSBAR_WIDTH]
    ends = [line.get_xdata() for line in bars]
    return sorted((float(min(each)), float(max(each))) for each in ends)


def test_a_crossbar_joins_policies_that_do_not_differ_and_never_lies_inside_another():
    found = crossbars({"a": 1.0, "b": 1.8, "c": 2.2, "d": 5.0, "e": 5.5}, 1.0)
    assert found == [(1.0, 1.8), (1.8, 2.2), (5.0, 5.5)]
    assert crossbars({"a": 1.0, "b": 3.0}, 1.0) == []


def test_the_diagram_names_each_policy_with_its_rank_in_its_own_emphasis():
    ranks = PolicyRanks(
        measure="harvest", topics=9, starts=9, critical_difference=0.5,
        mean_ranks={"focused": 1.0, "b$": 2.0, "c": 2.0, "bfs": 4.0},
    )  # fmt: skip
    look = curve_styles(list(ranks.mean_ranks))
    labels = plot_critical_difference(ranks, look).axes[0].texts
    weights = {label.get_text(): label.get_weight() for label in labels}
    assert {"focused (1.00)", "(4.00) bfs"} <= weights.keys()
    for name, mine in look.items():
        [weight] = (weights[text] for text in weights if name in text.split())
        assert (weight == "bold") is mine.main


def test_all_tied_everywhere_is_no_difference():
    ranks = rank_scores(("a", "b", "c"), np.full((4, 3), 0.5), measure="harvest", starts=4)
    assert (ranks.friedman, ranks.p) == (0.0, 1.0)
    assert set(ranks.mean_ranks.values()) == {2.0}


def test_a_median_may_lie_among_those_that_never_came():
    assert lower_median(np.array([3.0, 1.0, np.inf])) == 3.0
    assert lower_median(np.array([3.0, np.inf, np.inf, np.nan])) is None
    assert lower_median(np.array([np.nan])) is None


def test_the_interval_of_a_median_covers_as_often_as_it_says():
    rng = np.random.default_rng(1)
    covered = 0
    for _ in range(200):
        values = rng.exponential(size=40)
        low, high = median_interval(bootstrap_weights(range(40), rng, 300), values)
        assert low is not None and high is not None
        covered += low <= np.log(2) <= high
    assert 0.88 <= covered / 200 <= 0.99


def test_a_median_of_one_start_has_no_interval():
    weights = bootstrap_weights(["a", "b"], np.random.default_rng(0))
    assert median_interval(weights, np.array([1.0, np.nan])) == (None, None)
