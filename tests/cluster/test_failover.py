"""The masters of a Redis Cluster die while workers claim, send and share out the budget."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from focused.cluster.coordinator import PartitionLease
from focused.cluster.exchange import BEGINNING
from focused.cluster.local_redis import LocalRedis
from focused.cluster.redis_coordinator import RedisPaceLeases
from focused.errors import CoordinationError, ExchangeError
from tests.support.engines import RedisEngine, needs_redis

pytestmark = [needs_redis, pytest.mark.long]

GROUPS = 3
PARTITIONS = 24
"""Their streams belong to all masters."""
BUDGET = 10**9
GO_ON_WITHIN_S = 60.0


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LocalRedis]:
    with LocalRedis(tmp_path, masters=GROUPS, replicas=1, node_timeout_s=1.0) as servers:
        yield servers


@pytest.fixture
def engine(cluster: LocalRedis) -> Iterator[RedisEngine]:
    engine = RedisEngine(cluster)
    yield engine
    engine.close()


class Worker:
    """Does what workers do, and notes what was acknowledged."""

    def __init__(self, engine: RedisEngine, name: str) -> None:
        self.name = name
        self.coordinator = engine.coordinator()
        self.exchange = engine.exchange()
        self.pace = RedisPaceLeases(engine.connect(), engine.crawl)
        self.leases: list[PartitionLease] = []
        self.sent: defaultdict[int, list[bytes]] = defaultdict(list)
        self.granted = 0
        self.errors = 0
        self.slowest_s = 0.0
        self._next = 0

    def work(self) -> bool:
        """Call everything once; False if something failed."""
        results = [self._try(call) for call in (self._claim, self._send, self._grant, self._ask)]
        return all(results)

    def _try(self, call: Callable[[], None]) -> bool:
        begun = time.monotonic()
        try:
            call()
        except (CoordinationError, ExchangeError):
            self.errors += 1
            return False
        finally:
            self.slowest_s = max(self.slowest_s, time.monotonic() - begun)
        return True

    def _claim(self) -> None:
        lease = self.coordinator.claim(7, self.name)
        if lease is not None:
            self.leases.append(lease)
            self.coordinator.release(lease)

    def _send(self) -> None:
        self._next += 1
        batch = f"{self.name} {self._next}".encode()
        self.exchange.send_all([(to, batch) for to in range(PARTITIONS)])
        for to in range(PARTITIONS):
            self.sent[to].append(batch)

    def _grant(self) -> None:
        self.granted += sum(self.coordinator.grant({7: 1, 8: 1}, BUDGET).values())

    def _ask(self) -> None:
        self.pace.acquire([f"{self.name}.example"], self.name, 10.0)
        self.pace.finish([f"{self.name}.example"], self.name, 0.0)


class Reader:
    """Receives the batches of all partitions, each after its position."""

    def __init__(self, engine: RedisEngine) -> None:
        self.batches: defaultdict[int, list[bytes]] = defaultdict(list)
        self._exchange = engine.exchange()
        self._positions = dict.fromkeys(range(PARTITIONS), BEGINNING)

    def read(self) -> None:
        for partition, position in self._positions.items():
            try:
                entries = self._exchange.receive(partition, position, 1_000)
            except ExchangeError:
                continue
            self.batches[partition] += [entry.batch for entry in entries]
            if entries:
                self._positions[partition] = entries[-1].position


def work(workers: list[Worker], reader: Reader, until: Callable[[], bool] | None = None) -> None:
    """Work until a condition holds, and then until each worker has succeeded 20 times."""
    succeeded = dict.fromkeys(range(len(workers)), 0)
    holds = until is None
    latest = time.monotonic() + GO_ON_WITHIN_S
    while time.monotonic() < latest:
        holds = holds or (until is not None and until())
        for number, worker in enumerate(workers):
            succeeded[number] += worker.work() and holds
        reader.read()
        if min(succeeded.values()) >= 20:
            return
    pytest.fail("the workers don't go on")


def check(workers: list[Worker], reader: Reader) -> None:
    """Tokens never repeat, and nothing that was acknowledged is lost."""
    reader.read()
    tokens = [lease.token for worker in workers for lease in worker.leases]
    assert len(tokens) == len(set(tokens))
    for worker in workers:
        assert [lease.token for lease in worker.leases] == sorted(
            lease.token for lease in worker.leases
        )
        for partition, batches in worker.sent.items():
            assert set(batches) <= set(reader.batches[partition])
    granted = sum(workers[0].coordinator.granted().values())
    assert sum(worker.granted for worker in workers) <= granted


def has_new_master(cluster: LocalRedis, group: int, old: int) -> bool:
    try:
        return cluster.master(group) != old
    except CoordinationError:
        return False


def test_no_acknowledged_write_is_lost_with_a_master(
    cluster: LocalRedis, engine: RedisEngine
) -> None:
    workers, reader = [Worker(engine, name) for name in ("ann", "bob")], Reader(engine)
    for group in range(GROUPS):
        work(workers, reader)
        killed = cluster.kill_master(group)
        work(workers, reader, lambda: has_new_master(cluster, group, killed))  # noqa: B023
        cluster.restart_killed()
        cluster.wait_for_masters()
    assert all(worker.errors for worker in workers)
    check(workers, reader)


def test_a_frozen_master_is_replaced_and_does_not_come_back(
    cluster: LocalRedis, engine: RedisEngine
) -> None:
    workers, reader = [Worker(engine, name) for name in ("ann", "bob")], Reader(engine)
    for group in range(GROUPS):
        work(workers, reader)
        frozen = cluster.master(group)
        cluster.suspend(frozen)
        work(workers, reader, lambda: has_new_master(cluster, group, frozen))  # noqa: B023
        cluster.resume(frozen)
        work(workers, reader)
        cluster.wait_for_masters()
    assert all(worker.errors for worker in workers)
    assert max(worker.slowest_s for worker in workers) < 30
    check(workers, reader)


def test_leases_outlive_a_master(cluster: LocalRedis, engine: RedisEngine) -> None:
    coordinator = engine.coordinator()
    leases = [coordinator.claim(n, "ann") for n in range(PARTITIONS)]
    held = [lease for lease in leases if lease is not None]
    for group in range(GROUPS):
        cluster.kill_master(group)
        cluster.restart_killed()
        cluster.wait_for_masters()
        other = engine.coordinator()
        assert all(other.claim(n, "bob") is None for n in range(PARTITIONS))
        assert coordinator.renew(held) == set(range(PARTITIONS))


def test_a_group_without_any_server_is_an_error_and_others_go_on(
    cluster: LocalRedis, engine: RedisEngine
) -> None:
    exchange = engine.exchange()
    cluster.kill_master(0)
    cluster.wait_for_masters()
    cluster.kill_master(0)
    failed = set()
    for partition in range(PARTITIONS):
        try:
            exchange.send(partition, b"batch")
        except ExchangeError:
            failed.add(partition)
    assert 0 < len(failed) < PARTITIONS
