"""The hazard model of changes: features of a page, and when a visit is worth its price.

A *page* is its record in :mod:`focused.revisit.hazard`, a *group* one of
:mod:`focused.revisit.group_activity`. A *context* holds what does not depend on the time.
"""

from __future__ import annotations

from math import ceil, exp, expm1, floor, log
from typing import Final

DAY_S: Final = 86_400.0
HALF_LIFE_DAYS: Final = 60.0
"""Of a group's recent changes."""
SHORTEST_DAYS: Final = 60.0 / 86_400.0
MAX_LOG_HAZARD: Final = 2.0
"""A page has surely changed then. Without the limit the value of a visit might fall with time."""
PRIOR_DAYS: Final = 200.0
"""Days between two changes of a page, before any visit."""
PRIOR_CHANGES: Final = 2.0
"""A group's rate starts from that of the group above, as if it had so many changes."""
SMOOTHING: Final = 0.5
CROSSING_STEPS: Final = 4
PRECISE: Final = 0.001
"""A step in log time after which a crossing is precise enough."""
LN2: Final = 0.6931471805599453

Page = tuple[int, int, float, int, float, float, float, float, float, int]
"""Site, directory, weight, last visit, observed and quiet days, recent changes, changes."""
Group = tuple[float, float, float, float, float, float, tuple[float, ...], tuple[float, ...]]
GroupContext = tuple[float, float, float, float, float]
"""Last visit; recent changes, and those that the rate predicts; the log of the rate; and the
activity since the last visit of the page."""
Context = tuple[float, float, float, float, float, float, float, float, GroupContext, GroupContext]
"""Weight, last visit, observed and quiet days, recent changes, change rate; directory and site."""
Weights = tuple[
    float, float, float, float, float, float, float,
    float, float, float, float, float, float, float,
]  # fmt: skip
"""As many as features."""


def activity_since(group: Group, at: float) -> tuple[float, float]:
    """Return changes and page-days of a group after a time, as far as its bins reach."""
    last, bin_days, changes_by_bin, days_by_bin = group[0], group[5], group[6], group[7]
    width = bin_days * DAY_S
    start = floor(last / width) * width
    number = 0
    if at >= start:
        share = max(last - at, 0.0) / max(last - start, 1.0)
    else:
        position = (start - at) / width
        number = ceil(position)
        share = 1.0 - number + position
        if number >= len(changes_by_bin):
            number, share = len(changes_by_bin) - 1, 1.0
    changes = 0.0
    days = 0.0
    for each in range(number):
        changes += changes_by_bin[each]
        days += days_by_bin[each]
    return changes + share * changes_by_bin[number], days + share * days_by_bin[number]


def page_context(
    page: Page, directory: Group, site: Group, all_changes: float, all_days: float
) -> Context:
    """Return the context of a page; each change rate is shrunk to that of the group above."""
    last = float(page[3])
    rate = (all_changes + 1.0) / (all_days + PRIOR_DAYS)
    rate, of_site = group_context(site, rate, last)
    rate, of_directory = group_context(directory, rate, last)
    rate = (page[9] + 1.0) / (page[4] + 1.0 / rate)
    return (
        page[2], last, page[4], page[5], page[6], page[7], page[8], rate, of_directory, of_site
    )  # fmt: skip


def group_context(group: Group, rate_above: float, last: float) -> tuple[float, GroupContext]:
    """Return the change rate of a group, and its context for a page that was visited ``last``."""
    changes_since, days_since = activity_since(group, last)
    rate = (group[1] + PRIOR_CHANGES) / (group[2] + PRIOR_CHANGES / rate_above)
    since = log((changes_since + SMOOTHING) / (days_since * rate + SMOOTHING))
    return rate, (group[0], group[3], group[4] * rate, log(rate), since)


def page_features(context: Context, at: float) -> Weights:
    """Return :data:`focused.revisit.hazard.FEATURES` of a page at a time."""
    _, last, observed, quiet, recent_7, recent_30, recent_120, rate, directory, site = context
    days = max((at - last) / DAY_S, SHORTEST_DAYS)
    return (
        1.0,
        log(days),
        log(rate),
        page_activity(recent_7, 7.0, days, rate),
        page_activity(recent_30, 30.0, days, rate),
        page_activity(recent_120, 120.0, days, rate),
        group_activity(directory, at),
        directory[4],
        group_activity(site, at),
        site[4],
        log(1.0 + (days + quiet) * rate),
        log(1.0 + observed + days) - 5.0,
        directory[3],
        site[3],
    )


def page_activity(changes: float, half_life: float, days: float, rate: float) -> float:
    """Return the activity of a page some days after its last visit."""
    changes = changes * exp(days * (-LN2 / half_life))
    return log((changes + SMOOTHING) / (rate * (half_life / LN2) + SMOOTHING))


def group_activity(group: GroupContext, at: float) -> float:
    """Return the activity of a group at a time."""
    left = exp(max(at - group[0], 0.0) * (-LN2 / HALF_LIFE_DAYS / DAY_S))
    return log((group[1] * left + SMOOTHING) / (group[2] * left + SMOOTHING))


def log_hazard(features: Weights, weights: Weights) -> float:
    """Return the log of the changes that are expected since the last visit."""
    x, w = features, weights
    total = x[0] * w[0] + x[1] * w[1] + x[2] * w[2] + x[3] * w[3] + x[4] * w[4] + x[5] * w[5]
    total = total + x[6] * w[6] + x[7] * w[7] + x[8] * w[8] + x[9] * w[9] + x[10] * w[10]
    return min(total + x[11] * w[11] + x[12] * w[12] + x[13] * w[13], MAX_LOG_HAZARD)


def crossing(
    time: float, at_time: float, slope: float, log_price: float, longest: float, precise: float
) -> float:
    """Return the log time at which the value reaches the price, by Newton's method.

    ``at_time`` is the log hazard at the log time ``time``; it grows linearly with ``slope``. Steps
    end below ``precise``.
    """
    shortest = log(SHORTEST_DAYS)
    at = time
    for _ in range(CROSSING_STEPS):
        log_l = min(at_time + slope * (at - time), MAX_LOG_HAZARD)
        hazard = exp(log_l)
        p: float = -expm1(-hazard)
        gap = 2.0 * log(p) + at - log_l - log_price
        step = gap / (2.0 * slope * hazard * (1.0 - p) / p + 1.001 - slope)
        at = min(max(at - step, shortest), longest)
        if -precise < step < precise:
            break
    return at


def due_after(
    context: Context,
    features: Weights,
    weights: Weights,
    slope: float,
    log_price: float,
    longest: float,
) -> float:
    """Return the days after the last visit at which the value of a visit reaches the price.

    ``features`` are those of a time near the due time.
    """
    # The log hazard is nearly linear in log time: two evaluations are enough.
    first, at_first = features[1], log_hazard(features, weights)
    second = crossing(first, at_first, slope, log_price, longest, PRECISE)
    if abs(second - first) < 0.05:
        return exp(second)
    at_second = log_hazard(page_features(context, context[1] + exp(second) * DAY_S), weights)
    slope = min(max((at_second - at_first) / (second - first), 0.1), 1.0)
    return exp(crossing(second, at_second, slope, log_price, longest, PRECISE))


def due_times(
    pages: list[Page],
    directories: dict[int, Group],
    site: Group,
    all_changes: float,
    all_days: float,
    now: float,
    weights: Weights,
    slope: float,
    prices: list[float],
    longest: float,
) -> list[float]:
    """Return due times of pages of one site, by one evaluation of each at ``now``."""
    found: list[float] = []
    for number in range(len(pages)):
        page = pages[number]
        context = page_context(page, directories[page[1]], site, all_changes, all_days)
        features = page_features(context, now)
        log_price = log(prices[number] / max(page[2], 1e-30))
        at = crossing(features[1], log_hazard(features, weights), slope, log_price, longest, 0.0)
        found.append(context[1] + exp(at) * DAY_S)
    return found
