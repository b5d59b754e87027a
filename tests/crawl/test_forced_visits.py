"""When a page is visited whatever its visit is worth."""

import math
from typing import Any

import pytest

from focused.durations import DAY_S
from focused.revisit.policies import Uniform
from focused.revisit.policy import RevisitInputs, Visit
from focused.revisit.schedule import RevisitSchedule
from focused.topic import Revisit, Scope
from focused_lab.freshness.memory_schedule import MemorySchedule
from tests.support.simulated import page, topic

PAGES = 20
DAYS = 200.0
PER_DAY = 4
MEAN_DAYS = PAGES / PER_DAY
HOME = "http://a.test/"
URLS = (HOME, *(f"http://a.test/{number}" for number in range(1, PAGES)))


class WorthlessFirstPage(Uniform):
    """Visits all pages at one interval, and sees no value in a visit of the first."""

    forced_after = 3.0

    def __init__(self, inputs: RevisitInputs, gaps: list[float]) -> None:
        super().__init__(inputs)
        self._gaps = gaps
        self._first: int | None = None

    def add(self, page: int, site: int, directory: int, weight: float, at: float) -> None:
        if self._first is None:
            self._first = page
        super().add(page, site, directory, weight, at)

    def record(self, visit: Visit) -> None:
        if visit.page == self._first:
            self._gaps.append((visit.at - visit.previous_at) / DAY_S)
        super().record(visit)

    def due_at(self, page: int, price: float) -> float:
        return math.inf if page == self._first else super().due_at(page, price)

    def value(self, page: int, at: float) -> float:
        return 0.0 if page == self._first else super().value(page, at)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, 3 * MEAN_DAYS),
        ({"max_interval_days": 10.0}, 10.0),
        ({"max_interval_days": 1_000.0}, 3 * MEAN_DAYS),
        ({"min_pace": 0.5}, MEAN_DAYS / 0.5),
        ({"min_pace": 0.8}, MEAN_DAYS / 0.8),
    ],
)
def test_a_page_waits_three_mean_intervals_or_as_long_as_its_topic_lets_it(
    simulate, tmp_path, use_revisit_policy, settings, expected
):
    waited: list[float] = []
    use_revisit_policy(lambda inputs: WorthlessFirstPage(inputs, waited))
    web: dict[str, Any] = {url: page(url, text=f"whale krill {url}") for url in URLS[1:]}
    web[HOME] = page(HOME, *URLS[1:], text="whale krill")
    revisit = Revisit(
        continuous=True, hours=DAYS * 24, pages_per_day=PER_DAY, by_relevance=False, **settings
    )
    scope = Scope(near_duplicates=False, mirrors=False)
    simulate(topic(tmp_path, HOME, revisit=revisit, scope=scope), web).run(20_000)
    assert len(waited) > 5
    # The mean interval follows the size of the collection, in steps of 20%.
    steady = waited[2:]
    assert all(expected * 0.8 <= each <= expected * 1.25 + 0.5 for each in steady), waited


def test_a_page_that_is_worth_less_waits_longer():
    """The crawl gives its pages weights; half the weight waits twice as long."""

    records = MemorySchedule()
    weights = {0: 1.0, 1: 0.5, 2: 0.0, 3: 7.0}
    policy = WorthlessFirstPage(RevisitInputs(DAY_S, records), [])
    schedule = RevisitSchedule(policy, records, mean_interval_s=DAY_S, max_interval_s=100 * DAY_S)
    for number, weight in weights.items():
        schedule.set_weight(number, weight)
    longest = [schedule.longest_interval_s(number) / DAY_S for number in weights]
    assert longest == [3.0, 6.0, 100.0, 3.0]
