"""The engines that the contract suites run on: in memory, and real servers of Redis."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from focused.cluster.local_redis import LocalRedis
from tests.support.engines import Engine, MemoryEngine, RedisEngine, needs_redis


@pytest.fixture(scope="session")
def single_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalRedis]:
    """One server; don't kill it."""
    with LocalRedis(tmp_path_factory.mktemp("redis")) as servers:
        yield servers


@pytest.fixture(scope="session")
def redis_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalRedis]:
    """Three masters and three replicas; don't kill them."""
    with LocalRedis(tmp_path_factory.mktemp("cluster"), masters=3, replicas=1) as servers:
        yield servers


REDIS = [
    pytest.param("single_redis", id="redis", marks=needs_redis),
    pytest.param("redis_cluster", id="redis-cluster", marks=needs_redis),
]


@pytest.fixture(params=REDIS)
def redis_engine(request: pytest.FixtureRequest) -> Iterator[RedisEngine]:
    engine = RedisEngine(request.getfixturevalue(request.param))
    yield engine
    engine.close()


@pytest.fixture(params=["memory", *REDIS])
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    if request.param == "memory":
        yield MemoryEngine()
        return
    redis = RedisEngine(request.getfixturevalue(request.param))
    yield redis
    redis.close()
