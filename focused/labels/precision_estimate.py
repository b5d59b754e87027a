"""What labels of pages drawn at random tell of all pages of a crawl.

Precision is the share of good ones among what the classifier calls on topic; its interval
is Jeffreys' (the Beta posterior of a share with prior Beta(1/2, 1/2); Brown, Cai, DasGupta
2001, "Interval estimation for a binomial proportion"). The harvest is stratified by
verdict: each stratum's share weighs as much as the stratum has pages. Its posterior is
a weighted sum of Betas, taken for the Beta of the same mean and variance.

Pages are taken as drawn with replacement, so that of a small crawl, mostly labelled,
the intervals are too wide, never too narrow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scipy.special import betaincinv

_CONFIDENCE = 0.95

MIN_ANSWERS = 10
"""A share that stands on fewer labels is not shown, and causes no warning."""


@dataclass(frozen=True, slots=True)
class Stratum:
    """Pages of one kind: ``pages`` of them, of which ``drawn`` were labelled, ``good`` as good."""

    pages: int
    drawn: int
    good: int


@dataclass(frozen=True, slots=True)
class ShareEstimate:
    """A share in [0, 1] with its 95% interval; ``drawn`` is how many labels it stands on."""

    value: float
    low: float
    high: float
    drawn: int


def estimate_share(stratum: Stratum) -> ShareEstimate | None:
    """The share of good pages in one stratum; None while no page of it was labelled."""
    return estimate_stratified_share([stratum])


def estimate_stratified_share(
    strata: Sequence[Stratum], none_good: int = 0
) -> ShareEstimate | None:
    """The share of good pages in all strata together, and in ``none_good`` pages that are not.

    Strata without pages are passed over. None while one that has pages has no label.
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
    low, high = betaincinv(mean * size, (1.0 - mean) * size, (tail, 1.0 - tail))
    # A share of none or all is its interval's end, and no label can tell otherwise.
    low, high = min(float(low), value), max(float(high), value)
    part = whole / (whole + none_good)
    return ShareEstimate(part * value, part * low, part * high, sum(one.drawn for one in filled))


def withheld_reason(share: ShareEstimate | None, answers: int) -> str:
    """Why ``share`` is withheld, ``answers`` being the labels it stands on; empty when it is not.

    An interval of fewer than :data:`MIN_ANSWERS` holds almost anything and misleads.
    """
    if answers < MIN_ANSWERS:
        return f"too few answers: {answers} of {MIN_ANSWERS}"
    return "too few answers: all on one of the classifier's two verdicts" if share is None else ""


def format_share(share: ShareEstimate | None, answers: int) -> str:
    """A share as percents, such as ``84% (76 to 90)``, or why it is withheld."""
    missing = withheld_reason(share, answers)
    if missing or share is None:
        return missing
    return f"{100 * share.value:.0f}% ({100 * share.low:.0f} to {100 * share.high:.0f})"
