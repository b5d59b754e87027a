"""Fitting a link prior: weights, signs and sample weights."""

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
import pytest
from link_prior_fitting import COEFFICIENT_SIGNS, LoggedRun, fit_link_prior, log_odds

from focused.link_scoring.linear_model import PRIOR_FORMAT
from focused.link_scoring.link_features import FEATURE_INDEX, FEATURE_NAMES

NO_RIDGE = {"ridge": 1e-3, "intercept_ridge": 1e-3}


def logged(
    truth: Mapping[str, float],
    *,
    bias: float = -1.0,
    web: str = "one",
    seed: int = 0,
    links: int = 2_000,
    means: Mapping[str, float] | None = None,
) -> LoggedRun:
    """A run in a world where links are on topic by a logistic law, features being noise."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(links, len(FEATURE_NAMES)))
    for name, mean in (means or {}).items():
        rows[:, FEATURE_INDEX[name]] += mean
    weights = np.array([truth.get(name, 0.0) for name in FEATURE_NAMES])
    share = 1 / (1 + np.exp(-(rows @ weights + bias)))
    return LoggedRun(web, "whales", rows, rng.random(links) < share)


def many(truth: Mapping[str, float], runs: int = 6, **options: object) -> list[LoggedRun]:
    return [logged(truth, seed=seed, **options) for seed in range(runs)]  # type: ignore[arg-type]  # one word for all


def run_of(on_topic: Sequence[bool], web: str = "one") -> LoggedRun:
    rows = np.zeros((len(on_topic), len(FEATURE_NAMES)))
    return LoggedRun(web, "whales", rows, np.array(on_topic, dtype=np.bool_))


def test_the_weights_of_a_logistic_world_are_found_again():
    truth = {"parent": 0.8, "url": 1.2, "since": -0.5, "tag_path": 0.3}
    prior = fit_link_prior(many(truth), ridge=20.0)
    assert prior.weights == pytest.approx(dict.fromkeys(FEATURE_NAMES, 0.0) | truth, abs=0.08)
    assert prior.bias == pytest.approx(-1.0, abs=0.08)
    assert (prior.format, prior.fitted_on, prior.examples) == (PRIOR_FORMAT, ("one",), 12_000)


def test_a_weight_is_per_unit_and_the_scale_is_the_standard_deviation():
    near = logged({"url": 1.0})
    rows = near.rows.copy()
    rows[:, FEATURE_INDEX["url"]] *= 10.0
    far = LoggedRun(near.web, near.topic, rows, near.on_topic)
    ours, theirs = fit_link_prior([near]), fit_link_prior([far])
    assert theirs.weights["url"] == pytest.approx(ours.weights["url"] / 10, abs=1e-3)
    assert theirs.scales["url"] == pytest.approx(ours.scales["url"] * 10, rel=1e-3)


def test_a_feature_that_never_varies_has_a_scale_all_the_same():
    assert fit_link_prior([run_of([True, False])]).scales["since"] > 0


def test_signs_of_weights_are_constrained():
    contrary = {name: -1.0 if COEFFICIENT_SIGNS[name] > 0 else 1.0 for name in FEATURE_NAMES}
    assert not any(fit_link_prior(many(contrary, runs=2)).weights.values())


@pytest.mark.parametrize("worth", [2.0, -2.0])
def test_how_many_pages_link_to_a_target_gets_no_weight(worth):
    assert fit_link_prior(many({"in_links": worth}, runs=2)).weights["in_links"] == 0.0


def test_each_web_counts_alike_however_many_runs_and_links_were_logged_on_it():
    one = [logged({"url": 1.5}, web="one", bias=-2.0)]
    other = [logged({"anchor": 1.5}, web="other", seed=1, bias=0.0)]
    alike = fit_link_prior(one + other, **NO_RIDGE)
    more_runs = fit_link_prior(one * 5 + other, **NO_RIDGE)
    double = one[0]
    longer = LoggedRun("one", "whales", np.tile(double.rows, (5, 1)), np.tile(double.on_topic, 5))
    more_links = fit_link_prior([longer, *other], **NO_RIDGE)
    for prior in (more_runs, more_links):
        assert prior.weights == pytest.approx(alike.weights, abs=2e-3)
        assert prior.bias == pytest.approx(alike.bias, abs=2e-3)


def test_differences_between_runs_get_no_weight():
    # In some runs more is on topic, and there every link looks better: topics differ, links do not.
    runs = [
        logged({}, seed=n, bias=-2.0 + 2.0 * (n % 2), means={"context": 3.0 * (n % 2)})
        for n in range(8)
    ]
    assert fit_link_prior(runs, ridge=20.0).weights["context"] < 0.05
    pooled = LoggedRun(
        "one",
        "whales",
        np.concatenate([run.rows for run in runs]),
        np.concatenate([run.on_topic for run in runs]),
    )
    assert fit_link_prior([pooled], ridge=20.0).weights["context"] > 0.3


def test_few_examples_give_small_weights():
    few, more = (fit_link_prior([logged({"url": 2.0}, links=links)]) for links in (400, 40_000))
    assert 0.0 < few.weights["url"] < 1.0 < more.weights["url"]


def test_the_same_runs_give_the_same_bytes():
    first, second = (
        msgspec.json.encode(fit_link_prior(many({"url": 1.0, "siblings": 0.5}, runs=3)))
        for _ in range(2)
    )
    assert first == second


def test_a_run_that_followed_nothing_changes_nothing():
    runs = many({"url": 1.0}, runs=2)
    assert fit_link_prior([*runs, run_of([], web="silent")]) == fit_link_prior(runs)


@pytest.mark.parametrize(
    "runs",
    [[], [run_of([])], [run_of([True, True])], [run_of([False]), run_of([False, False])]],
    ids=["no run", "no link", "all on topic", "none on topic"],
)
def test_what_nothing_can_be_learned_from_is_refused(runs):
    with pytest.raises(ValueError, match="links that led to pages on topic, and links that did no"):
        fit_link_prior(runs)


def test_log_odds_are_bias_plus_weighted_features():
    prior = fit_link_prior(many({"url": 1.0}, runs=1))
    rows = np.zeros((2, len(FEATURE_NAMES)))
    rows[1, FEATURE_INDEX["url"]] = 3.0
    expected = [prior.bias, prior.bias + 3.0 * prior.weights["url"]]
    assert log_odds(prior, rows) == pytest.approx(expected)
