"""Workers share a crawl: each page once, one budget, one end, whoever joins, leaves or dies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from focused.cluster import learning, owned_partition, worker
from focused.cluster.coordinator import ClusterState
from focused.cluster.exchange import MemoryExchange
from focused.errors import ExchangeError
from focused.topic import Budget, Topic
from tests.support.pupil import Pupil
from tests.support.simulated import START, politely, topic
from tests.support.workers import LEASE_S, Workers, ring, stop

HOSTS, PAGES = 6, 5
SEED = "http://h0.test/0"
WEB = ring(HOSTS, PAGES)
ALL = sorted(WEB)

Start = Callable[..., Workers]


@pytest.fixture
def subject(tmp_path: Path) -> Topic:
    return politely(topic(tmp_path, SEED), per_address=False)


@pytest.fixture
def workers(tmp_path: Path, subject: Topic) -> Iterator[Workers]:
    workers = Workers(subject, WEB, tmp_path)
    yield workers
    workers.close()


def owned(workers: Workers) -> dict[str, int]:
    return {name: len(each.group.partitions) for name, each in workers.running.items()}


def requests(workers: Workers) -> Counter[str]:
    return Counter(url for _, _, url in workers.asked if not url.endswith("/robots.txt"))


def test_one_worker_fetches_every_page_and_ends(workers: Workers) -> None:
    workers.start("a")
    workers.run()
    assert workers.fetched() == ALL
    assert workers.coordinator.command().reason == "no link is left"


def test_workers_fetch_every_page_once_between_them(workers: Workers) -> None:
    for name in "abc":
        workers.start(name)
    workers.run()
    assert workers.fetched() == ALL
    assert requests(workers) == Counter(dict.fromkeys([*ALL, *_beyond()], 1))


def test_partitions_are_shared_among_those_who_are_there(workers: Workers) -> None:
    for name in "ab":
        workers.start(name)
    workers.run(until=lambda: sorted(owned(workers).values()) == [1, 3], within_s=60.0)


def test_the_budget_is_that_of_all_workers(workers: Workers) -> None:
    workers.topic = replace(workers.topic, budget=Budget(pages=12))
    for name in "ab":
        workers.start(name)
    workers.run()
    assert len(workers.fetched()) == 12
    assert workers.coordinator.command().reason == "page budget spent"


def test_a_worker_that_joins_gets_partitions(workers: Workers) -> None:
    workers.start("a")
    workers.run(until=lambda: owned(workers)["a"] == 4)
    workers.start("b")
    workers.run(until=lambda: owned(workers).get("b", 0) > 0, within_s=60.0)
    workers.run()
    assert workers.fetched() == ALL
    assert max(requests(workers).values()) == 1


def test_a_drained_worker_gives_its_partitions_away_and_ends(workers: Workers) -> None:
    for name in "ab":
        workers.start(name)
    workers.run(until=lambda: sum(owned(workers).values()) == 4)
    workers.coordinator.drain("a")
    workers.run(until=lambda: workers.running["a"].ended is not None, within_s=60.0)
    workers.run()
    assert workers.running["a"].ended == "the worker was drained"
    assert workers.fetched() == ALL
    assert max(requests(workers).values()) == 1


def test_the_partitions_of_a_dead_worker_are_taken_over(workers: Workers) -> None:
    for name in "ab":
        workers.start(name)
    workers.run(until=lambda: len(workers.asked) >= 20)
    died_at = workers.now
    in_flight = len(workers.running["a"].under_way)
    workers.kill("a")
    workers.run(until=lambda: owned(workers)["b"] == 4, within_s=60.0)
    assert workers.now - died_at < LEASE_S + 5.0
    workers.run()
    assert workers.fetched() == ALL
    # A second of work is repeated: at most two requests to each of its hosts.
    repeated = sum(requests(workers).values()) - len(requests(workers))
    assert repeated <= in_flight + 2 * HOSTS


def test_a_worker_that_slept_too_long_fetches_nothing_and_stops(workers: Workers) -> None:
    for name in "ab":
        workers.start(name)
    workers.run(until=lambda: len(workers.asked) >= 20)
    workers.running["a"].is_asleep = True
    workers.run(until=lambda: owned(workers)["b"] == 4, within_s=60.0)
    slept_until = workers.now + LEASE_S
    workers.run(until=lambda: workers.now > slept_until)
    workers.running["a"].is_asleep = False
    woken_at = workers.now
    workers.run()
    assert workers.fetched() == ALL
    after = [url for at, name, url in workers.asked if name == "a" and at >= woken_at]
    before = {url for at, name, url in workers.asked if name == "b" and at < woken_at}
    assert not before & set(after)


def test_a_host_is_never_requested_sooner_than_its_delay(workers: Workers) -> None:
    for name in "ab":
        workers.start(name)
    workers.run(until=lambda: len(workers.asked) >= 20)
    workers.kill("a")
    workers.start("c")
    workers.run()
    by_host: dict[str, list[float]] = {}
    for at, _, url in workers.asked:
        by_host.setdefault(url.split("/")[2], []).append(at)
    gaps = [b - a for times in by_host.values() for a, b in pairwise(times)]
    assert min(gaps) >= 1.0


def test_a_paused_cluster_fetches_nothing_until_it_is_resumed(workers: Workers) -> None:
    workers.start("a")
    workers.run(until=lambda: len(workers.asked) >= 5)
    stop(workers, ClusterState.PAUSED)
    paused_at = workers.now
    workers.run(until=lambda: workers.now > paused_at + 30.0)
    assert max(at for at, _, _ in workers.asked) < paused_at + 3.0
    stop(workers, ClusterState.RUNNING)
    workers.run()
    assert workers.fetched() == ALL


def test_a_stopped_cluster_goes_on_with_new_workers(workers: Workers) -> None:
    workers.start("a")
    workers.run(until=lambda: len(workers.asked) >= 10)
    stop(workers, ClusterState.STOPPING)
    workers.run()
    stop(workers, ClusterState.RUNNING)
    workers.start("b")
    workers.run()
    assert workers.fetched() == ALL
    assert max(requests(workers).values()) == 1


def test_partitions_of_a_worker_that_died_at_the_end_are_archived_by_another(
    workers: Workers,
) -> None:
    for name in "ab":
        workers.start(name)
    ended = ClusterState.ENDED
    workers.run(until=lambda: workers.coordinator.command().state is ended)
    workers.kill("a")
    workers.run()
    assert workers.fetched() == ALL


def test_a_worker_that_starts_after_the_end_ends_at_once(workers: Workers) -> None:
    workers.start("a")
    workers.run()
    workers.start("b")
    workers.run(within_s=5.0)
    assert workers.running["b"].ended == "no link is left"


def test_an_ended_crawl_is_resumed_with_a_larger_budget(workers: Workers) -> None:
    workers.topic = replace(workers.topic, budget=Budget(pages=10))
    workers.start("a")
    workers.run()
    workers.topic = replace(workers.topic, budget=Budget(pages=20))
    stop(workers, ClusterState.RUNNING)
    workers.start("b")
    workers.run()
    assert len(workers.fetched()) == 20


class FullExchange(MemoryExchange):
    """Takes no links until it is emptied."""

    is_full = True

    def send_all(self, batches: Sequence[tuple[int, bytes]]) -> None:
        if self.is_full and batches:
            raise ExchangeError("Redis is full")
        super().send_all(batches)


def test_a_partition_whose_links_are_not_taken_stops_finding_more(
    workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owned_partition, "MAX_OUTBOX_LINKS", 2)
    workers.exchange = full = FullExchange()
    workers.start("a")
    workers.run(until=lambda: workers.now > START + 60.0)
    # Its first partition sees no other's links, and waits before its host has no more pages.
    assert 0 < len(requests(workers)) < PAGES
    full.is_full = False
    workers.run()
    assert workers.fetched() == ALL


def heard(workers: Workers) -> dict[str, list[str]]:
    """What the scorer of each worker learned, restored or read."""
    return {name: [url for url, _, _ in each.lessons] for name, each in workers.scorers.items()}


@pytest.fixture
def learners(tmp_path: Path, subject: Topic) -> Iterator[Workers]:
    workers = Workers(subject, WEB, tmp_path, new_scorer=Pupil)
    yield workers
    workers.close()


def test_all_workers_learn_from_all_pages_in_one_order(learners: Workers) -> None:
    for name in "ab":
        learners.start(name)
    learners.run(until=lambda: learners.coordinator.command().state is ClusterState.ENDED)
    learned = heard(learners)
    assert sorted(learned["a"]) == ALL
    assert learned["a"] == learned["b"]


def test_a_worker_that_joins_learns_what_was_trimmed_from_a_snapshot(
    learners: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(learning, "EXAMPLES_PER_SNAPSHOT", 2)
    learners.exchange = MemoryExchange(max_published=5)
    learners.start("a")
    learners.run(until=lambda: len(heard(learners)["a"]) >= 20)
    learners.start("b")
    learners.run(until=lambda: learners.coordinator.command().state is ClusterState.ENDED)
    learned = heard(learners)
    assert learned["a"] == learned["b"]
    assert sorted(learned["b"]) == ALL


def test_fewer_examples_are_shared_where_workers_fetch_more_than_they_can_learn_from(
    learners: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared: list[float] = []

    def probability(pages_per_s: float) -> float:
        shared.append(pages_per_s)
        return 0.0 if pages_per_s > 0 else 1.0

    monkeypatch.setattr(worker, "sharing_probability", probability)
    for name in "ab":
        learners.start(name)
    learners.run()
    assert max(shared) > 1.0
    assert len(heard(learners)["a"]) < len(ALL) / 2


def _beyond() -> list[str]:
    """The pages that the last ones link to; they do not exist."""
    return [f"http://h{host}.test/{PAGES}" for host in range(HOSTS)]
