"""What coordinates a crawl of many partitions, in memory and in Redis, for contract suites."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from typing import Protocol

import pytest
from focused.cluster.coordinator import Coordinator, PaceLeases
from focused.cluster.local_redis import LocalRedis
from focused.cluster.memory_coordinator import MemoryCoordinator, MemoryPaceLeases
from focused.cluster.redis_connection import RedisConnection, connect, open_server, parse_redis_url
from focused.cluster.redis_coordinator import RedisCoordinator, RedisPaceLeases
from focused.cluster.redis_exchange import RedisExchange
from focused.cluster.redis_shared_contents import RedisContentStore

from focused.cluster.exchange import MAX_PUBLISHED, Exchange, MemoryExchange
from focused.cluster.shared_contents import ContentStore, MemoryContentStore

needs_redis = pytest.mark.skipif(
    shutil.which("redis-server") is None and os.environ.get("CI") != "true",
    reason="redis-server is not installed",
)
LEASE_S = 1_000.0
"""Longer than any test takes on a loaded machine."""


class Engine(Protocol):
    """One crawl's coordination; each call returns what another worker would use."""

    def coordinator(self) -> Coordinator: ...

    def pace(self) -> PaceLeases: ...

    def exchange(self, max_published: int = MAX_PUBLISHED) -> Exchange: ...

    def contents(self) -> ContentStore: ...

    def advance(self, duration_s: float) -> None:
        """Let time pass for all leases."""


class MemoryEngine:
    def __init__(self) -> None:
        self._now = 0.0
        self._coordinator = MemoryCoordinator(self._clock, LEASE_S)
        self._pace = MemoryPaceLeases(self._clock)
        self._exchange: MemoryExchange | None = None
        self._contents = MemoryContentStore()

    def coordinator(self) -> Coordinator:
        return self._coordinator

    def pace(self) -> PaceLeases:
        return self._pace

    def exchange(self, max_published: int = MAX_PUBLISHED) -> Exchange:
        if self._exchange is None:
            self._exchange = MemoryExchange(max_published=max_published)
        return self._exchange

    def contents(self) -> ContentStore:
        return self._contents

    def advance(self, duration_s: float) -> None:
        self._now += duration_s

    def _clock(self) -> float:
        return self._now


class RedisEngine:
    """A crawl of its own name, so that tests can share the servers."""

    def __init__(self, servers: LocalRedis) -> None:
        self.crawl = f"whales-{secrets.token_hex(8)}"
        self.servers = servers
        self._connections: list[RedisConnection] = []
        self._each: list[RedisConnection] = []
        self._now = 0.0

    def connect(self) -> RedisConnection:
        connection = connect(self.servers.urls[0])
        self._connections.append(connection)
        return connection

    def coordinator(self) -> RedisCoordinator:
        return RedisCoordinator(self.connect(), self.crawl, LEASE_S)

    def pace(self) -> RedisPaceLeases:
        return RedisPaceLeases(self.connect(), self.crawl, self._clock)

    def exchange(self, max_published: int = MAX_PUBLISHED) -> RedisExchange:
        return RedisExchange(self.connect(), self.crawl, max_published=max_published)

    def contents(self) -> RedisContentStore:
        return RedisContentStore(self.connect(), self.crawl)

    def advance(self, duration_s: float) -> None:
        self._now += duration_s
        for server, keys in self._keys():
            for key in keys:
                left_ms = server.execute("PTTL", key)
                if left_ms >= 0:
                    server.execute("PEXPIRE", key, max(round(left_ms - duration_s * 1_000), 0))

    def all_keys(self) -> list[str]:
        """All keys of the crawl."""
        return sorted(key.decode() for _, keys in self._keys() for key in keys)

    def _keys(self) -> Iterator[tuple[RedisConnection, list[bytes]]]:
        if not self._each:
            self._each = [open_server(parse_redis_url(url)) for url in self.servers.urls]
            self._connections += self._each
        for server in self._each:
            if server.execute("ROLE")[0] == b"master":
                yield server, server.execute("KEYS", f"focused:{{{self.crawl}*")

    def close(self) -> None:
        for connection in self._connections:
            connection.close()

    def _clock(self) -> float:
        return self._now
