"""The leading worker grants pages, also after the coordinator lost its data."""

from __future__ import annotations

from focused.cluster.coordinator import ClusterState, PartitionStatus
from focused.cluster.leadership import Leadership
from focused.cluster.memory_coordinator import MemoryCoordinator
from focused.topic import Budget


def status(partition: int, fetched: int, *priorities: float) -> PartitionStatus:
    return PartitionStatus(
        partition, 1, "worker", fetched, priorities=priorities, reported_at=float(fetched)
    )


def idle(partition: int, rounds: int, at: float) -> PartitionStatus:
    return PartitionStatus(partition, 1, "worker", rounds=rounds, is_idle=True, reported_at=at)


def test_a_crawl_ends_only_when_all_have_read_their_streams_again() -> None:
    coordinator = MemoryCoordinator(lambda: 0.0)
    leadership = Leadership(coordinator, 2, Budget())
    for at, rounds in enumerate((5, 5, 6)):
        leadership.act({number: idle(number, rounds, float(at)) for number in range(2)})
        assert coordinator.command().state is ClusterState.RUNNING
    leadership.act({number: idle(number, 7, 9.0) for number in range(2)})
    assert coordinator.command().state is ClusterState.ENDED


def test_after_the_grants_were_lost_pages_that_were_fetched_count_as_granted() -> None:
    coordinator = MemoryCoordinator(lambda: 0.0)
    leadership = Leadership(coordinator, 2, Budget(pages=10_000))
    leadership.act({0: status(0, 5_000, 0.9), 1: status(1, 300, 0.5)})
    granted = coordinator.granted()
    assert granted[0] > 5_000
    assert granted[1] >= 300


def test_lost_grants_are_replaced_within_the_budget() -> None:
    coordinator = MemoryCoordinator(lambda: 0.0)
    leadership = Leadership(coordinator, 2, Budget(pages=5_301))
    leadership.act({0: status(0, 5_000, 0.9, 0.8), 1: status(1, 300, 0.5)})
    assert coordinator.granted() == {0: 5_001, 1: 300}
