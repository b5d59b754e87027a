"""Estimates over all pages of a crawl from the labels of randomly drawn pages.

Precision is the share of good pages among those classified as on topic, with a Jeffreys
interval (Beta posterior with prior Beta(1/2, 1/2); Brown, Cai, DasGupta 2001, "Interval
estimation for a binomial proportion"). The harvest is stratified by classification: each
stratum is weighted by its pages. The posterior, a weighted sum of Betas, is approximated by
the Beta with the same mean and variance.

Sampling is assumed with replacement: intervals of small crawls are too wide, never too narrow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

_CONFIDENCE = 0.95

MIN_ANSWERS = 10
"""A share of fewer labels is not shown and causes no warning."""


@dataclass(frozen=True, slots=True)
class Stratum:
    """``pages`` pages, of which ``drawn`` were labelled, ``good`` of them as good."""

    pages: int
    drawn: int
    good: int


@dataclass(frozen=True, slots=True)
class ShareEstimate:
    """A share in [0, 1] with its 95% interval; ``drawn`` is the number of labels."""

    value: float
    low: float
    high: float
    drawn: int


def estimate_share(stratum: Stratum) -> ShareEstimate | None:
    """Return the share of good pages in one stratum; None without labels."""
    return estimate_stratified_share([stratum])


def estimate_stratified_share(
    strata: Sequence[Stratum], none_good: int = 0
) -> ShareEstimate | None:
    """Return the share of good pages in all strata and in ``none_good`` further, bad pages.

    Ignores empty strata. None if a non-empty stratum has no labels.
    """
    filled = [one for one in strata if one.pages]
    if not filled or any(not one.drawn for one in filled):
        return None
    whole = sum(one.pages for one in filled)
    value = mean = variance = 0.0
    for one in filled:
        weight = one.pages / whole
        good, bad = one.good + 0.5, one.drawn - one.good + 0.5
        value += weight * one.good / one.drawn
        mean += weight * good / (good + bad)
        variance += weight**2 * good * bad / ((good + bad) ** 2 * (good + bad + 1.0))
    size = mean * (1.0 - mean) / variance - 1.0
    tail = (1.0 - _CONFIDENCE) / 2.0
    from scipy.special import betaincinv  # slow to import, and only with labels

    low, high = betaincinv(mean * size, (1.0 - mean) * size, (tail, 1.0 - tail))
    # A share of 0 or 1 is the end of its interval.
    low, high = min(float(low), value), max(float(high), value)
    part = whole / (whole + none_good)
    return ShareEstimate(part * value, part * low, part * high, sum(one.drawn for one in filled))


def withheld_reason(share: ShareEstimate | None, answers: int) -> str:
    """Return why ``share`` of ``answers`` labels is not shown; "" if it is."""
    if answers < MIN_ANSWERS:
        return f"too few answers: {answers} of {MIN_ANSWERS}"
    return "too few answers: all on one of the classifier's two verdicts" if share is None else ""


def format_share(share: ShareEstimate | None, answers: int) -> str:
    """Format a share as ``84% (76 to 90)``, or say why it is withheld."""
    missing = withheld_reason(share, answers)
    if missing or share is None:
        return missing
    return f"{100 * share.value:.0f}% ({100 * share.low:.0f} to {100 * share.high:.0f})"
