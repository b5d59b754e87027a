"""The quality of a link prior's ranking, and its card."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from link_prior_card import (
    WebQuality,
    group_by_web,
    mean_auc,
    measure_web_quality,
    render_prior_card,
)
from link_prior_fitting import LoggedRun

from focused.link_scoring.linear_model import PRIOR_FORMAT, LinkPriorFile
from focused.link_scoring.link_features import FEATURE_INDEX, FEATURE_NAMES

MODELS = Path(__file__).parents[2] / "models"


def run(url: Sequence[float], on_topic: Sequence[bool], web: str = "one", **more) -> LoggedRun:
    rows = np.zeros((len(url), len(FEATURE_NAMES)))
    rows[:, FEATURE_INDEX["url"]] = url
    for name, values in more.items():
        rows[:, FEATURE_INDEX[name]] = values
    return LoggedRun(web, "whales", rows, np.array(on_topic))


def prior(bias: float = 0.0, **weights: float) -> LinkPriorFile:
    return LinkPriorFile(
        format=PRIOR_FORMAT,
        fitted_on=("one", "other"),
        examples=12_345,
        bias=bias,
        weights=dict.fromkeys(FEATURE_NAMES, 0.0) | weights,
        scales=dict.fromkeys(FEATURE_NAMES, 2.0),
    )


def by_url(rows):
    return rows[:, FEATURE_INDEX["url"]]


def test_links_are_ranked_against_links_of_the_same_run_alone():
    # Each run is ranked perfectly; pooled they would not be.
    runs = [run([1, 2], [False, True]), run([11, 12], [False, True])]
    assert mean_auc(runs, by_url) == 1.0


def test_runs_count_alike_however_long():
    long = run([1, 2, 3, 4, 5, 6], [False, False, False, True, True, True])
    assert mean_auc([long, run([2, 1], [False, True])], by_url) == 0.5


def test_runs_of_one_kind_of_links_rank_nothing():
    one_sided = [run([1, 2], [True, True]), run([1], [False])]
    assert mean_auc(one_sided, by_url) is None
    assert mean_auc([*one_sided, run([1, 2], [False, True])], by_url) == 1.0


def test_a_web_is_measured_with_and_without_its_own_prior():
    runs = [run([1, 2, 3], [False, True, True], parent=[3, 1, 2]), run([1], [False])]
    runs[1] = replace(runs[1], topic="wine")
    quality = measure_web_quality(runs, left_out=prior(parent=1.0), all_webs=prior(url=1.0))
    assert (quality.web, quality.topics, quality.runs, quality.examples) == ("one", 2, 2, 4)
    assert quality.on_topic == 0.5
    assert (quality.left_out, quality.all_webs, quality.url, quality.parent) == (0.0, 1.0, 1.0, 0.0)


def test_a_prior_is_as_wrong_as_its_scores_are_far_from_shares():
    runs = [run([0, 0, 0, 0], [True, False, False, False])]
    right, high = prior(bias=float(np.log(1 / 3))), prior(bias=0.0)
    quality = measure_web_quality(runs, left_out=high, all_webs=right)
    assert quality.left_out_error == pytest.approx(0.25, abs=1e-5)
    assert quality.all_webs_error == pytest.approx(0.0, abs=1e-5)


def test_runs_are_put_together_by_web_in_the_order_they_came():
    runs = [run([1], [True], web=web) for web in ("other", "one", "other")]
    assert {web: len(own) for web, own in group_by_web(runs).items()} == {"other": 2, "one": 1}
    assert list(group_by_web(runs)) == ["other", "one"]


def card(*qualities: WebQuality) -> str:
    priors = {"all-webs": prior(-2.5, url=0.75), "without-one": prior(-3.0, url=0.25)}
    return render_prior_card(priors, qualities, "python fit.py --seed 7")


QUALITY = WebQuality("one", 3, 24, 6_789, 0.123, 0.801, 0.902, 0.703, None, 0.021, 0.011)


def test_the_card_has_data_weights_and_quality():
    text = card(QUALITY, replace(QUALITY, web="other"))
    assert "12,345 links that 48 crawls followed, of 6 topics on 2 recorded webs" in text
    assert "| one | 3 | 24 | 6,789 | 12.3% |" in text
    assert "| `url` | 0.75 | 0.25 | (1.50) |" in text
    assert "| bias | -2.50 | -3.00 |  |" in text
    assert "| one | .801 | .902 | .703 |  | .021 | .011 |" in text
    assert "```\npython fit.py --seed 7\n```" in text


def test_each_table_of_the_card_has_as_many_cells_in_each_line():
    tables = re.findall(r"(?:^\|.*\n)+", card(QUALITY), re.MULTILINE)
    assert len(tables) == 3
    for table in tables:
        assert len({line.count("|") for line in table.splitlines()}) == 1


def test_every_feature_is_on_the_card():
    text = card(QUALITY)
    assert all(f"\n| `{name}` |" in text for name in FEATURE_NAMES)


def test_the_card_s_links_lead_to_what_is_there():
    links = re.findall(r"\]\(([^)]+)\)", card(QUALITY))
    assert links
    assert all((MODELS / link).exists() for link in links)
