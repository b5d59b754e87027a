"""The hazard model of changes: features of a page, and when a visit is worth its price.

A *page* and a *group* are records of :mod:`focused.revisit.hazard`. A *context* holds what does not
depend on the time.
"""

from __future__ import annotations

from math import ceil, exp, expm1, floor, inf, log
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
MAX_CHANGES: Final = 0xFFFF
MARGIN: Final = 0.1
"""A page is surely due later if the log of its value misses that of the price by so much."""
LONGEST_S: Final = 1e12
"""A time limit beyond this is none."""

Page = tuple[int, int, float, int, float, float, float, float, float, int]
"""Site, directory, weight, last visit, observed and quiet days, recent changes, changes."""
Group = tuple[float, float, float, float, float, float, tuple[float, ...], tuple[float, ...]]
"""Last visit; changes and page-days; the same, decayed to the last visit; the width of a bin; and
changes and page-days by bin, newest first. Bins begin at multiples of their width, and the newest
holds the last visit."""
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


def decay(days: float, half_life: float) -> float:
    """Return what is left after a time."""
    return exp(-LN2 / half_life * days)


def mean_decay(days: float, half_life: float) -> float:
    """Return the mean decay of an event that happened at any time within the last ``days``."""
    exponent = LN2 / half_life * days
    return -expm1(-exponent) / exponent


def page_after(page: Page, at: float, changed: bool, changed_at: float | None) -> Page:
    """Return a page after a visit.

    ``changed_at`` is the time of the change, where it is known.
    """
    days = max((at - page[3]) / DAY_S, SHORTEST_DAYS)
    since = days / 2 if changed_at is None else (at - changed_at) / DAY_S
    # A change counts by its age; if that is unknown, by the mean over the interval.
    r7 = page[6] * decay(days, 7.0)
    r30 = page[7] * decay(days, 30.0)
    r120 = page[8] * decay(days, 120.0)
    if changed_at is not None:
        r7 += decay(since, 7.0)
        r30 += decay(since, 30.0)
        r120 += decay(since, 120.0)
    elif changed:
        r7 += mean_decay(days, 7.0)
        r30 += mean_decay(days, 30.0)
        r120 += mean_decay(days, 120.0)
    quiet = since if changed else page[5] + days
    changes = min(page[9] + 1, MAX_CHANGES) if changed else page[9]
    return page[0], page[1], page[2], int(at), page[4] + days, quiet, r7, r30, r120, changes


def group_after(
    group: Group, at: float, days: float, bin_days: float, changed: bool, changed_at: float | None
) -> Group:
    """Return a group after a visit of a page, ``days`` after the previous one of the page.

    The change is spread over this time if ``changed_at`` is None. Bins of another width than
    ``bin_days`` are dropped.
    """
    last, recent_changes, recent_days = group[0], group[3], group[4]
    size = len(group[6])
    changes_by_bin = list(group[6])
    days_by_bin = list(group[7])
    if group[5] != bin_days:
        changes_by_bin = [0.0] * size
        days_by_bin = [0.0] * size
    mean_fade = mean_decay(days, HALF_LIFE_DAYS)
    found_days = days * mean_fade
    found_changes = 0.0
    if changed_at is not None:
        found_changes = decay((at - changed_at) / DAY_S, HALF_LIFE_DAYS)
    elif changed:
        found_changes = mean_fade
    width = bin_days * DAY_S
    skipped = 0
    if last < at:
        fade = decay((at - last) / DAY_S, HALF_LIFE_DAYS)
        recent_changes *= fade
        recent_days *= fade
        passed = min(floor(at / width) - floor(last / width), size)
        if passed:
            changes_by_bin = [0.0] * passed + changes_by_bin[: size - passed]
            days_by_bin = [0.0] * passed + days_by_bin[: size - passed]
        last = at
    elif at < last:
        fade = decay((last - at) / DAY_S, HALF_LIFE_DAYS)
        found_changes *= fade
        found_days *= fade
        skipped = min(floor(last / width) - floor(at / width), size)
    # Positions are counted in bins, from the end of the newest bin at the visit into the past.
    end = floor(at / DAY_S / bin_days) + 1
    begin = end - at / DAY_S / bin_days
    stop = min(begin + days / bin_days, float(size))
    first = days if stop <= 1.0 else (1.0 - begin) * bin_days
    full = 0 if stop <= 1.0 else int(stop)
    for number in range(size - skipped):
        covered = 0.0
        if number == 0:
            covered = first
        elif number < full:
            covered = bin_days
        elif number == full:
            covered = stop % 1.0 * bin_days
        else:
            break
        days_by_bin[number + skipped] += covered
        if changed and changed_at is None:
            changes_by_bin[number + skipped] += covered / days
    if changed_at is not None:
        number = int(end - changed_at / DAY_S / bin_days) + skipped
        if 0 <= number < size:
            changes_by_bin[number] += 1.0
    return (
        last,
        group[1] + (1.0 if changed else 0.0),
        group[2] + days,
        recent_changes + found_changes,
        recent_days + found_days,
        bin_days,
        tuple(changes_by_bin),
        tuple(days_by_bin),
    )


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
    rate = group_rate(site, rate)
    of_site = group_context(site, rate, log(rate), last)
    rate = group_rate(directory, rate)
    of_directory = group_context(directory, rate, log(rate), last)
    return context_of(page, rate, of_directory, of_site)


def context_of(page: Page, rate: float, directory: GroupContext, site: GroupContext) -> Context:
    """Return the context of a page; ``rate`` is that of its directory."""
    rate = (page[9] + 1.0) / (page[4] + 1.0 / rate)
    last = float(page[3])
    return page[2], last, page[4], page[5], page[6], page[7], page[8], rate, directory, site


def group_rate(group: Group, rate_above: float) -> float:
    """Return the change rate of a group, shrunk to that of the group above."""
    return (group[1] + PRIOR_CHANGES) / (group[2] + PRIOR_CHANGES / rate_above)


def group_context(group: Group, rate: float, log_rate: float, last: float) -> GroupContext:
    """Return the context of a group for a page that was visited ``last``."""
    changes_since, days_since = activity_since(group, last)
    since = log((changes_since + SMOOTHING) / (days_since * rate + SMOOTHING))
    return group[0], group[3], group[4] * rate, log_rate, since


def page_features(context: Context, at: float) -> Weights:
    """Return :data:`focused.revisit.hazard.FEATURES` of a page at a time."""
    return features_of(context, at, group_activity(context[8], at), group_activity(context[9], at))


def features_of(context: Context, at: float, of_directory: float, of_site: float) -> Weights:
    """Return the features of a page, given the activities of its groups."""
    _, last, observed, quiet, recent_7, recent_30, recent_120, rate, directory, site = context
    days = max((at - last) / DAY_S, SHORTEST_DAYS)
    return (
        1.0,
        log(days),
        log(rate),
        page_activity(recent_7, 7.0, days, rate),
        page_activity(recent_30, 30.0, days, rate),
        page_activity(recent_120, 120.0, days, rate),
        of_directory,
        directory[4],
        of_site,
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
    latest: float,
) -> list[float]:
    """Return due times of pages of one site, by one evaluation of each at ``now``.

    Infinity for pages that are surely due after ``latest``.
    """
    found: list[float] = []
    site_rate = group_rate(site, (all_changes + 1.0) / (all_days + PRIOR_DAYS))
    log_site_rate = log(site_rate)
    site_activity = group_activity(group_context(site, site_rate, log_site_rate, now), now)
    # What the pages of a directory share: its rate, the log of that, and its activity.
    shared: dict[int, tuple[float, float, float]] = {}
    for directory, group in directories.items():
        rate = group_rate(group, site_rate)
        log_rate = log(rate)
        of_group = group_context(group, rate, log_rate, now)
        shared[directory] = rate, log_rate, group_activity(of_group, now)
    for number in range(len(pages)):
        page = pages[number]
        last = float(page[3])
        rate, log_rate, directory_activity = shared[page[1]]
        of_directory = group_context(directories[page[1]], rate, log_rate, last)
        of_site = group_context(site, site_rate, log_site_rate, last)
        context = context_of(page, rate, of_directory, of_site)
        features = features_of(context, now, directory_activity, site_activity)
        log_price = log(prices[number] / max(page[2], 1e-30))
        at_now = log_hazard(features, weights)
        until = log(max((latest - last) / DAY_S, SHORTEST_DAYS))
        log_l = min(at_now + slope * (until - features[1]), MAX_LOG_HAZARD)
        if latest - last < LONGEST_S and value_gap(log_l, until, log_price) < -MARGIN:
            found.append(inf)
            continue
        at = crossing(features[1], at_now, slope, log_price, longest, 0.0)
        found.append(last + exp(at) * DAY_S)
    return found


def value_gap(log_hazard_then: float, log_days: float, log_price: float) -> float:
    """Return the log of the value of a visit over the price."""
    p: float = -expm1(-exp(log_hazard_then))
    return 2.0 * log(p) + log_days - log_hazard_then - log_price
