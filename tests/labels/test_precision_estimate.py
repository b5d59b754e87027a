"""Shares with intervals of nominal coverage."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from focused.labels.precision_estimate import (
    Stratum,
    estimate_share,
    estimate_stratified_share,
    format_share,
)


def strata() -> st.SearchStrategy[Stratum]:
    return st.integers(1, 200).flatmap(
        lambda drawn: st.builds(
            Stratum, st.integers(drawn, 5_000), st.just(drawn), st.integers(0, drawn)
        )
    )


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # busy machines
@given(st.lists(strata(), min_size=1, max_size=3), st.integers(0, 500))
def test_a_share_lies_in_its_interval_and_between_nought_and_one(found, none_good):
    share = estimate_stratified_share(found, none_good)
    assert share is not None
    assert 0 <= share.low <= share.value <= share.high <= 1


def test_one_stratum_has_the_interval_of_jeffreys():
    share = estimate_share(Stratum(pages=1_000, drawn=20, good=16))
    assert share is not None
    # From tables of Beta(16.5, 4.5).
    assert (share.value, share.drawn) == (0.8, 20)
    assert share.low == pytest.approx(0.5916, abs=5e-4)
    assert share.high == pytest.approx(0.9283, abs=5e-4)


def test_each_stratum_weighs_as_much_as_it_has_pages():
    share = estimate_stratified_share([Stratum(900, 10, 10), Stratum(100, 30, 0)])
    assert share is not None
    assert share.value == pytest.approx(0.9)


def test_repeated_pages_are_in_the_whole_and_never_good():
    share = estimate_stratified_share([Stratum(100, 10, 10)], none_good=100)
    assert share is not None
    assert share.value == pytest.approx(0.5)
    assert share.high <= 0.5


def test_nothing_is_known_while_a_stratum_with_pages_has_no_label():
    assert estimate_share(Stratum(10, 0, 0)) is None
    assert estimate_stratified_share([Stratum(10, 5, 5), Stratum(1, 0, 0)]) is None
    assert estimate_stratified_share([Stratum(0, 0, 0)]) is None


def test_an_empty_stratum_is_ignored():
    assert estimate_stratified_share([Stratum(10, 4, 2), Stratum(0, 0, 0)]) == estimate_share(
        Stratum(10, 4, 2)
    )


@pytest.mark.parametrize("shares", [(0.9, 0.1), (0.7, 0.02), (0.5, 0.3), (0.95, 0.05)])
@pytest.mark.parametrize("drawn", [20, 60, 200])
def test_the_interval_of_the_harvest_has_its_nominal_coverage(shares, drawn):
    rng = np.random.default_rng(1)
    on, off = 4_000, 6_000
    truth = (on * shares[0] + off * shares[1]) / (on + off)
    held = 0
    for _ in range(400):
        ours = int(rng.binomial(drawn, on / (on + off)))
        ours = min(max(ours, 1), drawn - 1)
        share = estimate_stratified_share(
            [
                Stratum(on, ours, int(rng.binomial(ours, shares[0]))),
                Stratum(off, drawn - ours, int(rng.binomial(drawn - ours, shares[1]))),
            ]
        )
        assert share is not None
        held += share.low <= truth <= share.high
    assert 0.90 <= held / 400 <= 1.0


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        (0, "too few answers: 0 of 10"),
        (3, "too few answers: 3 of 10"),
        (9, "too few answers: 9 of 10"),
        (10, "0% (0 to 22)"),
    ],
)
def test_a_share_of_fewer_than_ten_answers_is_withheld(answers, words):
    share = estimate_share(Stratum(pages=100, drawn=answers, good=0))
    assert format_share(share, answers) == words


def test_a_share_without_labels_in_one_stratum_gives_the_reason():
    share = estimate_stratified_share([Stratum(10, 12, 5), Stratum(9, 0, 0)])
    assert format_share(share, 12) == "too few answers: all on one of the classifier's two verdicts"
