"""Hosts belong to partitions, partitions to workers."""

from __future__ import annotations

import math
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from focused.cluster.assignment import PartitionMap, SiteUnit, assign_partitions

WORKERS = st.sets(st.text("abcdef0123456789-", min_size=1, max_size=8), min_size=1, max_size=12)


def test_hosts_of_one_domain_belong_to_one_partition() -> None:
    urls = ["http://a.example.co.uk/1", "https://b.example.co.uk/", "http://example.co.uk/x?y"]
    assert len(set(map(PartitionMap(64).of_url, urls))) == 1


def test_by_host_the_hosts_of_a_domain_are_spread() -> None:
    urls = [f"http://h{n}.example.org/" for n in range(100)]
    assert len(set(map(PartitionMap(64, SiteUnit.HOST).of_url, urls))) > 30


def test_domains_are_spread_evenly() -> None:
    counts = Counter(map(PartitionMap(16).of_url, (f"http://site{n}.org/" for n in range(16_000))))
    assert len(counts) == 16
    assert max(counts.values()) < 1.15 * 1_000


@given(WORKERS, st.integers(1, 100), st.floats(1.0, 2.0))
def test_no_worker_has_more_than_its_share(
    workers: set[str], partitions: int, max_load: float
) -> None:
    assigned = assign_partitions(partitions, workers, max_load=max_load)
    assert sorted(assigned) == list(range(partitions))
    bound = math.ceil(max_load * partitions / len(workers))
    assert max(Counter(assigned.values()).values()) <= bound


@given(WORKERS)
def test_every_worker_computes_the_same(workers: set[str]) -> None:
    names = sorted(workers)
    assert assign_partitions(64, names) == assign_partitions(64, list(reversed(names)))


def test_few_partitions_move_when_a_worker_leaves() -> None:
    workers = [f"worker-{n}" for n in range(10)]
    before = assign_partitions(640, workers)
    for left in workers:
        after = assign_partitions(640, [name for name in workers if name != left])
        moved = sum(before[n] != after[n] for n in before)
        assert Counter(before.values())[left] <= moved < 2.5 * 640 / 10


def test_without_workers_nothing_is_assigned() -> None:
    assert assign_partitions(8, []) == {}
