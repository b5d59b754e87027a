"""The hazard model learns which pages change, and follows bursts."""

import random

import pytest

from focused.durations import DAY_S
from focused.revisit.hazard import Hazard
from focused.revisit.policy import RevisitInputs, Visit
from focused_lab.freshness.memory_schedule import MemorySchedule

MEAN_S = 30 * DAY_S


@pytest.fixture
def trained() -> Hazard:
    """A model after visits to 40 pages, of which every fourth changes each 20 days."""
    policy = Hazard(RevisitInputs(MEAN_S, MemorySchedule()))
    rng = random.Random(0)
    for page in range(40):
        policy.add(page, page % 2, page % 4, 1.0, 0.0)
    for step in range(1, 16):
        for page in range(40):
            at = step * MEAN_S + page
            changed = page % 4 == 0 and rng.random() < 0.8
            policy.record(Visit(page, at, at - MEAN_S, changed))
    return policy


def test_a_page_that_changed_often_is_due_before_one_that_never_did(trained):
    assert trained.due_at(0, 1.0) < trained.due_at(1, 1.0)


def test_due_times_in_a_batch_are_those_of_single_pages_about_now(trained):
    now = 15 * MEAN_S + 39
    pages = [page for page in range(40) if page % 2 == 0]
    prices = [trained.value(page, now) for page in pages]
    batch = trained.due_at_many(pages, prices)
    assert batch == pytest.approx([now] * len(pages), abs=DAY_S)


def test_the_value_is_proportional_to_the_weight():
    policy = Hazard(RevisitInputs(MEAN_S, MemorySchedule()))
    policy.add(0, 0, 0, 1.0, 0.0)
    policy.add(1, 0, 0, 2.0, 0.0)
    assert policy.value(1, MEAN_S) == pytest.approx(2 * policy.value(0, MEAN_S))


def test_features_do_not_know_the_outcome_of_their_visit():
    """The weights after one batch of coin flips stay near the prior."""
    policy = Hazard(RevisitInputs(MEAN_S, MemorySchedule()))
    rng = random.Random(1)
    for page in range(50):
        policy.add(page, page, page, 1.0, 0.0)
    for page in range(50):
        policy.record(Visit(page, MEAN_S, 0.0, changed=rng.random() < 0.5))
    assert max(abs(weight) for weight in policy.weights[3:]) < 0.5


def test_pages_that_stop_changing_are_still_expected_to_change_some_day():
    """A step of the model must not overshoot where its predictions were certain and wrong."""
    mean_s = 3 * DAY_S
    policy = Hazard(RevisitInputs(mean_s, MemorySchedule()))
    last = dict.fromkeys(range(60), 0.0)
    for page in last:
        policy.add(page, 1, 1, 1.0, 0.0)
    for visit in range(5 * len(last)):
        page, at = visit % len(last), (visit + 1) * mean_s / len(last)
        policy.record(Visit(page, at, last[page], changed=visit < 3 * len(last)))
        last[page] = at
    assert 0.05 < policy.change_probability(0, last[0] + mean_s) < 0.5
