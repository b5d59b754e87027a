"""Cost of coordinating a crawl of many partitions over Redis: operations, bytes and CPU time.

python benchmarks/cluster_coordination.py [--replicas]

It runs a redis-server, or with --replicas a Redis Cluster of three masters and three replicas, and
makes the calls of all workers: a round of each worker per second
(:class:`focused.cluster.worker_round.WorkerRounds`), two pace leases per page, and batches of the
links that belong to other partitions. Nothing sleeps: a second is one round. Training examples,
shared contents and shared storage are left out.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any

from focused.cluster.coordinator import PartitionLease, PartitionStatus, WorkerStatus
from focused.cluster.exchange import BEGINNING, MAX_BATCH_BYTES
from focused.cluster.leadership import MAX_REPORTED_PRIORITIES, Leadership
from focused.cluster.local_redis import LocalRedis
from focused.cluster.messages import LinkMessage, encode_batches
from focused.cluster.partition import Outgoing
from focused.cluster.redis_connection import RedisConnection, connect, open_server, parse_redis_url
from focused.cluster.redis_coordinator import RedisCoordinator, RedisPaceLeases
from focused.cluster.redis_exchange import RedisExchange
from focused.cluster.worker_round import PartitionPlan, RoundPlan, WorkerRounds
from focused.topic import Budget

CRAWL = "whales"
_TOP_LEVEL = (
    *("evalsha", "xadd", "xrange", "xtrim", "mget", "hgetall"),
    *("hkeys", "hmget", "smembers", "exists", "wait", "role"),
)
"""Commands that clients send; others run within scripts."""


@dataclass(frozen=True, slots=True)
class Load:
    """What each worker does in a second."""

    pages: int
    links_per_page: float
    """New links of other partitions."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What all workers together cost in a second."""

    operations: float
    received_bytes: float
    sent_bytes: float
    client_ms: float
    server_ms: float
    by_command: Mapping[str, float]


class NoReplicas:
    """Nothing is stored."""

    def newest_token(self, partition: int) -> int:
        """Return that of an empty storage."""
        return 0

    def restore(self, lease: PartitionLease) -> None:
        """Do nothing."""


class BenchmarkWorker:
    """The calls of a worker, without the crawls."""

    def __init__(
        self, connection: RedisConnection, number: int, partitions: int, rng: random.Random
    ) -> None:
        self.name = f"host{number}.example-4242-{number}"
        self.pace = RedisPaceLeases(connection, CRAWL)
        self._rng = rng
        self._partitions = partitions
        coordinator = RedisCoordinator(connection, CRAWL)
        leadership = Leadership(coordinator, partitions, Budget(pages=10**9))
        exchange = RedisExchange(connection, CRAWL)
        self._rounds = WorkerRounds(
            self.name, partitions, coordinator, exchange, NoReplicas(), leadership
        )
        self.own_s = 0.0
        """CPU time of making up pages, links and statuses."""
        self._leases: dict[int, PartitionLease] = {}
        self._leaving: frozenset[int] = frozenset()
        self._positions: dict[int, str] = {}
        self._fetched = 0
        self._now = 0.0

    @property
    def owned(self) -> int:
        """The number of partitions that it owns."""
        return len(self._leases)

    def work(self, load: Load) -> None:
        """Fetch the pages of a second, then run a round."""
        for _ in range(load.pages):
            names = (f"host {self._rng.random()}.example", f"address {self._rng.random()}")
            assert self.pace.acquire(names, f"{self.name} {self._fetched}", 60.0) == 0.0
            self.pace.finish(names, f"{self.name} {self._fetched}", 1.0)
            self._fetched += 1
        self._now += 1.0
        links = load.pages * load.links_per_page / max(len(self._leases), 1)
        plans = [self._plan(lease, round(links)) for lease in self._leases.values()]
        status = WorkerStatus(self.name, "host.example", 4242, 0.0, pages_per_s=12.5)
        result = self._rounds.run(
            RoundPlan(self._now, status, [plan.status for plan in plans], plans)
        )
        assert not result.problems, result.problems
        for lease in result.claimed:
            self._leases[lease.partition] = lease
        self._leaving = result.unwanted
        for number, own in result.partitions.items():
            if own.is_released:
                del self._leases[number]
            elif own.entries:
                self._positions[number] = own.entries[-1].position

    def _plan(self, lease: PartitionLease, links: int) -> PartitionPlan:
        began = process_time()
        status = self._status(lease)
        to_each: dict[int, list[tuple[int, LinkMessage]]] = {}
        for number in range(links):
            to = self._rng.randrange(self._partitions)
            to_each.setdefault(to, []).append((number, self._link(number)))
        self.own_s += process_time() - began
        batches = [
            (to, batch)
            for to, own in to_each.items()
            for batch in encode_batches(lease.partition, lease.token, own, MAX_BATCH_BYTES)
        ]
        position = self._positions.get(lease.partition, BEGINNING)
        leaves = lease.partition in self._leaving
        return PartitionPlan(
            lease, status, lambda: None, Outgoing(batches), position, leaves=leaves
        )

    def _status(self, lease: PartitionLease) -> PartitionStatus:
        best = sorted((self._rng.random() for _ in range(MAX_REPORTED_PRIORITIES)), reverse=True)
        return PartitionStatus(
            lease.partition,
            lease.token,
            self.name,
            fetched=self._fetched,
            classified=50_000,
            on_topic=20_000,
            bytes=10**9,
            frontier=10**6,
            sent=10**6,
            received=10**6,
            priorities=tuple(best),
            reported_at=self._now,
        )

    def _link(self, number: int) -> LinkMessage:
        host, parent = self._rng.randrange(10**6), self._rng.randrange(10**6)
        return LinkMessage(
            f"https://host{host}.example/some/path/of/a/page-{number}.html",
            0.5,
            5,
            f"https://host{parent}.example/some/path/of/its/parent.html",
            "an anchor of words",
            tuple(self._rng.random() for _ in range(20)),
            1,
            2**40,
        )


class Meter:
    """Counts of all masters; those of replicas are left out."""

    def __init__(self, servers: LocalRedis) -> None:
        self._servers = [open_server(parse_redis_url(url)) for url in servers.urls]

    def _read(self) -> dict[str, float]:
        total: dict[str, float] = {}
        for server in self._servers:
            if server.execute("ROLE")[0] == b"master":
                for key, value in _counts(server.execute("INFO", "everything")).items():
                    total[key] = total.get(key, 0.0) + value
        return total

    def cost(self, call: Callable[[], float], seconds: int) -> Cost:
        """Return the cost of a call that takes so many seconds in a crawl.

        It returns the CPU time that does not count.
        """
        before, began = self._read(), process_time()
        own_s = call()
        client_s, after = process_time() - began - own_s, self._read()
        rates = {key: (value - before.get(key, 0.0)) / seconds for key, value in after.items()}
        commands = {name: rates[name] for name in _TOP_LEVEL if rates.get(name, 0.0) * seconds >= 1}
        return Cost(
            sum(commands.values()),
            rates["total_net_input_bytes"],
            rates["total_net_output_bytes"],
            1_000 * client_s / seconds,
            1_000 * (rates["used_cpu_user"] + rates["used_cpu_sys"]),
            commands,
        )


def _counts(info: Mapping[str, Any]) -> dict[str, float]:
    names = ("total_net_input_bytes", "total_net_output_bytes", "used_cpu_user", "used_cpu_sys")
    counts = {name: float(info[name]) for name in names}
    for name in _TOP_LEVEL:
        counts[name] = float(info.get(f"cmdstat_{name}", {}).get("calls", 0))
    return counts


def _line(name: str, values: Sequence[float], unit: str) -> None:
    shown = f"{median(values):,.2f} ({min(values):,.2f} to {max(values):,.2f})"
    print(f"  {name:34}{shown:>36} {unit}")


def measure(workers: Sequence[BenchmarkWorker], meter: Meter, given: argparse.Namespace) -> None:
    """Print the cost at rest, and that of a page at each load."""

    def run(load: Load) -> list[Cost]:
        def work() -> float:
            before_s = sum(worker.own_s for worker in workers)
            for _ in range(given.seconds):
                for worker in workers:
                    worker.work(load)
            return sum(worker.own_s for worker in workers) - before_s

        return [meter.cost(work, given.seconds) for _ in range(given.repeat)]

    rest = run(Load(0, 0.0))
    print("at rest, all workers, per second")
    _line("operations", [each.operations for each in rest], "")
    _line("bytes to Redis", [each.received_bytes for each in rest], "")
    _line("bytes from Redis", [each.sent_bytes for each in rest], "")
    _line("CPU of the workers", [each.client_ms for each in rest], "ms")
    _line("CPU of Redis", [each.server_ms for each in rest], "ms")
    _print_commands(rest[0].by_command)
    base = {field: median(getattr(each, field) for each in rest) for field in FIELDS}
    for pages in given.pages:
        costs = run(Load(pages, given.links))
        total = pages * len(workers)
        print(f"per page, at {total} pages a second, {given.links:g} links of others per page")
        for field, (name, unit) in FIELDS.items():
            of_page = [(getattr(each, field) - base[field]) / total for each in costs]
            _line(name, of_page, unit)
        _print_commands(costs[0].by_command)


FIELDS = {
    "operations": ("operations", ""),
    "received_bytes": ("bytes to Redis", ""),
    "sent_bytes": ("bytes from Redis", ""),
    "client_ms": ("CPU of the workers", "ms"),
    "server_ms": ("CPU of Redis", "ms"),
}


def _print_commands(commands: Mapping[str, float]) -> None:
    shown = sorted(commands.items(), key=lambda each: -each[1])
    print("  operations a second:", ", ".join(f"{name} {rate:,.1f}" for name, rate in shown))


def main() -> None:
    """Print costs with their spread over the repetitions: median, lowest, highest."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--partitions", type=int, default=64)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--pages", type=int, nargs="*", default=[10, 100])
    parser.add_argument("--links", type=float, default=3.0)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--replicas", action="store_true")
    given = parser.parse_args()
    masters, replicas = (3, 1) if given.replicas else (1, 0)
    with (
        TemporaryDirectory(prefix="focused-benchmark-") as folder,
        LocalRedis(Path(folder), masters=masters, replicas=replicas) as servers,
    ):
        workers = [
            BenchmarkWorker(connect(servers.urls[0]), n, given.partitions, random.Random(n))
            for n in range(given.workers)
        ]
        for _ in range(100):
            for worker in workers:
                worker.work(Load(0, 0.0))
            if sum(worker.owned for worker in workers) == given.partitions:
                break
        measure(workers, Meter(servers), given)


if __name__ == "__main__":
    main()
