"""Whatever somebody writes into the keys of a crawl, no worker stops."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from focused.cluster.coordinator import PartitionLease, PartitionStatus, WorkerCommand, WorkerStatus
from focused.cluster.exchange import BEGINNING
from focused.cluster.redis_connection import RedisConnection
from focused.cluster.redis_coordinator import RedisCoordinator, decode_status
from tests.support.engines import RedisEngine

RedisCommand = tuple[str | bytes, ...]
GARBAGE: Mapping[str, Callable[[str], RedisCommand]] = {
    "text": lambda key: ("SET", key, b"\xff\x00 99999999999999999999 nan"),
    "number": lambda key: ("SET", key, "1e308"),
    "empty": lambda key: ("SET", key, ""),
    "list": lambda key: ("RPUSH", key, "1", "2"),
    "hash": lambda key: ("HSET", key, b"\xff", "x", "7", b"\xff 1e308", "8", "-3", "9", "9" * 40),
    "command": lambda key: ("HSET", key, "state", "dance", "reason", b"\xff", "generation", "inf"),
    "set": lambda key: ("SADD", key, b"\xff", "ann", ""),
    "stream": lambda key: ("XADD", key, "*", b"\xff", "x"),
}


@pytest.fixture
def coordinator(redis_engine: RedisEngine) -> RedisCoordinator:
    return redis_engine.coordinator()


def use_all(engine: RedisEngine, coordinator: RedisCoordinator) -> None:
    """Call everything as a worker does; raises nothing."""
    coordinator.heartbeat(WorkerStatus("ann", "host.example", 42, 0.0))
    coordinator.drain("ann")
    coordinator.is_draining("ann")
    lease = coordinator.claim(7, "ann") or PartitionLease(7, 1, "ann")
    coordinator.renew([lease])
    coordinator.report([PartitionStatus(7, lease.token, "ann")])
    coordinator.lead("ann")
    coordinator.grant({7: 10, 8: 10, 9: 10}, 1_000)
    coordinator.give_back(lease, 5)
    coordinator.rebalance()
    coordinator.set_state(coordinator.command().state)
    pace, exchange = engine.pace(), engine.exchange()
    pace.acquire(["host.example"], "ann", 10.0)
    pace.finish(["host.example"], "ann", 1.0)
    pace.flush()
    exchange.send(7, b"batch")
    exchange.publish([b"example"])
    for entry in exchange.receive(7, BEGINNING, 10):
        exchange.trim(7, entry.position)
    exchange.waiting(7, BEGINNING)
    exchange.memory(7)
    exchange.published(BEGINNING, 10)


def read_all(coordinator: RedisCoordinator) -> None:
    assert all(isinstance(each, PartitionLease) for each in coordinator.owners().values())
    assert all(isinstance(each, PartitionStatus) for each in coordinator.statuses().values())
    assert all(isinstance(each, WorkerStatus) for each in coordinator.workers().values())
    assert all(0 <= pages < 10**15 for pages in coordinator.granted().values())
    assert isinstance(coordinator.command(), WorkerCommand)


@pytest.mark.parametrize("kind", GARBAGE)
def test_garbage_in_any_key_stops_no_worker(
    redis_engine: RedisEngine, coordinator: RedisCoordinator, kind: str
) -> None:
    use_all(redis_engine, coordinator)
    redis = redis_engine.connect()
    for key in redis_engine.all_keys():
        redis.execute("DEL", key)
        redis.execute(*GARBAGE[kind](key))
    read_all(coordinator)
    use_all(redis_engine, coordinator)
    read_all(coordinator)
    lease = coordinator.owners()[7]
    assert coordinator.renew([lease]) == {7}
    assert "ann" in coordinator.workers()


def test_malformed_values_are_left_out_and_counted(
    redis_engine: RedisEngine, coordinator: RedisCoordinator
) -> None:
    use_all(redis_engine, coordinator)
    redis = redis_engine.connect()
    write(redis, redis_engine, "statuses", "8", "1 garbage")
    write(redis, redis_engine, "statuses", "9", b"1 " + msgspec.msgpack.encode({"partition": 3}))
    write(redis, redis_engine, "granted", "8", "many")
    assert coordinator.malformed == 0
    assert set(coordinator.statuses()) == {7}
    assert coordinator.malformed == 2
    assert coordinator.granted() == {7: 5, 9: 10}
    assert coordinator.malformed == 3


def test_a_status_under_another_partition_or_token_is_left_out(
    redis_engine: RedisEngine, coordinator: RedisCoordinator
) -> None:
    status = msgspec.msgpack.encode(PartitionStatus(7, 3, "ann"))
    redis = redis_engine.connect()
    for field, token in (("7", b"3 "), ("8", b"3 "), ("9", b"4 "), ("x", b"3 ")):
        write(redis, redis_engine, "statuses", field, token + status)
    assert coordinator.statuses() == {7: PartitionStatus(7, 3, "ann")}
    assert coordinator.malformed == 3


def test_a_lease_that_cannot_expire_is_no_lease(
    redis_engine: RedisEngine, coordinator: RedisCoordinator
) -> None:
    redis = redis_engine.connect()
    redis.execute("SET", f"focused:{{{redis_engine.crawl}}}:lease:7", "3 bob")
    redis.execute("SET", f"focused:{{{redis_engine.crawl}}}:leader", "bob")
    assert coordinator.claim(7, "ann") == PartitionLease(7, 1, "ann")
    assert coordinator.lead("ann")


def write(
    redis: RedisConnection, engine: RedisEngine, name: str, field: str, value: str | bytes
) -> None:
    redis.execute("HSET", f"focused:{{{engine.crawl}}}:{name}", field, value)


# Decoding


COUNTS = st.integers(0, 2**40)
STATUSES = st.builds(
    PartitionStatus,
    partition=COUNTS,
    token=COUNTS,
    worker=st.text(min_size=1, max_size=20),
    fetched=COUNTS,
    received=COUNTS,
    is_idle=st.booleans(),
    priorities=st.lists(st.floats(allow_nan=False, allow_infinity=False)).map(tuple),
    reported_at=st.floats(allow_nan=False, allow_infinity=False),
)
DATA = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=10,
)


@given(STATUSES)
def test_statuses_are_decoded_as_they_were(status: PartitionStatus) -> None:
    assert decode_status(msgspec.msgpack.encode(status)) == status


@given(st.binary(max_size=200))
def test_any_bytes_are_a_status_or_nothing(data: bytes) -> None:
    status = decode_status(data)
    assert status is None or isinstance(status, PartitionStatus)


@given(STATUSES, st.dictionaries(st.sampled_from(PartitionStatus.__struct_fields__), DATA))
def test_a_status_with_any_fields_is_whole_or_nothing(
    status: PartitionStatus, fields: Mapping[str, object]
) -> None:
    decoded = decode_status(msgspec.msgpack.encode(msgspec.structs.asdict(status) | fields))
    if decoded is not None:
        assert decoded.partition >= 0
        assert decoded.worker
        assert all(map(math.isfinite, (*decoded.priorities, decoded.reported_at)))


@given(STATUSES, st.data())
def test_a_truncated_status_is_nothing(status: PartitionStatus, data: st.DataObject) -> None:
    encoded = msgspec.msgpack.encode(status)
    assert decode_status(encoded[: data.draw(st.integers(0, len(encoded) - 1))]) is None
