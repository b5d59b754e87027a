"""Policies that combine a model of change rates with an allocation rule.

Uniform, proportional and optimal allocation with each estimator (Cho and Garcia-Molina 2000, 2003),
by group (Carney, Lee, Zdonik 2003), on features (Barbosa and others 2005), with rates learned first
(Upadhyay and others 2020), for visits at random times (Azar and others 2018), with harmonic
staleness (Kolobov and others 2019), for polling systems (Talim and others 2001), by WIRE's value of
a page (Castillo 2004), and weighted by page quality (Cho, Roy, Adams 2005).
"""

from __future__ import annotations

import math
from collections.abc import Callable

from focused.durations import DAY_S, YEAR_S
from focused.revisit.policy import RevisitInputs, Visit
from focused_lab.revisit_policies.allocation import (
    HARMONIC,
    NEVER,
    OPTIMAL_AGE,
    OPTIMAL_FRESHNESS,
    PROPORTIONAL,
    RANDOM_FRESHNESS,
    AllocationRule,
    polling_rule,
)
from focused_lab.revisit_policies.estimators import (
    RateEstimator,
    last_modified_rate,
    logarithmic_rate,
    page_quality,
    ratio_rate,
)
from focused_lab.revisit_policies.rate_models import (
    ClassRates,
    CommittedRates,
    FeatureRates,
    GroupOf,
    GroupRates,
    HistoryRates,
    PackedRecords,
    RateModel,
    ShrunkRates,
    StoredPolicy,
    directory_of,
    rate_class_of,
    read_page_visits,
    site_of,
    write_page_visits,
)

LEARNING_HORIZON_S = 3 * YEAR_S
"""The horizon of explore-then-commit: how long a crawl is expected to run."""


class AllocatedPolicy(StoredPolicy):
    """A policy whose due times follow from a page's change rate and an allocation rule.

    The rate of a page is fixed between its visits, and so is its due time for a price.
    """

    def __init__(self, inputs: RevisitInputs, rule: AllocationRule, rates: RateModel) -> None:
        super().__init__(inputs)
        self.follows_siblings = rates.shares_groups
        self._popularities = PackedRecords(inputs.records, "popularity", "<df")
        self._rule = rule
        self._rates = rates

    def record(self, visit: Visit) -> None:
        """Learn from a visit."""
        record = read_page_visits(self._records, visit.page)
        self._rates.learn(visit, record)
        record.add(visit)
        write_page_visits(self._records, visit.page, record)

    def due_at(self, page: int, price: float) -> float:
        """Return when the rule's value of a visit reaches the price."""
        record = read_page_visits(self._records, page)
        rate = self._rates.rate(page, record)
        return record.last_at + self._rule.interval(rate, record.weight, price)

    def value(self, page: int, at: float) -> float:
        """Return the rule's value of a visit."""
        record = read_page_visits(self._records, page)
        elapsed_s = max(at - record.last_at, 0.0)
        return self._rule.value(self._rates.rate(page, record), record.weight, elapsed_s)

    def change_probability(self, page: int, at: float) -> float:
        """Return 1 - exp(-rate elapsed)."""
        record = read_page_visits(self._records, page)
        return -math.expm1(-self._rates.rate(page, record) * max(at - record.last_at, 0.0))

    def remove(self, page: int) -> None:
        """Forget a page."""
        super().remove(page)
        self._rates.remove(page)
        self._popularities.delete(page)

    def observe_popularity(
        self, page: int, popularity: float, at: float, visits_per_s: float = 1 / DAY_S
    ) -> None:
        """Set the weight of a page to its quality, from its popularity now and the time before.

        ``popularity`` is a share of users in [0, 1], such as a PageRank divided by the largest.
        """
        record = read_page_visits(self._records, page)
        known = self._popularities.get(page)
        record.weight = popularity
        if known is not None:
            before_at, before = known
            record.weight = page_quality(before, popularity, at - before_at, visits_per_s)
        write_page_visits(self._records, page, record)
        self._popularities.put(page, at, popularity)


def wire_rule(unit_s: float, quality: float = 1.0, freshness: float = 1.0) -> AllocationRule:
    """WIRE's gain of value by a visit: q^a (1 - p^c), with p = exp(-rate elapsed).

    ``quality`` is a and ``freshness`` c; what is kept of a page, r^b, is the same for all pages
    here. RevisitSchedule is the long-term scheduler, the frontier the short-term one. ``unit_s``
    scales the value, so that prices start below it.
    """

    def value(rate: float, weight: float, elapsed_s: float) -> float:
        return float(-unit_s * weight**quality * math.expm1(-freshness * rate * elapsed_s))

    def interval(rate: float, weight: float, price: float) -> float:
        worth = unit_s * weight**quality
        if rate <= 0 or price >= worth:
            return NEVER
        return float(-math.log1p(-price / worth) / (freshness * rate))

    return AllocationRule("wire", value, interval)


PolicyMaker = Callable[[RevisitInputs], AllocatedPolicy]


def _by_rates(
    rule: AllocationRule, make_rates: Callable[[RevisitInputs], RateModel]
) -> PolicyMaker:
    return lambda inputs: AllocatedPolicy(inputs, rule, make_rates(inputs))


def _by_history(rule: AllocationRule, estimate: RateEstimator) -> PolicyMaker:
    return _by_rates(rule, lambda inputs: HistoryRates(inputs.records, estimate))


def _by_shrunk_rates(rule: AllocationRule) -> PolicyMaker:
    return _by_rates(rule, lambda inputs: ShrunkRates(inputs.records))


def _by_group(
    kind: str, group_of: GroupOf, *, shares_groups: bool
) -> Callable[[RevisitInputs], GroupRates]:
    return lambda inputs: GroupRates(inputs.records, kind, group_of, shares_groups=shares_groups)


proportional = _by_history(PROPORTIONAL, logarithmic_rate)
optimal_ratio = _by_history(OPTIMAL_FRESHNESS, ratio_rate)
optimal_logarithmic = _by_history(OPTIMAL_FRESHNESS, logarithmic_rate)
optimal_last_modified = _by_history(OPTIMAL_FRESHNESS, last_modified_rate)
optimal_age = _by_history(OPTIMAL_AGE, logarithmic_rate)
page_value = _by_history(OPTIMAL_FRESHNESS, logarithmic_rate)
optimal_likelihood = _by_shrunk_rates(OPTIMAL_FRESHNESS)
azar = _by_shrunk_rates(RANDOM_FRESHNESS)
kolobov = _by_shrunk_rates(HARMONIC)
optimal_classes = _by_rates(OPTIMAL_FRESHNESS, lambda inputs: ClassRates(inputs.records))
optimal_features = _by_rates(
    OPTIMAL_FRESHNESS,
    lambda inputs: FeatureRates(inputs.records, inputs.mean_interval_s),
)
grouped_by_site = _by_rates(OPTIMAL_FRESHNESS, _by_group("site", site_of, shares_groups=True))
grouped_by_directory = _by_rates(
    OPTIMAL_FRESHNESS,
    _by_group("directory", directory_of, shares_groups=True),
)
grouped_by_rate = _by_rates(
    OPTIMAL_FRESHNESS, _by_group("class", rate_class_of, shares_groups=False)
)
upadhyay = _by_rates(
    RANDOM_FRESHNESS,
    lambda inputs: CommittedRates(inputs.records, inputs.mean_interval_s, LEARNING_HORIZON_S),
)


def polling(inputs: RevisitInputs) -> AllocatedPolicy:
    """Polling: the fetches of a page are a mean interval apart, at random."""
    rates = HistoryRates(inputs.records, logarithmic_rate)
    return AllocatedPolicy(inputs, polling_rule(inputs.mean_interval_s), rates)


def wire(inputs: RevisitInputs) -> AllocatedPolicy:
    """WIRE's value of a page with a = c = 1."""
    rates = HistoryRates(inputs.records, last_modified_rate)
    return AllocatedPolicy(inputs, wire_rule(inputs.mean_interval_s), rates)
