"""The leading worker grants pages, also after the coordinator lost its data."""

from __future__ import annotations

from focused.cluster.coordinator import PartitionStatus
from focused.cluster.leadership import Leadership
from focused.cluster.memory_coordinator import MemoryCoordinator
from focused.topic import Budget


def status(partition: int, fetched: int, *priorities: float) -> PartitionStatus:
    return PartitionStatus(
        partition, 1, "worker", fetched, priorities=priorities, reported_at=float(fetched)
    )


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
