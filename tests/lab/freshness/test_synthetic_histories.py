"""Synthetic change histories."""

import numpy as np
import pytest

from focused.durations import DAY_S
from focused_lab.change_history import ChangeKind, SiteChanges
from focused_lab.freshness.windows import bursty_sites, poisson_sites


def gaps(sites: list[SiteChanges]) -> np.ndarray:
    """Gaps between changes in units of the page's mean gap, for pages with ten changes or more."""
    found = []
    for site in sites:
        for page in site.pages:
            times = [each.at for each in page.changes if each.kind is ChangeKind.CHANGED]
            if len(times) >= 10:
                found.append(np.diff(times) / np.diff(times).mean())
    return np.concatenate(found)


@pytest.mark.parametrize("make", [poisson_sites, bursty_sites])
def test_a_seed_repeats_its_sites(make):
    assert make(3, sites=2, pages=20) == make(3, sites=2, pages=20)
    assert make(3, sites=2, pages=20) != make(4, sites=2, pages=20)


@pytest.mark.parametrize("make", [poisson_sites, bursty_sites])
def test_pages_are_created_once_and_change_in_order(make):
    for site in make(1, sites=2, pages=50):
        for page in site.pages:
            assert [each.kind for each in page.changes].count(ChangeKind.CREATED) == 1
            times = [each.at for each in page.changes]
            assert times == sorted(times)


def test_gaps_of_poisson_pages_are_exponential():
    # The coefficient of variation of an exponential distribution is 1.
    assert gaps(poisson_sites(1)).std() == pytest.approx(1.0, abs=0.1)


def test_gaps_of_bursty_pages_vary_more():
    assert gaps(bursty_sites(1)).std() > 1.5


def test_most_changes_of_bursty_sites_fall_on_days_with_many():
    many = total = 0
    for site in bursty_sites(1):
        days = [
            int(each.at // DAY_S)
            for page in site.pages
            for each in page.changes
            if each.kind is ChangeKind.CHANGED
        ]
        _, counts = np.unique(days, return_counts=True)
        many += int(counts[counts >= 5].sum())
        total += len(days)
    assert many / total > 0.5
