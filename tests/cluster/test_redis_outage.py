"""A server of Redis is away for a while; workers go on by themselves when it is back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from focused.cluster.coordinator import ASK_AGAIN_S, Lease
from focused.cluster.local_redis import LocalRedis
from focused.cluster.redis_connection import RedisConnection, connect
from focused.cluster.redis_coordinator import RedisCoordinator, RedisPaceLeases
from focused.errors import CoordinationError
from tests.support.engines import needs_redis

pytestmark = needs_redis


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LocalRedis]:
    with LocalRedis(tmp_path) as redis:
        yield redis


@pytest.fixture
def connection(server: LocalRedis) -> Iterator[RedisConnection]:
    connection = connect(server.urls[0], environ={}, timeout_s=3.0)
    yield connection
    connection.close()


def test_a_worker_goes_on_after_a_restart_with_the_tokens_of_before(
    server: LocalRedis, connection: RedisConnection
) -> None:
    coordinator = RedisCoordinator(connection, "whales")
    assert coordinator.claim(7, "ann") == Lease(7, 1, "ann")
    server.kill_master()
    with pytest.raises(CoordinationError, match="start the server"):
        coordinator.renew([Lease(7, 1, "ann")])
    server.restart_killed()
    assert coordinator.renew([Lease(7, 1, "ann")]) == {7}
    assert coordinator.claim(7, "ann") == Lease(7, 2, "ann")


def test_after_an_error_requests_dont_wait_for_the_server(
    server: LocalRedis, connection: RedisConnection
) -> None:
    now = [100.0]
    pace = RedisPaceLeases(connection, "whales", lambda: now[0])
    assert pace.acquire(["a.example"], "ann", 600.0) == 0.0
    server.suspend(0)
    with pytest.raises(CoordinationError):
        pace.acquire(["b.example"], "ann", 600.0)
    server.resume(0)
    with pytest.raises(CoordinationError):
        pace.acquire(["b.example"], "ann", 600.0)
    now[0] += 10.0
    assert pace.acquire(["b.example"], "ann", 600.0) == 0.0


def test_what_finished_during_an_outage_is_told_later(
    server: LocalRedis, connection: RedisConnection
) -> None:
    now = [100.0]
    pace = RedisPaceLeases(connection, "whales", lambda: now[0])
    other = RedisPaceLeases(connection, "whales", lambda: now[0])
    assert pace.acquire(["a.example"], "ann", 600.0) == 0.0
    server.kill_master()
    pace.finish(["a.example"], "ann", 0.0)
    with pytest.raises(CoordinationError):
        pace.flush()
    server.restart_killed()
    now[0] += 10.0
    assert other.acquire(["a.example"], "bob", 600.0) == ASK_AGAIN_S
    pace.flush()
    assert other.acquire(["a.example"], "bob", 600.0) == 0.0
