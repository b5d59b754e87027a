"""The contract of every coordinator: membership, leases, statuses, budget, commands."""

from __future__ import annotations

import pytest

from focused.cluster.coordinator import (
    ClusterState,
    Coordinator,
    PartitionLease,
    PartitionStatus,
    WorkerCommand,
    WorkerState,
    WorkerStatus,
)
from tests.support.engines import LEASE_S, Engine

HALF = LEASE_S / 2


@pytest.fixture
def coordinator(engine: Engine) -> Coordinator:
    return engine.coordinator()


def worker(name: str, *, pages_per_s: float = 0.0) -> WorkerStatus:
    return WorkerStatus(name, "host.example", 42, 100.5, WorkerState.ACTIVE, pages_per_s)


def claimed(coordinator: Coordinator, partition: int = 7, name: str = "ann") -> PartitionLease:
    lease = coordinator.claim(partition, name)
    assert lease is not None
    return lease


# Membership


def test_nobody_is_a_member_at_first(coordinator: Coordinator) -> None:
    assert coordinator.workers() == {}


def test_a_heartbeat_joins(coordinator: Coordinator) -> None:
    ann, bob = worker("ann"), worker("bob ünïcode")
    coordinator.heartbeat(ann)
    coordinator.heartbeat(bob)
    assert coordinator.workers() == {"ann": ann, "bob ünïcode": bob}


def test_the_newest_heartbeat_counts(coordinator: Coordinator) -> None:
    coordinator.heartbeat(worker("ann"))
    coordinator.heartbeat(faster := worker("ann", pages_per_s=12.5))
    assert coordinator.workers() == {"ann": faster}


def test_a_membership_ends_without_heartbeats(engine: Engine, coordinator: Coordinator) -> None:
    coordinator.heartbeat(worker("ann"))
    coordinator.heartbeat(worker("bob"))
    engine.advance(HALF)
    coordinator.heartbeat(worker("bob"))
    engine.advance(HALF)
    assert set(coordinator.workers()) == {"bob"}
    engine.advance(HALF)
    assert coordinator.workers() == {}


def test_a_worker_may_come_back(engine: Engine, coordinator: Coordinator) -> None:
    coordinator.heartbeat(worker("ann"))
    engine.advance(LEASE_S)
    assert coordinator.workers() == {}
    coordinator.heartbeat(worker("ann"))
    assert set(coordinator.workers()) == {"ann"}


def test_a_worker_leaves(coordinator: Coordinator) -> None:
    coordinator.heartbeat(worker("ann"))
    coordinator.leave("ann")
    coordinator.leave("nobody")
    assert coordinator.workers() == {}


def test_all_workers_see_the_members(engine: Engine) -> None:
    engine.coordinator().heartbeat(worker("ann"))
    assert set(engine.coordinator().workers()) == {"ann"}


def test_a_member_is_drained_until_it_leaves(engine: Engine, coordinator: Coordinator) -> None:
    coordinator.heartbeat(worker("ann"))
    assert not coordinator.is_draining("ann")
    engine.coordinator().drain("ann")
    assert coordinator.is_draining("ann")
    for _ in range(3):
        engine.advance(HALF)
        coordinator.heartbeat(worker("ann"))
    assert coordinator.is_draining("ann")
    coordinator.leave("ann")
    coordinator.heartbeat(worker("ann"))
    assert not coordinator.is_draining("ann")


def test_draining_ends_with_an_expired_membership(engine: Engine, coordinator: Coordinator) -> None:
    coordinator.heartbeat(worker("ann"))
    coordinator.drain("ann")
    engine.advance(LEASE_S)
    coordinator.heartbeat(worker("ann"))
    assert not coordinator.is_draining("ann")


def test_who_is_no_member_is_not_drained(coordinator: Coordinator) -> None:
    coordinator.drain("ann")
    coordinator.heartbeat(worker("ann"))
    assert not coordinator.is_draining("ann")


# Leases


def test_a_free_partition_can_be_claimed(coordinator: Coordinator) -> None:
    assert coordinator.claim(7, "ann") == PartitionLease(7, 1, "ann")
    assert coordinator.owners() == {7: PartitionLease(7, 1, "ann")}


def test_a_partition_has_one_owner(engine: Engine, coordinator: Coordinator) -> None:
    lease = claimed(coordinator)
    assert engine.coordinator().claim(7, "bob") is None
    assert coordinator.owners() == {7: lease}


def test_partitions_are_independent(coordinator: Coordinator) -> None:
    leases = {n: claimed(coordinator, n, f"worker {n}") for n in (0, 1, 12)}
    assert coordinator.owners() == leases


def test_a_lease_expires(engine: Engine, coordinator: Coordinator) -> None:
    claimed(coordinator)
    engine.advance(LEASE_S)
    assert coordinator.owners() == {}
    assert coordinator.claim(7, "bob") == PartitionLease(7, 2, "bob")


def test_a_renewed_lease_lasts(engine: Engine, coordinator: Coordinator) -> None:
    lease = claimed(coordinator)
    for _ in range(3):
        engine.advance(HALF)
        assert coordinator.renew([lease]) == {7}
    engine.advance(HALF)
    assert coordinator.claim(7, "bob") is None


def test_renewing_tells_what_is_still_held(engine: Engine, coordinator: Coordinator) -> None:
    leases = [claimed(coordinator, n) for n in range(4)]
    engine.advance(HALF)
    assert coordinator.renew(leases[:2]) == {0, 1}
    engine.advance(HALF)
    assert claimed(coordinator, 3, "bob").token == 2
    assert coordinator.renew(leases) == {0, 1}
    assert coordinator.renew([]) == frozenset()


def test_a_replaced_owner_cannot_renew(engine: Engine, coordinator: Coordinator) -> None:
    old = claimed(coordinator)
    engine.advance(LEASE_S)
    new = claimed(coordinator, 7, "bob")
    assert coordinator.renew([old]) == frozenset()
    assert coordinator.owners() == {7: new}


def test_a_released_partition_is_free(coordinator: Coordinator) -> None:
    coordinator.release(claimed(coordinator))
    assert coordinator.owners() == {}
    assert coordinator.claim(7, "bob") == PartitionLease(7, 2, "bob")


def test_a_replaced_owner_cannot_release(engine: Engine, coordinator: Coordinator) -> None:
    old = claimed(coordinator)
    engine.advance(LEASE_S)
    new = claimed(coordinator, 7, "bob")
    coordinator.release(old)
    assert coordinator.owners() == {7: new}


def test_the_token_grows_past_what_storage_knows(coordinator: Coordinator) -> None:
    lease = coordinator.claim(7, "ann", min_token=41)
    assert lease == PartitionLease(7, 42, "ann")
    coordinator.release(lease)
    assert coordinator.claim(7, "bob", min_token=3) == PartitionLease(7, 43, "bob")


def test_a_refused_claim_keeps_the_token(coordinator: Coordinator) -> None:
    lease = claimed(coordinator)
    assert coordinator.claim(7, "bob", min_token=100) is None
    assert coordinator.renew([lease]) == {7}


def test_a_repeated_claim_replaces_the_lease(coordinator: Coordinator) -> None:
    lost = claimed(coordinator)
    assert coordinator.claim(7, "ann") == PartitionLease(7, 2, "ann")
    assert coordinator.renew([lost]) == frozenset()


# Statuses


def status(token: int = 1, partition: int = 7, *, fetched: int = 0) -> PartitionStatus:
    return PartitionStatus(
        partition, token, "ann", fetched, priorities=(0.75, 0.5), reported_at=12.5
    )


def test_statuses_are_kept_by_partition(engine: Engine, coordinator: Coordinator) -> None:
    coordinator.report([status(partition=1), status(partition=2, fetched=5)])
    coordinator.report([])
    assert engine.coordinator().statuses() == {
        1: status(partition=1),
        2: status(partition=2, fetched=5),
    }


def test_the_newest_status_counts(coordinator: Coordinator) -> None:
    coordinator.report([status(fetched=1)])
    coordinator.report([status(fetched=2)])
    assert coordinator.statuses() == {7: status(fetched=2)}


def test_a_replaced_owner_cannot_report(coordinator: Coordinator) -> None:
    coordinator.report([new := status(10)])
    coordinator.report([status(9, fetched=1), other := status(1, partition=8)])
    assert coordinator.statuses() == {7: new, 8: other}


# The leader


def test_one_worker_leads(engine: Engine, coordinator: Coordinator) -> None:
    assert coordinator.lead("ann")
    assert not engine.coordinator().lead("bob")
    assert coordinator.lead("ann")


def test_another_leads_when_the_leader_is_silent(engine: Engine, coordinator: Coordinator) -> None:
    assert coordinator.lead("ann")
    engine.advance(HALF)
    assert coordinator.lead("ann")
    engine.advance(HALF)
    assert not coordinator.lead("bob")
    engine.advance(HALF)
    assert coordinator.lead("bob")
    assert not coordinator.lead("ann")


def test_another_leads_when_the_leader_leaves(coordinator: Coordinator) -> None:
    assert coordinator.lead("ann")
    coordinator.leave("bob")
    assert not coordinator.lead("bob")
    coordinator.leave("ann")
    assert coordinator.lead("bob")


# The budget


def test_grants_add_up(engine: Engine, coordinator: Coordinator) -> None:
    assert coordinator.granted() == {}
    assert coordinator.grant({1: 10, 2: 5}, 100) == {1: 10, 2: 5}
    assert coordinator.grant({2: 5, 3: 1}, 100) == {2: 5, 3: 1}
    assert engine.coordinator().granted() == {1: 10, 2: 10, 3: 1}


def test_grants_never_exceed_the_budget(coordinator: Coordinator) -> None:
    assert coordinator.grant({3: 60, 1: 60, 2: 60}, 100) == {3: 60, 1: 40, 2: 0}
    assert coordinator.grant({1: 1}, 100) == {1: 0}
    assert coordinator.grant({1: 1}, 50) == {1: 0}
    assert sum(coordinator.granted().values()) == 100


def test_what_is_given_back_can_be_granted_again(coordinator: Coordinator) -> None:
    lease = claimed(coordinator)
    coordinator.grant({7: 60, 8: 40}, 100)
    coordinator.give_back(lease, 50)
    assert coordinator.granted() == {7: 50, 8: 40}
    assert coordinator.grant({8: 20}, 100) == {8: 10}


def test_giving_back_never_adds(coordinator: Coordinator) -> None:
    lease = claimed(coordinator)
    coordinator.give_back(lease, 10)
    assert coordinator.granted() == {}
    coordinator.grant({7: 5}, 100)
    coordinator.give_back(lease, 10)
    assert coordinator.granted() == {7: 5}


def test_a_replaced_owner_gives_nothing_back(engine: Engine, coordinator: Coordinator) -> None:
    old = claimed(coordinator)
    coordinator.grant({7: 60}, 100)
    engine.advance(LEASE_S)
    coordinator.give_back(old, 0)
    claimed(coordinator, 7, "bob")
    coordinator.give_back(old, 0)
    assert coordinator.granted() == {7: 60}


# Commands


def test_a_new_cluster_runs(coordinator: Coordinator) -> None:
    assert coordinator.command() == WorkerCommand(ClusterState.RUNNING, "", 0)


def test_commands_reach_all_workers(engine: Engine, coordinator: Coordinator) -> None:
    coordinator.set_state(ClusterState.PAUSED, "by ünïcode")
    assert engine.coordinator().command() == WorkerCommand(ClusterState.PAUSED, "by ünïcode")
    coordinator.set_state(ClusterState.RUNNING)
    assert engine.coordinator().command() == WorkerCommand()


def test_an_ended_crawl_stays_ended_until_it_is_resumed(coordinator: Coordinator) -> None:
    coordinator.set_state(ClusterState.ENDED, "1,000 pages")
    coordinator.set_state(ClusterState.STOPPING, "by hand")
    assert coordinator.command() == WorkerCommand(ClusterState.ENDED, "1,000 pages")
    coordinator.set_state(ClusterState.RUNNING)
    assert coordinator.command() == WorkerCommand()


def test_a_rebalance_is_a_new_generation(coordinator: Coordinator) -> None:
    coordinator.set_state(ClusterState.PAUSED, "maintenance")
    coordinator.rebalance()
    coordinator.rebalance()
    assert coordinator.command() == WorkerCommand(ClusterState.PAUSED, "maintenance", 2)
    coordinator.set_state(ClusterState.RUNNING)
    assert coordinator.command() == WorkerCommand(ClusterState.RUNNING, "", 2)
